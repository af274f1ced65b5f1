"""Comparing what a worker computed with the float64 reference."""
