"""The sLSTM (Beck et al. 2024, xLSTM): exponential gates, kept in range by a fourth state.

Its input gate has no bias: it would scale c and n alike, and so cancel out of the output.
"""

STATES = ("h", "c", "n", "m")
REMEMBER = {0: 1.0}
SECOND_BIAS = 0


def parameters(width, hidden):
    return {"w": (width, 4 * hidden), "u": (hidden, 4 * hidden), "b": (3 * hidden,)}


def step(ops, weights, x, state):
    i, f, g, o = ops.split(ops.matmul(x, weights["w"]) + ops.matmul(state["h"], weights["u"]), 4)
    bf, bg, bo = ops.split(weights["b"], 3)
    kept = state["m"] - ops.softplus(-f - bf)  # with the logarithm of a sigmoid
    m = ops.constant(ops.maximum(kept, i))  # the output does not depend on it, and so nor does its gradient
    keep, take = ops.exp(kept - m), ops.exp(i - m)
    c = keep * state["c"] + take * ops.tanh(g + bg)
    n = keep * state["n"] + take
    return {"h": ops.sigmoid(o + bo) * c / ops.maximum(n, 1e-6), "c": c, "n": n, "m": m}
