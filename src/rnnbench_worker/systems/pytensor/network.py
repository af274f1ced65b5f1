"""The network as a graph of symbols: embedding or features, recurrent stack by pytensor.scan, head.

Time comes first: `[steps, batch, width]`. Parameters are shared variables under their canonical names and
in the canonical layout.
"""

import pytensor
import pytensor.tensor as pt

from rnnbench_worker.canonical import names
from rnnbench_worker.sequences import within


def logits_of(workload, parameters, batch):
    """`[steps, batch, classes]`, or `[batch, classes]`."""
    inputs = batch["inputs"].swapaxes(0, 1)
    xs = parameters["embedding"][inputs] if workload["vocabulary"] else inputs
    mask = within(pt.arange(workload["steps"]), batch["lengths"]) if workload["variable_length"] else None
    # The seeds' order: outer loop over depth, inner loop over time.
    for layer in range(workload["layers"]):
        outputs = [
            scanned(workload, [parameters[name] for name in names(layer, direction)], xs, mask, direction == "bwd")
            for direction in workload["directions"]
        ]
        xs = outputs[0] if len(outputs) == 1 else pt.concatenate(outputs, axis=2)
    hs = xs[-1] if workload["head_on"] == "last-step" else xs
    logits = hs @ parameters["head.w"]
    return logits + parameters["head.b"] if workload["head_bias"] else logits


def scanned(workload, weights, xs, mask, reverse):
    """One layer in one direction: four gates in one matrix, two products a step."""

    def step(x, h, c, w, u, b):
        i, f, g, o = pt.split(x @ w + h @ u + b, [workload["hidden"]] * 4, n_splits=4, axis=1)
        c = pt.sigmoid(f) * c + pt.sigmoid(i) * pt.tanh(g)
        h = pt.sigmoid(o) * pt.tanh(c)
        return h, c

    def masked_step(x, inside, h, c, w, u, b):
        # Outside its sequence the state stays; the way back so starts at each one's own end.
        new_h, new_c = step(x, h, c, w, u, b)
        return pt.where(inside, new_h, h), pt.where(inside, new_c, c)

    zeros = pt.zeros((workload["batch"], workload["hidden"]))
    hs, _ = pytensor.scan(
        step if mask is None else masked_step,
        sequences=[xs] if mask is None else [xs, mask],
        outputs_info=[zeros, zeros],
        non_sequences=weights,
        go_backwards=reverse,
        strict=True,
        return_updates=False,
    )
    return hs[::-1] if reverse else hs
