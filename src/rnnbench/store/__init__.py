"""A run folder: written so that it can be read after any crash, and read without trusting it."""
