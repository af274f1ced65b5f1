"""The LSTM of the published tables (Hochreiter and Schmidhuber 1997, with the forget gate of Gers 2000)."""

STATES = ("h", "c")
REMEMBER = {0: -0.5, 1: 1.0}
SECOND_BIAS = 4


def parameters(width, hidden):
    return {"w": (width, 4 * hidden), "u": (hidden, 4 * hidden), "b": (4 * hidden,)}


def step(ops, weights, x, state):
    gates = ops.matmul(x, weights["w"]) + ops.matmul(state["h"], weights["u"]) + weights["b"]
    i, f, g, o = ops.split(gates, 4)
    c = ops.sigmoid(f) * state["c"] + ops.sigmoid(i) * ops.tanh(g)
    return {"h": ops.sigmoid(o) * ops.tanh(c), "c": c}
