"""Confidence intervals and ratios from launches and their samples."""
