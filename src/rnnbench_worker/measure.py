"""Timing one case: build, first call, warm-up, samples, memory, an event after each."""

from .clock import Runner, sample, warm_up
from .gpu import gpu_state
from .loading import build_program
from .memory import peak_host_bytes
from .turn import wait_for_turn


def measure(job, framework, channel):
    program, _, batches = build_program(job, framework, channel)
    # Several batches in turn: a cache of the last result or of one address would otherwise flatter.
    staged = [program.stage(batch) for batch in batches]
    runner = Runner(program, job["phase"], staged)
    channel.send("first", seconds=runner.block(1))
    warm_batches, warm_seconds, per_batch = warm_up(runner, job["method"])
    channel.send("warm", batches=warm_batches, seconds=warm_seconds)
    if wait_for_turn():
        # The machine is quiet only now, and the device may have cooled down while it waited.
        _, _, per_batch = warm_up(runner, job["method"], again=True)
    before = gpu_state() if job["device"] == "cuda" else None
    runner.by_device = 0.0
    samples = sample(runner, job["method"], per_batch)
    channel.send(
        "samples",
        samples=[[size, seconds] for size, seconds in samples],
        device_seconds=runner.by_device,
        gpu_before=before,
        gpu_after=gpu_state() if job["device"] == "cuda" else None,
    )
    channel.send("memory", host=peak_host_bytes(), device=program.peak_device_bytes())
