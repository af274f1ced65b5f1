"""The abilities of PyTensor's systems: a symbolic graph for each, by pytensor.scan, compiled by the row's backend."""

import numpy as np
import pytensor
import pytensor.tensor as pt

import rnnbench_cells
from rnnbench_worker.abilities import (
    CELLS,
    STEPS,
    probes_of,
    run_ability,
    sequences_of,
    step_around,
    steps_of,
    weight_arrays,
)
from rnnbench_worker.systems.jax.program import builds

from .network import Operators


class AbilityOperators(Operators):
    @staticmethod
    def attend(query, memory):
        scores = (memory * query[:, None, :]).sum(axis=2)
        shares = pt.special.softmax(scores, axis=1)
        return (memory * shares[:, :, None]).sum(axis=1)


def prove(job, ability, arrays, mode):
    given = weight_arrays(ability, arrays)
    weights = {name: pytensor.shared(array, name, shape=array.shape) for name, array in given.items()}
    function = make_function(job, ability, arrays, weights, mode)

    def run(steps):
        given = list(sequences_of(ability, arrays, steps)) + list(probes_of(ability, arrays, steps))
        results = [np.asarray(one) for one in function(*given)]
        names = ["h", "c"] + ["gradient/" + name for name in weights]
        return dict(zip(names, results))

    # Only JAX builds for a shape: the other backends compile one function for all.
    return run_ability(ability, run, lambda: builds(None))


def make_function(job, ability, arrays, weights, mode):
    sizes = sequences_of(ability, arrays, STEPS) + probes_of(ability, arrays, STEPS)
    # Inputs of fixed shapes, as in the row, but for the number of steps where that is to change.
    is_open = steps_of(ability) != STEPS
    shapes = [(None,) + one.shape[1:] if is_open and one.shape[0] == STEPS else one.shape for one in sizes]
    names = ("xs", "flags", "extra", "probe_h", "probe_c")
    inputs = [pt.tensor(name, dtype="float32", shape=shape) for name, shape in zip(names, shapes)]
    xs, flags, extra, probe_h, probe_c = inputs
    batch, hidden = arrays["xs"].shape[1], arrays["u"].shape[0]
    operators = AbilityOperators(hidden)
    cell = rnnbench_cells.find(CELLS.get(ability, "lstm"))

    def run_cell(own, x, h, c):
        new = cell.step(operators, own, x, {"h": h, "c": c})
        return new["h"], new["c"]

    around = step_around(ability, run_cell, operators)

    def step(x, flag, h, c, extra, *own):
        named = dict(zip(weights, own))
        return list(around(named, named.get("head"), x, flag, h, c, extra))

    zeros = pt.zeros((batch, hidden))
    hs, cs = pytensor.scan(
        step,
        sequences=[xs, flags],
        outputs_info=[zeros, zeros],
        non_sequences=[extra] + list(weights.values()),
        strict=True,
        return_updates=False,
    )
    loss = (hs * probe_h).sum() + (cs * probe_c).sum()
    if ability == "double-backward":
        loss = (pytensor.grad(loss, xs) ** 2).sum()
    gradients = pytensor.grad(loss, list(weights.values()), disconnected_inputs="ignore")
    return pytensor.function(inputs, [hs, cs] + gradients, mode=mode, on_unused_input="ignore")
