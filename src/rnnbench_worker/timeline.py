"""What a profiler saw, as operations in time; and reading that from a Chrome trace, the one form many can write.

An operation is a name, the lane (thread or stream) it ran on, and its start and length in seconds. Operations nest:
what calls others is not counted, only those that call none. They do the work.
"""

import gzip
import json
from collections import namedtuple

Operation = namedtuple("Operation", "name lane start seconds")

#: On the host and on the device; `batches` is how many they are of, `file` the trace as a file, if there is one.
Timeline = namedtuple("Timeline", "host device batches file")


def leaves(operations):
    """Those in which no other of their lane begins."""
    found = []
    ordered = sorted(operations, key=lambda one: (one.lane, one.start, -one.seconds))
    for one, following in zip(ordered, ordered[1:] + [None]):
        calls = following is not None and following.lane == one.lane and following.start < one.start + one.seconds
        if not calls:
            found.append(one)
    return found


def union_seconds(operations):
    """How long at least one of them ran, on whatever lane."""
    total, end = 0.0, float("-inf")
    for one in sorted(operations, key=lambda one: one.start):
        stop = one.start + one.seconds
        if stop > end:
            total += stop - max(one.start, end)
            end = stop
    return total


def by_name(operations):
    """[name, how many, their seconds], the longest first."""
    found = {}
    for one in operations:
        entry = found.setdefault(one.name, [one.name, 0, 0.0])
        entry[1] += 1
        entry[2] += one.seconds
    return sorted(found.values(), key=lambda entry: -entry[2])


def end_to_end(totals):
    """Operations from a profiler that has only totals, (name, how many, seconds): one after the other."""
    operations, start = [], 0.0
    for name, count, seconds in totals:
        for _ in range(count):
            operations.append(Operation(name, "", start, seconds / count))
            start += seconds / count
    return operations


def read_chrome(path):
    """The complete events of a trace, each with the names of its process and thread."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as file:
        content = json.load(file)
    events = content["traceEvents"] if isinstance(content, dict) else content
    names = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") in ("process_name", "thread_name"):
            thread = event.get("tid") if event["name"] == "thread_name" else None
            names[event.get("pid"), thread] = str(event["args"]["name"])
    for event in events:
        if event.get("ph") == "X":
            event["process"] = names.get((event["pid"], None), "")
            event["thread"] = names.get((event["pid"], event["tid"]), "")
            yield event


def operation(event, name=None):
    """A trace counts in microseconds."""
    lane = "{}/{}".format(event["pid"], event["tid"])
    return Operation(name or event["name"], lane, event["ts"] / 1e6, event.get("dur", 0) / 1e6)
