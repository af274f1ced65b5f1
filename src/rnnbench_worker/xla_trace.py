"""The traces that XLA's profiler writes, which JAX and TensorFlow share: which of their events are operators."""

import glob
import gzip
import json
import os
import re

from .profile import BATCHES
from .timeline import Timeline, operation, read_chrome

#: `dot.17` and `dot.18` are the same operator twice.
_NUMBERED = re.compile(r"([._]\d+|\.clone|\.remat\d*)+$")
#: An operator of TensorFlow as its executor calls it: `a/path/MatMul_1:MatMul`.
_EXECUTED = re.compile(r"^[^ :]*:([A-Z_]\w*)$")


def watched(start, stop, block, folder):
    """Run a block between starting and stopping the profiler, and read the trace it leaves below `folder`."""
    start(folder)
    try:
        block()
    finally:
        stop()
    (found,) = glob.glob(os.path.join(folder, "plugins", "profile", "*", "*.trace.json.gz"))
    path = os.path.join(folder, "trace.json.gz")
    with gzip.open(found, "rt") as file:
        content = json.load(file)
    with gzip.open(path, "wt") as file:
        # Perfetto does not open a trace with the field `metadata`.
        json.dump({"traceEvents": content["traceEvents"]}, file)
    return timeline(path)


def timeline(path):
    events = list(read_chrome(path))
    return Timeline(
        host=list(filter(None, map(host_operation, events))),
        device=list(filter(None, map(device_operation, events))),
        batches=BATCHES,
        file=path,
    )


def host_operation(event):
    """XLA's operators say which one of their program they are; TensorFlow's executor names instance and kind."""
    if not event["process"].startswith("/host:CPU"):
        return None
    if "hlo_op" in event.get("args", {}):
        return operation(event, _NUMBERED.sub("", event["args"]["hlo_op"]))
    executed = _EXECUTED.match(event["name"])
    return operation(event, executed.group(1)) if executed else None


def device_operation(event):
    """Kernels and copies are on the lines of streams; other lines tell the same again, by module and by operator."""
    if event["process"].startswith("/device:GPU") and event["thread"].startswith("Stream"):
        return operation(event, _NUMBERED.sub("", event["name"]))
    return None
