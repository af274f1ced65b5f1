"""A leaky unit over the vocabulary of rnnbench_cells: an example for `rnnbench cell`, in every framework."""

STATES = ("h",)


def parameters(width, hidden):
    return {"w": (width, hidden), "u": (hidden, hidden), "b": (hidden,), "leak": (hidden,)}


def step(ops, weights, x, state):
    new = ops.tanh(ops.matmul(x, weights["w"]) + ops.matmul(state["h"], weights["u"]) + weights["b"])
    keep = ops.sigmoid(weights["leak"])
    return {"h": keep * state["h"] + (1 - keep) * new}
