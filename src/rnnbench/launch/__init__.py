"""Worker processes: start one, exchange messages with it, end it; and the order of all launches of a run."""
