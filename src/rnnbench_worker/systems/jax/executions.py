"""The executions: a loop over time, and whether the step around it is compiled.

A loop is called like `lax.scan`, `loop(step, state, sequences, reverse)`, and gives the outputs of all
steps; where one operator does them all there is none. `compiled` is `jax.jit` or nothing at all. It
compiles when it is called, not when it is made, so that the first call's time holds all tracing and
compiling.
"""

from collections import namedtuple
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

Execution = namedtuple("Execution", "loop compiled")


def python_loop(step, state, sequences, reverse):
    """One turn after the other: op by op when nothing is jitted, unrolled when something is."""
    # Taken apart at once: the gradient of `sequence[t]` is an array as long as the sequence, for each t.
    leaves, structure = jax.tree.flatten(sequences)
    turns = [structure.unflatten(turn) for turn in zip(*[jnp.unstack(leaf) for leaf in leaves])]
    outputs = []
    for turn in reversed(turns) if reverse else turns:
        state, output = step(state, turn)
        outputs.append(output)
    return jnp.stack(outputs[::-1] if reverse else outputs)


def scan_loop(step, state, sequences, reverse, unroll=1):
    """The loop stays a loop in the compiled program, `unroll` steps a turn."""
    return lax.scan(step, state, sequences, reverse=reverse, unroll=unroll)[1]


def as_written(function, donate_argnums=()):
    """Not compiled as a whole. Each operator still is by itself, once per shape: JAX has no other way."""
    return function


EXECUTIONS = {
    "eager": Execution(python_loop, as_written),
    "jit": Execution(None, jax.jit),
    "jit-unrolled": Execution(python_loop, jax.jit),
    "jit-scan": Execution(scan_loop, jax.jit),
    "jit-scan-unroll8": Execution(partial(scan_loop, unroll=8), jax.jit),
}
