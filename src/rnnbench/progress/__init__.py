"""What a run says while it runs: the words are in `words`, and each place that shows them has its own drawing."""
