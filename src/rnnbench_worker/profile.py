"""One launch under the framework's own profiler: what a batch consists of. Nothing here is ever used as a sample.

The same program is first timed briefly without the profiler, because a profiler slows down what it watches.
"""

import time

from .clock import Runner
from .loading import build_program, told
from .timeline import by_name, leaves, union_seconds

WARM_BATCHES = 4  # TorchScript, for example, still compiles in its second and third call
BATCHES = 2  # under the profiler: an eager training step may have 60,000 events
UNPROFILED_SECONDS = 1.0
UNPROFILED_BLOCKS = 10


def profile(job, framework, channel):
    """Sends `profiled`, or `unprofiled` with the reason why there is no profiler."""
    watch = framework.profiler(told(job)) if hasattr(framework, "profiler") else "its folder offers no profiler"
    if not callable(watch):
        channel.send("unprofiled", reason=watch)
        return
    program, _, batches = build_program(job, framework, channel)
    runner = HostTimedRunner(program, job["phase"], [program.stage(batch) for batch in batches])
    channel.send("first", seconds=runner.block(1))
    channel.send("warm", batches=WARM_BATCHES, seconds=runner.block(WARM_BATCHES))
    wall, host = unprofiled_seconds(runner)
    timeline = watch(program, runner.block, job["arrays"])
    channel.send("profiled", **summary(timeline, wall, host, runner.seconds))


class HostTimedRunner(Runner):
    """Also measures how long the host was busy with the last block before it waited for the device."""

    def __init__(self, program, phase, staged):
        super(HostTimedRunner, self).__init__(program, phase, staged)
        self.seconds, self.issued = 0.0, 0.0
        self._program = SyncTimedProgram(program)

    def block(self, batches=BATCHES):
        start = time.perf_counter()
        self.seconds = super(HostTimedRunner, self).block(batches)
        self.issued = self._program.waited_at - start
        return self.seconds


class SyncTimedProgram(object):
    """A program that records when it was asked to wait for the device."""

    def __init__(self, program):
        self.feed = program.feed
        self._sync = program.sync
        self.waited_at = 0.0

    def sync(self, handle):
        self.waited_at = time.perf_counter()
        self._sync(handle)


def unprofiled_seconds(runner):
    """(wall seconds, the host's part of them) per batch, in the fastest of a few blocks."""
    found, spent = [], 0.0
    while not found or (spent < UNPROFILED_SECONDS and len(found) < UNPROFILED_BLOCKS):
        spent += runner.block()
        found.append((runner.seconds / BATCHES, runner.issued / BATCHES))
    return min(found)


def summary(timeline, wall, host, profiled):
    """The event's fields. Seconds are per batch; the totals by name are those of all batches together."""
    operators, kernels = leaves(timeline.host), leaves(timeline.device)
    count = timeline.batches
    wall = min(wall, profiled / count)  # a profiler makes nothing faster, so the machine must have been busy before
    return {
        "batches": count,
        "wall_s": wall,
        "host_s": min(host, wall),
        "profiled_s": profiled / count,
        "operators": by_name(operators),
        "operators_s": union_seconds(operators) / count,
        "kernels": by_name(kernels),
        "kernels_s": union_seconds(kernels) / count,
        "trace": timeline.file,
    }
