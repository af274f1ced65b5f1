"""What a new shape costs: a warm program is given a batch of another size, then one of another length.

Timed like any batch, one call at a time, with no profiler anywhere near. Where the framework counts what it
builds, it is asked after each call. A program that did not build again is compared with one built for the new
shape: a length that was baked in shows as other numbers, or as an error. Then the price is that of a new program.
"""

import time

import numpy as np

from .batches import with_lengths
from .clock import Runner
from .loading import build_program, load_inputs

CALLS = 3  # at each shape: TorchScript, for one, may still compile in the second and the third
ENOUGH = 8.0  # seconds of warm calls at one shape
TOLERANCES = {"fp32": 1e-3, "tf32": 3e-2, "bf16": 1e-1}  # of relative L2 error: the same network, or another


def retrace(job, framework, channel):
    """Sends `reshaped` for each of the job's variants, the changes of its shape."""
    program, parameters, batches = build_program(job, framework, channel)
    calls = some_calls(Runner(program, job["phase"], [program.stage(batch) for batch in batches]))
    channel.send("first", seconds=calls[0])
    channel.send("warm", batches=len(calls) - 1, seconds=sum(calls[1:]))
    for variant in job["variants"]:
        channel.send("reshaped", change=variant["change"], **reshape(job, framework, program, parameters, variant))


def reshape(job, framework, program, parameters, variant):
    """One change of the shape: what came of it, the seconds of each call, and what was counted."""
    other = dict(job, workload=variant["workload"])
    batch = with_lengths(load_inputs(variant["inputs"])[1][0], other["workload"])
    try:
        calls, built = call_again(framework, program, job["phase"], batch)
        if built and built[-1] > 0:
            return {"outcome": "rebuilt", "calls": calls, "built": built}
        reason = difference(other, framework, program, parameters, batch)
    except Exception as error:  # a program may be made for one shape: that is a result
        reason = "{}: {}".format(type(error).__name__, in_short(error))
    if not reason:
        return {"outcome": "kept" if built else "uncounted", "calls": calls, "built": built}
    start = time.perf_counter()
    fresh = framework.build(other, parameters)
    build_s = time.perf_counter() - start
    calls = some_calls(Runner(fresh, job["phase"], [fresh.stage(batch)]))
    return {"outcome": "anew", "calls": calls, "built": [], "build_s": build_s, "reason": reason}


def call_again(framework, program, phase, batch):
    """Seconds of each call, and how much had been built after each since the first; empty: there is no counter."""
    count = getattr(framework, "builds", lambda program: None)
    before = count(program)
    built = []

    def counted():
        if before is not None:
            built.append(count(program) - before)

    return some_calls(Runner(program, phase, [program.stage(batch)]), counted), built


def some_calls(runner, after=lambda: None):
    """A first call and a few warm ones, fewer where they are long."""
    calls = []
    while len(calls) < 2 or (len(calls) <= CALLS and sum(calls[1:]) < ENOUGH):
        calls.append(runner.block(1))
        after()
    return calls


def difference(other, framework, program, parameters, batch):
    """How the program differs on this batch from one that is built for it; empty when it does not."""
    training = other["phase"] == "train"
    # Training has moved them on; the new program starts from where the old one is.
    fresh = framework.build(other, program.parameters() if training else parameters)
    found, wanted = [result(one, other["phase"], batch) for one in (program, fresh)]
    if found.shape != wanted.shape:
        return "it gave the shape {} in place of {}".format(list(found.shape), list(wanted.shape))
    error = float(np.linalg.norm(found - wanted) / (np.linalg.norm(wanted) or 1.0))
    if error <= TOLERANCES[other["precision"]]:
        return ""
    what = "loss" if training else "logits"
    return "{} off by {:.2g} from a program's that was built for the shape".format(what, error)


def result(program, phase, batch):
    fed = program.feed(program.stage(batch))
    handle = program.call_of(phase)(fed)
    program.sync(handle)
    return np.asarray(program.loss(handle) if phase == "train" else program.logits(handle), np.float64)


def in_short(error):
    """The first line and the last: some frameworks say what was wrong only at the end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " … ".join(line[:160] for line in (lines[:1] + lines[-1:] if len(lines) > 1 else lines))
