"""An LSTM whose gates see the cell state (Gers and Schmidhuber 2000)."""

STATES = ("h", "c")
REMEMBER = {0: -0.5, 1: 1.0}
SECOND_BIAS = 0


def parameters(width, hidden):
    return {"w": (width, 4 * hidden), "u": (hidden, 4 * hidden), "b": (4 * hidden,), "p": (3 * hidden,)}


def step(ops, weights, x, state):
    gates = ops.matmul(x, weights["w"]) + ops.matmul(state["h"], weights["u"]) + weights["b"]
    i, f, g, o = ops.split(gates, 4)
    pi, pf, po = ops.split(weights["p"], 3)
    c = ops.sigmoid(f + pf * state["c"]) * state["c"] + ops.sigmoid(i + pi * state["c"]) * ops.tanh(g)
    return {"h": ops.sigmoid(o + po * c) * ops.tanh(c), "c": c}
