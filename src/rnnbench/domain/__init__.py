"""The vocabulary as plain types: no input or output."""
