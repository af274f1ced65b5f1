"""Intervals and ratios from launches and their samples."""
