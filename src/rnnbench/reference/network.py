"""The whole network in float64: embedding, recurrent stack, head and loss, forward and backward pass."""

import numpy as np

from rnnbench.domain.workload import Workload, cell_shapes
from rnnbench.reference import lstm, recurrent
from rnnbench.reference.inputs import Batch, Booleans, Floats, Parameters, cell_of
from rnnbench.reference.losses import equal_shares, evaluate_loss

Tape = dict[str, lstm.Trace | recurrent.Trace]

#: Numbers that the trace of one part of a batch may hold: 512 MB. A batch of full size is evaluated in parts.
TRACED_NUMBERS = 1 << 26


def logits(workload: Workload, parameters: Parameters, batch: Batch) -> Floats:
    """`[batch, steps, classes]`, or `[batch, classes]` if the head is on the last step.

    A single step has no head: its result is the new state `[hidden, batch]`.
    """
    exact = _as_float64(parameters)
    if workload.one_step:
        return _step_forward(exact, batch)
    return _head(exact, _stack(workload, exact, batch))


def loss(workload: Workload, parameters: Parameters, batch: Batch) -> float:
    if workload.one_step:
        return loss_and_gradients(workload, parameters, batch)[0]
    return evaluate_loss(workload, logits(workload, parameters, batch), batch)[0]


def loss_and_gradients(
    workload: Workload, parameters: Parameters, batch: Batch, shares: Floats | None = None
) -> tuple[float, dict[str, Floats]]:
    """The loss, and its gradients with respect to all parameters, with canonical names and shapes.

    `shares`: see `evaluate_loss`. Both results are sums over sequences, so a large batch is evaluated in parts.
    """
    exact = _as_float64(parameters)
    if workload.one_step:
        return _step_loss_and_gradients(exact, batch)
    count = len(batch["inputs"])
    shares = equal_shares(count) if shares is None else shares
    total, sums = 0.0, {name: np.zeros_like(value) for name, value in exact.items()}
    size = sequences_at_once(workload)
    for start in range(0, count, size):
        part = {name: values[start : start + size] for name, values in batch.items()}
        value, gradients = _part_loss_and_gradients(workload, exact, part, shares[start : start + size])
        total += value
        for name, gradient in gradients.items():
            sums[name] += gradient
    return total, sums


