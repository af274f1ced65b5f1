"""Timing one case: build, first call, warm-up, samples and memory, with an event after each."""

import time

from .clock import RESTARTS, Budget, Runner, sample, still_falling, warm_up
from .full_size import FullSize
from .gpu_state import gpu_state
from .loading import STARTED, build_program
from .memory import peak_host_bytes
from .protocol import wait_for_turn
from .quiet import QuietProcessors
from .usage import Usage


def measure(job, framework, channel):
    program, _, batches = build_program(job, framework, channel)
    repeated, unseen = batches[: job["repeated"]], batches[job["repeated"] :]
    # Several batches in turn: with only one, a cache of the last result or of one address would flatter the program.
    runner = Runner(program, job["phase"], [program.stage(batch) for batch in repeated])
    full_size = FullSize(job, program, runner, channel) if job["check"] else None
    channel.send("first", seconds=runner.block(1))
    earlier = full_size.first_batches() if full_size else ()
    limit_s = job["method"]["limit_seconds"]
    warm = warm_up(runner, job["method"], Budget(limit_s - (time.perf_counter() - STARTED)), earlier)
    channel.send("warm", batches=warm.batches, seconds=warm.seconds)
    turn, quiet = wait_for_turn(), job["quiet"]
    if turn:
        # Only now is the machine quiet, and the device may have cooled down during the wait.
        warm = warm_up(runner, job["method"], Budget(limit_s / 2), again=True)
        quiet = dict(quiet, full_speed_s=turn.full_speed_s) if quiet else None
    take_samples(job, quiet, runner, channel, warm)
    if full_size:
        full_size.unseen_batches(unseen)
    channel.send("memory", host=peak_host_bytes(), device=program.peak_device_bytes(), how_it_ran=program.how_it_ran())


def take_samples(job, quiet_processors, runner, channel, warm):
    """Sample; again, if the first samples show that the program was still getting faster: they were its warm-up."""
    cuda, adaptive = job["device"] == "cuda", warm.steady is not None
    for _ in range(RESTARTS + 1):
        before = gpu_state() if cuda else None
        runner.by_device = 0.0
        usage = Usage()
        quiet = QuietProcessors(**quiet_processors) if quiet_processors else None
        channel.send("sampling")
        usage.start()
        if quiet:
            quiet.begin()
        samples = sample(runner, job["method"], warm.per_batch, quiet)
        used = usage.fields()
        falling = adaptive and still_falling(samples)
        if not falling:
            break
    channel.send(
        "samples",
        samples=[[size, seconds] for size, seconds in samples],
        steady=warm.steady and not falling if adaptive else None,
        device_seconds=runner.by_device,
        gpu_before=before,
        gpu_after=gpu_state() if cuda else None,
        **dict(used, **(quiet.fields() if quiet else {})),
    )
