"""The graphs that executions really build: taken in a worker, counted, drawn, and told as a story."""
