"""What a new shape costs: a warm program is given a batch of another size, then one of another length.

The calls are timed one by one, without a profiler. Where the framework counts what it builds, the counter is read
after each call. A program that did not build again is compared with one built for the new shape: a length that was
fixed by tracing shows up as other numbers or as an error. The cost is then that of a new program.
"""

import time

import numpy as np

from .canonical import with_lengths
from .clock import Runner
from .loading import build_program, load_inputs, told

WARM_CALLS = 3  # at each shape: TorchScript, for example, may still compile in its second and third call
WARM_SECONDS = 8.0  # no further warm call at a shape after so long
TOLERANCES = {"fp32": 1e-3, "tf32": 3e-2, "bf16": 1e-1}  # relative L2 error up to which two results are the same


def retrace(job, framework, channel):
    """Sends `reshaped` for each of the job's variants, which each change its shape in one way."""
    program, parameters, batches = build_program(job, framework, channel)
    calls = time_calls(Runner(program, job["phase"], [program.stage(batch) for batch in batches]))
    channel.send("first", seconds=calls[0])
    channel.send("warm", batches=len(calls) - 1, seconds=sum(calls[1:]))
    for variant in job["variants"]:
        channel.send("reshaped", change=variant["change"], **reshape(job, framework, program, parameters, variant))


def reshape(job, framework, program, parameters, variant):
    """One change of the shape: its outcome, the seconds of each call, and what the framework counted."""
    other = dict(job, workload=variant["workload"])
    batch = with_lengths(load_inputs(variant["inputs"])[1][0], other["workload"])
    try:
        calls, built = time_and_count_calls(framework, program, job["phase"], batch)
        if built and built[-1] > 0:
            return {"outcome": "rebuilt", "calls": calls, "built": built}
        reason = difference_from_fresh_program(other, framework, program, parameters, batch)
    except Exception as error:  # a program may be made for one shape only: that is an outcome, too
        reason = "{}: {}".format(type(error).__name__, shorten_error(error))
    if not reason:
        return {"outcome": "kept" if built else "uncounted", "calls": calls, "built": built}
    start = time.perf_counter()
    fresh = framework.build(told(other), parameters)
    build_s = time.perf_counter() - start
    calls = time_calls(Runner(fresh, job["phase"], [fresh.stage(batch)]))
    return {"outcome": "anew", "calls": calls, "built": [], "build_s": build_s, "reason": reason}


def time_and_count_calls(framework, program, phase, batch):
    """The seconds of each call, and how much had been built by then; the latter is empty where nothing counts it."""
    count = getattr(framework, "builds", lambda program: None)
    before = count(program)
    built = []

    def counted():
        if before is not None:
            built.append(count(program) - before)

    return time_calls(Runner(program, phase, [program.stage(batch)]), counted), built


def time_calls(runner, after=lambda: None):
    """The seconds of a first call and of a few warm ones, fewer where they are long."""
    calls = []
    while len(calls) < 2 or (len(calls) <= WARM_CALLS and sum(calls[1:]) < WARM_SECONDS):
        calls.append(runner.block(1))
        after()
    return calls


def difference_from_fresh_program(other, framework, program, parameters, batch):
    """How the program's result for this batch differs from that of one built for its shape; empty if it does not."""
    training = other["phase"] == "train"
    # Training has changed the parameters: the new program starts from those that the old one has now.
    fresh = framework.build(told(other), program.parameters() if training else parameters)
    found, wanted = [compute_result(one, other["phase"], batch) for one in (program, fresh)]
    if found.shape != wanted.shape:
        return "its result has the shape {} instead of {}".format(list(found.shape), list(wanted.shape))
    error = float(np.linalg.norm(found - wanted) / (np.linalg.norm(wanted) or 1.0))
    if error <= TOLERANCES[other["precision"]]:
        return ""
    what = "loss" if training else "logits"
    return "{} off by {:.2g} from that of a program built for the shape".format(what, error)


def compute_result(program, phase, batch):
    fed = program.feed(program.stage(batch))
    handle = program.call_of(phase)(fed)
    program.sync(handle)
    return np.asarray(program.loss(handle) if phase == "train" else program.logits(handle), np.float64)


def shorten_error(error):
    """The first and the last line: some frameworks say only at the end what was wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " … ".join(line[:160] for line in (lines[:1] + lines[-1:] if len(lines) > 1 else lines))
