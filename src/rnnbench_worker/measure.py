"""Timing one case: build, first call, warm-up, samples and memory, with an event after each."""

import resource
import sys

from .clock import Runner, sample, warm_up
from .gpu_state import gpu_state
from .loading import build_program
from .protocol import wait_for_turn
from .usage import Usage


def measure(job, framework, channel):
    program, _, batches = build_program(job, framework, channel)
    # Several batches in turn: with only one, a cache of the last result or of one address would flatter the program.
    staged = [program.stage(batch) for batch in batches]
    runner = Runner(program, job["phase"], staged)
    channel.send("first", seconds=runner.block(1))
    warm_batches, warm_seconds, per_batch = warm_up(runner, job["method"])
    channel.send("warm", batches=warm_batches, seconds=warm_seconds)
    if wait_for_turn():
        # Only now is the machine quiet, and the device may have cooled down during the wait.
        _, _, per_batch = warm_up(runner, job["method"], again=True)
    before = gpu_state() if job["device"] == "cuda" else None
    runner.by_device = 0.0
    usage = Usage()
    channel.send("sampling")
    usage.start()
    samples = sample(runner, job["method"], per_batch)
    used = usage.fields()
    channel.send(
        "samples",
        samples=[[size, seconds] for size, seconds in samples],
        device_seconds=runner.by_device,
        gpu_before=before,
        gpu_after=gpu_state() if job["device"] == "cuda" else None,
        **used,
    )
    channel.send("memory", host=peak_host_bytes(), device=program.peak_device_bytes())


def peak_host_bytes():
    """Peak resident set size. /proc counts from exec on; getrusage would include the driver's own size."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (IOError, OSError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
