"""The interval of times and ratios, from launches and their samples."""
