"""Theano: what the frameworks on it share. Code only."""
