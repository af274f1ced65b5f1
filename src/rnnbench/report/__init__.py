"""Runs for a reader: text, Markdown, CSV, JSON, charts and the page."""
