"""The graphs that executions build: captured in a worker, counted, drawn, and explained step by step on a page."""
