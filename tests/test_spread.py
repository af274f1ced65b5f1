"""Spread runs without a cluster: parts and visits, collecting, the queue's answers, bad input."""
