"""The GRU as first published (Cho et al. 2014): the reset gate is applied before the product with the state."""

STATES = ("h",)
REMEMBER = {1: 1.0}
SECOND_BIAS = 0


def parameters(width, hidden):
    return {"w": (width, 3 * hidden), "u": (hidden, 2 * hidden), "v": (hidden, hidden), "b": (3 * hidden,)}


def step(ops, weights, x, state):
    h = state["h"]
    xr, xz, xn = ops.split(ops.matmul(x, weights["w"]) + weights["b"], 3)
    hr, hz = ops.split(ops.matmul(h, weights["u"]), 2)
    r, z = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
    n = ops.tanh(xn + ops.matmul(r * h, weights["v"]))
    return {"h": (1 - z) * n + z * h}
