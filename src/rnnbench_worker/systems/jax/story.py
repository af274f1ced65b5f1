"""Seed 003's story in JAX: tracing writes a jaxpr, way back included, before anything is computed."""

import re

import jax
import numpy as np

from rnnbench_worker.graph_story import BACKWARD, BEFORE, Story, described, statements

from .elman import ElmanStep
from .graph import jaxpr_graph

SIXTH = "loss, gradients = jax.jit(jax.value_and_grad(step))(weights, x, prev_h)"


def story(job, parameters, batch):
    step = ElmanStep()
    _, first = statements(ElmanStep.next_h)
    _, last = statements(ElmanStep.total)
    function = jax.jit(jax.value_and_grad(step.total))
    arguments = (dict(parameters), batch["inputs"], batch["state"])
    traced = function.trace(*arguments)
    graph = jaxpr_graph(traced.jaxpr)
    told = Story("JAX, jit", graph, first + last + [SIXTH])
    told.mark(BEFORE, born=BEFORE)
    equations = traced.jaxpr.jaxpr.eqns
    start = len(told.fields["of"]) - len(equations)
    for place, equation in enumerate(equations, start):
        scope = str(equation.source_info.name_stack)
        found = re.search(r"statement (\d)", scope)
        if "transpose(" in scope or found is None:
            told.fields["of"][place] = BACKWARD
            told.fields["backward"].append(place)
        else:
            told.fields["of"][place] = int(found.group(1))
    loss, gradients = function(*arguments)
    told.note(
        BEFORE,
        "The jaxpr is complete before anything is computed: the functions were run once with symbols for "
        "numbers, and their derivative was written behind them.",
    )
    told.note(1, "The compiled function runs as one; its statements were run while tracing, with symbols.")
    told.note(4, "What the way back needs of tanh is computed here already: JAX writes it beside the value.")
    told.note(
        BACKWARD,
        "Nothing is walked when it runs: the way back is ordinary equations of the same program, in their order.",
    )
    told.see(5, described("loss", loss))
    told.see(BACKWARD, described("gradient of W_h", gradients["W_h"]))
    told.result(loss, {name: np.asarray(value) for name, value in gradients.items()})
    return told
