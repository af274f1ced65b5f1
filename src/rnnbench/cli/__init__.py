"""The commands: each parses its options, calls the package that does the work, and prints the result."""
