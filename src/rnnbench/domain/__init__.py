"""Plain types, no input or output: the words of the vocabulary as code."""
