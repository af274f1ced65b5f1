"""The simple recurrent network (Elman 1990): one product, one tanh."""

STATES = ("h",)
REMEMBER = {}  # it cannot
SECOND_BIAS = 1


def parameters(width, hidden):
    return {"w": (width, hidden), "u": (hidden, hidden), "b": (hidden,)}


def step(ops, weights, x, state):
    return {"h": ops.tanh(ops.matmul(x, weights["w"]) + ops.matmul(state["h"], weights["u"]) + weights["b"])}
