"""Verification: what a worker computes is compared with the float64 reference."""
