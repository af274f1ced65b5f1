"""Tables that others published, kept as data beside the measured ones: the seeds' of 2018 and 2019."""

from rnnbench.published.rows import SOURCES, TABLES, Published, Source, find_published, published_rows

__all__ = ["SOURCES", "TABLES", "Published", "Source", "find_published", "published_rows"]
