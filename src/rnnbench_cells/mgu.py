"""The minimal gated unit (Zhou et al. 2016): one gate."""

STATES = ("h",)
REMEMBER = {0: -1.0}
SECOND_BIAS = 0


def parameters(width, hidden):
    return {"w": (width, 2 * hidden), "u": (hidden, hidden), "v": (hidden, hidden), "b": (2 * hidden,)}


def step(ops, weights, x, state):
    h = state["h"]
    xf, xn = ops.split(ops.matmul(x, weights["w"]) + weights["b"], 2)
    f = ops.sigmoid(xf + ops.matmul(h, weights["u"]))
    n = ops.tanh(xn + ops.matmul(f * h, weights["v"]))
    return {"h": (1 - f) * h + f * n}
