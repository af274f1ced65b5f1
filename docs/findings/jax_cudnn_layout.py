"""Inside jit, jax.experimental.rnn.lstm reads a transposed array as if it were not transposed.

Run it with a Python that has JAX with CUDA. It prints the relative error of the output and of the weights' gradient,
compared with JAX's own lstm_ref: once with the input as it is in memory, once with it transposed inside jit.
"""

import jax
import jax.numpy as jnp
from jax.experimental import rnn
from jax.experimental.layout import Layout, with_layout_constraint

BATCH, STEPS, WIDTH, HIDDEN = 5, 6, 7, 8
SHAPE = {"input_size": WIDTH, "hidden_size": HIDDEN, "num_layers": 1, "bidirectional": False}
jax.config.update("jax_default_matmul_precision", "highest")


def cudnn(xs, weights, zeros, lengths):
    return rnn.lstm(xs, zeros, zeros, weights, lengths, dropout=0.0, **SHAPE)[0]


def constrained(xs, weights, zeros, lengths):
    """The same, with the arrays constrained to the layout that the call assumes."""
    plain = Layout(major_to_minor=(0, 1, 2))
    return with_layout_constraint(cudnn(with_layout_constraint(xs, plain), weights, zeros, lengths), plain)


def reference(xs, weights, zeros, lengths):
    by_kind = rnn.unpack_lstm_weights(weights, **SHAPE)
    return rnn.lstm_ref(xs, zeros, zeros, *by_kind, lengths, WIDTH, HIDDEN, 1, 0.0, False)[0]


def run(lstm, transposed):
    keys = jax.random.split(jax.random.key(0), 3)
    xs = jax.random.normal(keys[0], (BATCH, STEPS, WIDTH))
    weights = 0.3 * jax.random.normal(keys[1], (rnn.get_num_params_in_lstm(**SHAPE),))
    pull = jax.random.normal(keys[2], (BATCH, STEPS, HIDDEN))
    zeros, lengths = jnp.zeros((1, BATCH, HIDDEN)), jnp.full(BATCH, STEPS, jnp.int32)
    given, weigh = (jnp.swapaxes(array, 0, 1) for array in (xs, pull)) if transposed else (xs, pull)

    @jax.jit
    def loss(weights, given, weigh):
        ys = lstm(jnp.swapaxes(given, 0, 1) if transposed else given, weights, zeros, lengths)
        ys = jnp.swapaxes(ys, 0, 1) if transposed else ys
        return (ys * weigh).sum(), ys

    gradient, ys = jax.jit(jax.grad(loss, has_aux=True))(weights, given, weigh)
    return jnp.swapaxes(ys, 0, 1) if transposed else ys, gradient


def error(found, expected):
    return float(jnp.linalg.norm(found - expected) / jnp.linalg.norm(expected))


print("JAX", jax.__version__)
expected = run(reference, False)
for name, lstm in (("lstm", cudnn), ("lstm with layouts constrained", constrained)):
    for transposed in (False, True):
        errors = [error(found, wanted) for found, wanted in zip(run(lstm, transposed), expected, strict=True)]
        how = "transposed" if transposed else "as it lies"
        print(f"{name}, {how}: output {errors[0]:.1e}, gradient {errors[1]:.1e}")
