"""Runs inside a framework's own environment: Python 3.6 syntax, the standard library and NumPy."""
