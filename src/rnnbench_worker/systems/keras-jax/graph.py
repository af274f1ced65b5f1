"""Keras on JAX builds JAX's graphs: of the function that `fit` or `predict` calls."""

import jax

from rnnbench_worker.systems.jax.graph import record_operators, traced_graphs


def graphs(job, make):
    program, fed = make()
    if job["execution"].startswith("eager"):
        return [record_operators(lambda: program.call_of(job["phase"])(fed))]
    function, data = program.function_of(job["phase"], fed)
    # Keras jits inside its function, which takes an iterator: seen from outside it is one call.
    return traced_graphs(jax.jit(lambda state: function(state, iter([data]))).trace(program._take_state()))