def sequences_at_once(workload: Workload) -> int:
    """How many sequences are evaluated together, so that their trace and their logits fit in memory."""
    per_unit = 8 if workload.cell == "lstm" else 60  # every operator of a step is recorded
    per_step = per_unit * workload.hidden * workload.layers * len(workload.directions) + workload.classes
    return max(1, TRACED_NUMBERS // (workload.steps * per_step))


def _part_loss_and_gradients(
    workload: Workload, exact: dict[str, Floats], batch: Batch, shares: Floats
) -> tuple[float, dict[str, Floats]]:
    tape: Tape = {}
    features = _stack(workload, exact, batch, tape)
    value, d_logits = evaluate_loss(workload, _head(exact, features), batch, shares)

    leading = tuple(range(features.ndim - 1))
    gradients = {"head.w": np.tensordot(features, d_logits, axes=(leading, leading))}
    if "head.b" in exact:
        gradients["head.b"] = d_logits.sum(axis=leading)
    d_features = np.tensordot(d_logits, exact["head.w"].T, axes=1)
    d_inputs = _stack_backward(workload, tape, d_features, gradients)
    if workload.vocabulary:
        gradients["embedding"] = np.zeros_like(exact["embedding"])
        np.add.at(gradients["embedding"], batch["inputs"].T, d_inputs)  # a word may occur many times
    return value, gradients


def _as_float64(parameters: Parameters) -> dict[str, Floats]:
    return {name: np.asarray(array, dtype=np.float64) for name, array in parameters.items()}


def _head(parameters: dict[str, Floats], features: Floats) -> Floats:
    scores = np.tensordot(features, parameters["head.w"], axes=1)
    if "head.b" in parameters:
        scores += parameters["head.b"]
    return scores


def _stack(workload: Workload, parameters: dict[str, Floats], batch: Batch, tape: Tape | None = None) -> Floats:
    """The features that the head reads: `[batch, steps, width]` or `[batch, width]`. Fills the tape, if given."""
    x = _first_inputs(workload, parameters, batch)
    mask = _mask(workload, batch)
    for layer in range(workload.layers):
        outputs = []
        for direction in workload.directions:
            prefix = f"layer{layer}.{direction}"
            output, trace = _layer(workload, layer, prefix, parameters, x, mask)
            outputs.append(output)
            if tape is not None:  # it can take gigabytes, so logits alone do without it
                tape[prefix] = trace
        x = np.concatenate(outputs, axis=2)
    return x[-1] if workload.head_on == "last-step" else x.swapaxes(0, 1)


def _stack_backward(workload: Workload, tape: Tape, d_features: Floats, gradients: dict[str, Floats]) -> Floats:
    """Adds each layer's gradients to `gradients`; returns the gradient of the first layer's inputs, time-major."""
    if workload.head_on == "last-step":
        d_outputs = np.zeros((workload.steps, *d_features.shape))
        d_outputs[-1] = d_features
    else:
        d_outputs = d_features.swapaxes(0, 1)
    for layer in reversed(range(workload.layers)):
        d_inputs: list[Floats] = []
        parts = np.split(d_outputs, len(workload.directions), axis=2)
        for direction, part in zip(workload.directions, parts, strict=True):
            prefix = f"layer{layer}.{direction}"
            trace = tape.pop(prefix)
            if isinstance(trace, lstm.Trace):
                d_input, *of_weights = lstm.backward(trace, part)
                found = dict(zip("wub", of_weights, strict=True))
            else:
                d_input, found = recurrent.backward(trace, part)
            gradients.update({f"{prefix}.{name}": gradient for name, gradient in found.items()})
            d_inputs.append(d_input)
        d_outputs = sum(d_inputs[1:], start=d_inputs[0])
    return d_outputs


def _layer(
    workload: Workload,
    layer: int,
    prefix: str,
    parameters: dict[str, Floats],
    x: Floats,
    mask: Booleans | None,
) -> tuple[Floats, lstm.Trace | recurrent.Trace]:
    """A layer in one direction. The LSTM has a version without a tape, for which a batch of full size is no effort."""
    weights = {name: parameters[f"{prefix}.{name}"] for name in cell_shapes(workload, layer)}
    reverse = prefix.endswith("bwd")
    if workload.cell == "lstm":
        return lstm.forward(x, weights["w"], weights["u"], weights["b"], mask, reverse)
    return recurrent.forward(cell_of(workload), weights, x, mask, reverse, hidden=workload.hidden)


def _first_inputs(workload: Workload, parameters: dict[str, Floats], batch: Batch) -> Floats:
    """The inputs of the first layer, time-major."""
    if workload.vocabulary:
        return parameters["embedding"][batch["inputs"].T]
    return batch["inputs"].swapaxes(0, 1).astype(np.float64)


def _mask(workload: Workload, batch: Batch) -> Booleans | None:
    if not workload.variable_length:
        return None
    mask: Booleans = np.arange(workload.steps)[:, None] < batch["lengths"]
    return mask


def _step_forward(parameters: dict[str, Floats], batch: Batch) -> Floats:
    """The state after the step, `[hidden, batch]`."""
    state, inputs = (np.asarray(batch[name], np.float64) for name in ("state", "inputs"))
    next_h: Floats = np.tanh(parameters["W_h"] @ state.T + parameters["W_x"] @ inputs.T)
    return next_h


def _step_loss_and_gradients(parameters: dict[str, Floats], batch: Batch) -> tuple[float, dict[str, Floats]]:
    next_h = _step_forward(parameters, batch)
    d_sum = 1 - next_h**2  # the gradient with respect to the argument of tanh
    return float(next_h.sum()), {"W_h": d_sum @ batch["state"], "W_x": d_sum @ batch["inputs"]}
