"""The GRU that vendors compute: the reset gate is applied after the product with the state (cuDNN, nn.GRU)."""

STATES = ("h",)
REMEMBER = {1: 1.0}
SECOND_BIAS = 2


def parameters(width, hidden):
    return {"w": (width, 3 * hidden), "u": (hidden, 3 * hidden), "b": (3 * hidden,), "c": (hidden,)}


def step(ops, weights, x, state):
    h = state["h"]
    xr, xz, xn = ops.split(ops.matmul(x, weights["w"]) + weights["b"], 3)
    hr, hz, hn = ops.split(ops.matmul(h, weights["u"]), 3)
    r, z = ops.sigmoid(xr + hr), ops.sigmoid(xz + hz)
    n = ops.tanh(xn + r * (hn + weights["c"]))
    return {"h": (1 - z) * n + z * h}
