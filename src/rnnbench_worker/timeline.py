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


def leaves(operations, helpers=frozenset(), whole=frozenset()):
    """Those that call no other of their lane, but for helpers: who calls only helpers is one operation with them.

    So is who has a name in `whole`, whatever it calls.
    """
    ordered = sorted(operations, key=lambda one: (one.lane, one.start, -one.seconds))
    callers, calls = [], [False] * len(ordered)
    within = []  # the operations that have begun and not ended
    for index, one in enumerate(ordered):
        while within and not encloses(ordered[within[-1]], one):
            within.pop()
        callers.append(within[-1] if within else None)
        if one.name not in helpers:
            for caller in reversed(within):
                if ordered[caller].name in whole:
                    break
                calls[caller] = True
        within.append(index)
    return [
        one
        for one, caller, busy_below in zip(ordered, callers, calls)
        if not busy_below and (caller is None or calls[caller])
    ]


def encloses(outer, inner):
    return outer.lane == inner.lane and inner.start < outer.start + outer.seconds


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
    """[name, how many, their seconds], the longest first. Those that run together share the time evenly.

    So all their seconds are those in which any of them ran. Some of them may only have waited for a thread: no
    profiler tells.
    """
    operations = list(operations)
    moments = sorted(
        [(one.start + one.seconds, 0, index) for index, one in enumerate(operations)]  # who ends goes before who begins
        + [(one.start, 1, index) for index, one in enumerate(operations) if one.seconds > 0]
    )
    found = {}
    share, before, running, began = 0.0, 0.0, 0, {}  # `share`: what one that ran from the beginning would have got
    for moment, begins, index in moments:
        share += (moment - before) / running if running else 0.0
        before = moment
        if begins:
            began[index] = share
            running += 1
            continue
        entry = found.setdefault(operations[index].name, [operations[index].name, 0, 0.0])
        entry[1] += 1
        if index in began:
            entry[2] += share - began[index]
            running -= 1
    return sorted(found.values(), key=lambda entry: -entry[2])


def end_to_end(totals):
    """Operations from a profiler that has only totals, (name, how many, seconds): one after the other.

    Each on a lane of its own: one too short for the clock is not a part of the one that begins at the same time.
    """
    operations, start = [], 0.0
    for name, count, seconds in totals:
        for _ in range(count):
            operations.append(Operation(name, str(len(operations)), start, seconds / count))
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
