"""The sLSTM (Beck et al. 2024, xLSTM): exponential gates, kept in range by a fourth state."""

STATES = ("h", "c", "n", "m")
REMEMBER = {0: -0.5, 1: 1.0}
SECOND_BIAS = 0


def parameters(width, hidden):
    return {"w": (width, 4 * hidden), "u": (hidden, 4 * hidden), "b": (4 * hidden,)}


def step(ops, weights, x, state):
    gates = ops.matmul(x, weights["w"]) + ops.matmul(state["h"], weights["u"]) + weights["b"]
    i, f, g, o = ops.split(gates, 4)
    f = -ops.softplus(-f)  # the logarithm of a sigmoid
    m = ops.constant(ops.maximum(f + state["m"], i))  # the output does not depend on it, so nor does its gradient
    keep, take = ops.exp(f + state["m"] - m), ops.exp(i - m)
    c = keep * state["c"] + take * ops.tanh(g)
    n = keep * state["n"] + take
    return {"h": ops.sigmoid(o) * c / ops.maximum(n, 1e-6), "c": c, "n": n, "m": m}
