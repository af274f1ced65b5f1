"""Environments: one Python interpreter with pinned framework versions each, created or brought along.

`spec` says what is wanted, `interpreters` finds something to build it with, `create` builds it,
`registry` finds it again, and `doctor` looks after all of them.
"""
