"""One worker process at a time: start it, talk to it, end it; and the schedule of a whole run."""
