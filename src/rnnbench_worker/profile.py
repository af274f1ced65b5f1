"""One launch under the framework's own profiler: what a batch is made of. Nothing here is ever a sample.

The same program is first timed for a moment without the profiler, for a profiler makes what it watches slower.
"""

import time

from .clock import Runner
from .loading import build_program
from .timeline import by_name, leaves, union_seconds

WARM_BATCHES = 4  # TorchScript, for one, still compiles in its second and third call
BATCHES = 2  # under the profiler: an eager step may be 60,000 events
PLAIN_SECONDS = 1.0
PLAIN_BLOCKS = 10


def profile(job, framework, channel):
    """Sends `profiled`, or `unprofiled` with the reason why there is no profiler."""
    watch = framework.profiler(job) if hasattr(framework, "profiler") else "its folder offers no profiler"
    if not callable(watch):
        channel.send("unprofiled", reason=watch)
        return
    program, _, batches = build_program(job, framework, channel)
    runner = Watched(program, job["phase"], [program.stage(batch) for batch in batches])
    channel.send("first", seconds=runner.block(1))
    channel.send("warm", batches=WARM_BATCHES, seconds=runner.block(WARM_BATCHES))
    wall, host = plain_seconds(runner)
    timeline = watch(program, runner.block, job["arrays"])
    channel.send("profiled", **summary(timeline, wall, host, runner.seconds))


class Watched(Runner):
    """Also says how long the host was busy with the last block before it waited for the device."""

    def __init__(self, program, phase, staged):
        super(Watched, self).__init__(program, phase, staged)
        self.seconds, self.issued = 0.0, 0.0
        self._program = Noting(program)

    def block(self, batches=BATCHES):
        start = time.perf_counter()
        self.seconds = super(Watched, self).block(batches)
        self.issued = self._program.waited_at - start
        return self.seconds


class Noting(object):
    """A program that notes when it was asked to wait."""

    def __init__(self, program):
        self.feed = program.feed
        self._sync = program.sync
        self.waited_at = 0.0

    def sync(self, handle):
        self.waited_at = time.perf_counter()
        self._sync(handle)


def plain_seconds(runner):
    """(all, host's part) of one batch in the fastest of a few blocks."""
    found, spent = [], 0.0
    while not found or (spent < PLAIN_SECONDS and len(found) < PLAIN_BLOCKS):
        spent += runner.block()
        found.append((runner.seconds / BATCHES, runner.issued / BATCHES))
    return min(found)


def summary(timeline, wall, host, profiled):
    """Of one batch each, but for the totals by name, which are of all."""
    operators, kernels = leaves(timeline.host), leaves(timeline.device)
    count = timeline.batches
    wall = min(wall, profiled / count)  # a profiler makes nothing faster: the machine was busy with something else
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
