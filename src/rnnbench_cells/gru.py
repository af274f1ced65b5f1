"""The GRU that vendors compute: the reset gate is applied after the product with the state (cuDNN, nn.GRU)."""

STATES = ("h",)
REMEMBER = {1: 1.0}
SECOND_BIAS = 2


def parameters(width, hidden):
    # b: of both gates; bx and bh: of the new state, outside of the reset gate's product and within.
    return {"w": (width, 3 * hidden), "u": (hidden, 3 * hidden), "b": (2 * hidden,), "bx": (hidden,), "bh": (hidden,)}


def step(ops, weights, x, state):
    h = state["h"]
    xr, xz, xn = ops.split(ops.matmul(x, weights["w"]), 3)
    hr, hz, hn = ops.split(ops.matmul(h, weights["u"]), 3)
    br, bz = ops.split(weights["b"], 2)
    r, z = ops.sigmoid(xr + hr + br), ops.sigmoid(xz + hz + bz)
    n = ops.tanh(xn + weights["bx"] + r * (hn + weights["bh"]))
    return {"h": (1 - z) * n + z * h}
