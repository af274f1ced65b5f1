"""The worker's side of the protocol: one JSON job in, JSON lines out on a private pipe.

The pipe is a file descriptor of its own, so whatever a framework prints cannot touch it.
"""

import json
import math
import os
import sys

CHANNEL_VARIABLE = "RNNBENCH_CHANNEL"


class Channel(object):
    """Sends events to the driver, each as one line."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def send(self, event, **fields):
        fields["event"] = event
        line = json.dumps(_plain(fields), allow_nan=False) + "\n"
        data = line.encode("utf-8")
        while data:
            data = data[os.write(self._descriptor, data) :]


def _plain(value):
    """JSON has no NaN and no infinity: they travel as null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def open_channel():
    """The pipe the driver handed over; children of this process must not hold it open."""
    descriptor = int(os.environ[CHANNEL_VARIABLE])
    os.set_inheritable(descriptor, False)
    return Channel(descriptor)


def read_job():
    """The one job, all of standard input."""
    return json.loads(sys.stdin.read())
