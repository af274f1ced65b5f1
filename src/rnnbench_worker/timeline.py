"""What a profiler recorded, as operations in time; and Chrome traces, a format that many profilers can write.

An operation is a name, the lane (thread or stream) it ran on, and its start and length in seconds. Operations nest.
Only those that call no other are counted, because they do the work.
"""

import gzip
import json
import os
from collections import namedtuple

Operation = namedtuple("Operation", "name lane start seconds")

#: The operations on the host and on the device, of how many batches they are, and the path of the trace or "".
Timeline = namedtuple("Timeline", "host device batches file")


def leaves(operations, helpers=frozenset(), whole=frozenset()):
    """The operations that call no other one of their lane.

    Calls of `helpers` do not count: an operation that calls only helpers is kept, and its helpers are dropped.
    An operation named in `whole` is kept whatever it calls.
    """
    ordered = sorted(operations, key=lambda one: (one.lane, one.start, -one.seconds))
    callers, calls = [], [False] * len(ordered)
    within = []  # the operations that have begun but not ended
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
    """Whether `inner`, which did not begin earlier, began while `outer` ran on the same lane."""
    return outer.lane == inner.lane and inner.start < outer.start + outer.seconds


def union_seconds(operations):
    """How long at least one of the operations ran, on any lane."""
    total, end = 0.0, float("-inf")
    for one in sorted(operations, key=lambda one: one.start):
        stop = one.start + one.seconds
        if stop > end:
            total += stop - max(one.start, end)
            end = stop
    return total


def by_name(operations):
    """[name, count, seconds] for each name, the longest first. Operations that run at the same time share it equally.

    So the seconds add up to the time in which any operation ran. Some may only have waited for a thread, which no
    profiler shows.
    """
    operations = list(operations)
    moments = sorted(
        [(one.start + one.seconds, 0, index) for index, one in enumerate(operations)]  # ends sort before beginnings
        + [(one.start, 1, index) for index, one in enumerate(operations) if one.seconds > 0]
    )
    found = {}
    share, before, running, began = 0.0, 0.0, 0, {}  # `share`: of an operation that runs from beginning to end
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
    """Operations one after the other, from a profiler that has only totals: (name, count, seconds).

    Each has a lane of its own. On a common lane, one too short for the clock would count as part of the next.
    """
    operations, start = [], 0.0
    for name, count, seconds in totals:
        for _ in range(count):
            operations.append(Operation(name, str(len(operations)), start, seconds / count))
            start += seconds / count
    return operations


def read_chrome(path):
    """The complete events (phase "X") of a trace, each with the names of its process and thread."""
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


def write_chrome(events, folder):
    """Events as a file that Perfetto opens. It refuses files with the field `metadata`, which XLA's own traces have."""
    path = os.path.join(folder, "trace.json.gz")
    with gzip.open(path, "wt") as file:
        json.dump({"traceEvents": events}, file)
    return path


def operation(event, name=None):
    """An event of a trace, which counts in microseconds, as an operation."""
    lane = "{}/{}".format(event["pid"], event["tid"])
    return Operation(name or event["name"], lane, event["ts"] / 1e6, event.get("dur", 0) / 1e6)
