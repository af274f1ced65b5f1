"""Rows as something to read."""
