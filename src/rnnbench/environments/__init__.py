"""Environments: Python interpreters with pinned framework versions, created here or provided by the user.

`spec` says what an environment must contain, `interpreters` finds a Python to create it with, `create`
creates it, `registry` finds it again, and `doctor` checks all of them.
"""
