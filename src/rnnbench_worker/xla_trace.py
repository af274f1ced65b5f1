"""The traces that XLA's profiler writes, which JAX and TensorFlow share: which of their events are operators."""

import glob
import gzip
import json
import os
import re
from bisect import bisect_left

from .profile import BATCHES
from .timeline import Timeline, operation, read_chrome

#: `dot.17` and `dot.18` are the same operator twice.
_NUMBERED = re.compile(r"([._]\d+|\.clone|\.remat\d*)+$")
#: An operator of TensorFlow as its executor calls it: `a/path/MatMul_1:MatMul`.
_EXECUTED = re.compile(r"^[^ :]*:([A-Z_]\w*)$")
#: On CPUs XLA marks where an operator has ended, on whatever thread that was.
_ENDED = "end: "
#: They run other operators, which have events of their own.
_CONTROL = frozenset(["while", "conditional", "call"])


def perfetto_file(events, folder):
    """Events as a file that Perfetto opens. It opens none with the field `metadata`, which XLA's own traces have."""
    path = os.path.join(folder, "trace.json.gz")
    with gzip.open(path, "wt") as file:
        json.dump({"traceEvents": events}, file)
    return path


def only_file(folder, ending):
    """The one of this kind that a profiler left below the folder."""
    (found,) = glob.glob(os.path.join(folder, "plugins", "profile", "*", "*" + ending))
    return found


def timeline(path):
    events = to_their_ends(list(read_chrome(path)))
    return Timeline(
        host=list(filter(None, map(host_operation, events))),
        device=list(filter(None, map(device_operation, events))),
        batches=BATCHES,
        file=path,
    )


def to_their_ends(events):
    """An operator's event may end when its work has only been handed to other threads; the work ends at its mark.

    Its thread does other things meanwhile, which are not part of it: it gets a lane of its own.
    """
    marks = {}
    for event in events:
        if event["name"].startswith(_ENDED):
            marks.setdefault(event["name"][len(_ENDED) :], []).append(event["ts"])
    for times in marks.values():
        times.sort()
    for index, event in enumerate(events):
        times = marks.get(event["name"], [])
        place = bisect_left(times, event["ts"])
        # Within a loop an operator has ended before it begins again: the next mark is its own.
        if place < len(times) and times[place] > event["ts"] + event.get("dur", 0):
            event.update(dur=times[place] - event["ts"], tid="handed over {}".format(index))
    return events


def host_operation(event):
    """XLA's operators say which one of their program they are; TensorFlow's executor names instance and kind."""
    if not event["process"].startswith("/host:CPU"):
        return None
    args = event.get("args", {})
    executed = _EXECUTED.match(event["name"])
    if "hlo_op" in args:
        name = _NUMBERED.sub("", args["hlo_op"])
    else:
        name = args.get("kernel_of") or (executed.group(1) if executed else "")
    # A function's name starts so: what runs in it has events of its own.
    return None if not name or name in _CONTROL or name.startswith("__") else operation(event, name)


def device_operation(event):
    """Kernels and copies are on the lines of streams; other lines tell the same again, by module and by operator."""
    if event["process"].startswith("/device:GPU") and event["thread"].startswith("Stream"):
        return operation(event, _NUMBERED.sub("", event["name"]))
    return None
