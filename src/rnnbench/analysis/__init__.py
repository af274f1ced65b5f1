"""What the numbers say, computed from the store alone."""
