"""The worker's side of the protocol: one JSON job in, JSON lines out on a private pipe, and the limits a job sets.

The pipe is a file descriptor of its own, so that a framework's own output cannot disturb it. Nothing here imports
NumPy: the job's limits must be in force before any library starts its threads.
"""

import json
import math
import os
import resource
import sys

CHANNEL_VARIABLE = "RNNBENCH_CHANNEL"
TURN_VARIABLE = "RNNBENCH_TURN"


class Channel(object):
    """Sends events to the driver, one line for each."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def send(self, event, **fields):
        fields["event"] = event
        line = json.dumps(_finite_or_null(fields), allow_nan=False) + "\n"
        data = line.encode("utf-8")
        while data:
            data = data[os.write(self._descriptor, data) :]


def _finite_or_null(value):
    """JSON has neither NaN nor infinity: both are sent as null."""
    if isinstance(value, dict):
        return {key: _finite_or_null(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite_or_null(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def open_channel():
    """The pipe that the driver passed to this process; its children must not keep it open."""
    descriptor = int(os.environ[CHANNEL_VARIABLE])
    os.set_inheritable(descriptor, False)
    return Channel(descriptor)


def read_job():
    """The job, which is all of standard input."""
    return json.loads(sys.stdin.read())


def confine(job):
    """Before a framework is imported: pin the process and limit its memory."""
    if job["cpus"] and hasattr(os, "sched_setaffinity"):
        # Thread pools take their size from this mask when a framework starts; XLA's follows nothing else.
        os.sched_setaffinity(0, job["cpus"])
    if job["memory_bytes"]:
        # The data segment, not the address space: CUDA reserves far more addresses than it uses.
        limit = job["memory_bytes"]
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


class Turn(object):
    """A worker's turn to be sampled. `full_speed_s`: what the driver knows by then; None where it knows nothing."""

    def __init__(self, full_speed_s):
        self.full_speed_s = full_speed_s


def wait_for_turn():
    """Where several workers compile at once, the driver lets them sample one at a time.

    Returns None where there was no turn to wait for: a driver that runs one worker at a time passes no pipe.
    """
    descriptor = os.environ.get(TURN_VARIABLE)
    if descriptor is None:
        return None
    told = os.read(int(descriptor), 64).decode("ascii").strip("!")
    return Turn(float(told) if told else None)
