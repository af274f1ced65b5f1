"""An LSTM with layer normalisation in the step (Ba, Kiros and Hinton 2016)."""

STATES = ("h", "c")
REMEMBER = {0: -0.5, 1: 1.0}
SECOND_BIAS = 0
# Around one, each step would amplify a rounding error: after 100 steps 5,000 times, and no two programs would agree.
GAINS = {"gain_h": 0.25}


def parameters(width, hidden):
    gates = 4 * hidden
    return {
        "w": (width, gates), "u": (hidden, gates), "b": (gates,), "gain_x": (gates,), "gain_h": (gates,),
        "gain_c": (hidden,), "b_c": (hidden,),
    }  # fmt: skip


def step(ops, weights, x, state):
    from_x = ops.layer_norm(ops.matmul(x, weights["w"]), weights["gain_x"], weights["b"])
    from_h = ops.layer_norm(ops.matmul(state["h"], weights["u"]), weights["gain_h"], 0.0)
    i, f, g, o = ops.split(from_x + from_h, 4)
    c = ops.sigmoid(f) * state["c"] + ops.sigmoid(i) * ops.tanh(g)
    return {"h": ops.sigmoid(o) * ops.tanh(ops.layer_norm(c, weights["gain_c"], weights["b_c"])), "c": c}
