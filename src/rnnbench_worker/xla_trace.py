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
    args = event.get("args", {})
    executed = _EXECUTED.match(event["name"])
    if "hlo_op" in args:
        name = _NUMBERED.sub("", args["hlo_op"])
    else:
        name = args.get("kernel_of") or (executed.group(1) if executed else "")
    # A function's name: what runs in it has events of its own.
    return None if not name or name.startswith("__") else operation(event, name)


def device_operation(event):
    """Kernels and copies are on the lines of streams; other lines tell the same again, by module and by operator."""
    if event["process"].startswith("/device:GPU") and event["thread"].startswith("Stream"):
        return operation(event, _NUMBERED.sub("", event["name"]))
    return None
