"""Computing the arrays that the driver compares with its reference. Nothing is judged here.

Each phase has a fresh program, because what `forward` compiles is not what `train` compiles. Its arrays are
delivered before the next phase begins, so that they survive a crash there.
"""

import os

import numpy as np

from .loading import load_inputs, told


def verify(job, framework, channel):
    parameters, batches = load_inputs(job["inputs"])
    for phase in job["phases"]:
        program = framework.build(told(dict(job, phase=phase)), parameters)
        channel.send("built", seconds=0.0, parameters=int(program.parameter_count()), device=program.device)
        compute = forward_arrays if phase == "forward" else train_arrays
        arrays = compute(program, [program.stage(batch) for batch in batches])
        path = os.path.join(job["arrays"], phase + ".npz")
        np.savez(path, **{key: np.asarray(value) for key, value in arrays.items()})
        channel.send("arrays", name=phase, path=path)


def forward_arrays(program, staged):
    """The logits of several batches, so that a result kept from the first one is noticed."""
    arrays = {}
    for index, batch in enumerate(staged):
        handle = program.forward(program.feed(batch))
        program.sync(handle)
        arrays["logits/{}".format(index)] = program.logits(handle)
    return arrays


def train_arrays(program, staged):
    """Gradients at the start, the loss of each training step, and the parameters after the last one."""
    arrays = {}
    for name, value in program.gradients(program.feed(staged[0])).items():
        arrays["gradient/" + name] = value
    for index, batch in enumerate(staged):
        handle = program.train(program.feed(batch))
        program.sync(handle)
        arrays["loss/{}".format(index)] = np.float64(program.loss(handle))
    for name, value in program.parameters().items():
        arrays["parameter/" + name] = value
    return arrays
