"""The single tanh step of Lazarus's slides (2019) in JAX, and its story.

Tracing writes a jaxpr, backward pass included, before anything is computed.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np

from rnnbench_worker.story import BACKWARD, BEFORE, Story, describe_array, find_statements

from .inspection import jaxpr_graph

SIXTH_STATEMENT = "loss, gradients = jax.jit(jax.value_and_grad(step))(weights, x, prev_h)"


class ElmanStep(object):
    """Takes the place of `network.Network` in a program. Its statements are scopes, which the jaxpr keeps."""

    def logits(self, parameters, batch):
        return self.next_h(parameters, batch["inputs"], batch["state"])

    def loss(self, parameters, batch):
        return self.total(parameters, batch["inputs"], batch["state"])

    def next_h(self, parameters, x, prev_h):
        W_h, W_x = parameters["W_h"], parameters["W_x"]
        with jax.named_scope("statement 1"):
            h2h = jnp.matmul(W_h, prev_h.T)
        with jax.named_scope("statement 2"):
            i2h = jnp.matmul(W_x, x.T)
        with jax.named_scope("statement 3"):
            next_h = h2h + i2h
        with jax.named_scope("statement 4"):
            next_h = jnp.tanh(next_h)
        return next_h  # noqa: RET504  the slides assign first

    def total(self, parameters, x, prev_h):
        next_h = self.next_h(parameters, x, prev_h)
        with jax.named_scope("statement 5"):
            loss = jnp.sum(next_h)
        return loss  # noqa: RET504

    def from_canonical(self, arrays):
        return dict(arrays)

    def to_canonical(self, parameters, join):
        return dict(parameters)


def story(job, parameters, batch):
    step = ElmanStep()
    _, first = find_statements(ElmanStep.next_h)
    _, last = find_statements(ElmanStep.total)
    function = jax.jit(jax.value_and_grad(step.total))
    arguments = (dict(parameters), batch["inputs"], batch["state"])
    traced = function.trace(*arguments)
    graph = jaxpr_graph(traced.jaxpr)
    collected = Story("JAX, jit", graph, first + last + [SIXTH_STATEMENT])
    collected.mark(BEFORE, born=BEFORE)
    equations = traced.jaxpr.jaxpr.eqns
    start = len(collected.fields["of"]) - len(equations)
    for place, equation in enumerate(equations, start):
        scope = str(equation.source_info.name_stack)
        found = re.search(r"statement (\d)", scope)
        if "transpose(" in scope or found is None:
            collected.fields["of"][place] = BACKWARD
            collected.fields["backward"].append(place)
        else:
            collected.fields["of"][place] = int(found.group(1))
    loss, gradients = function(*arguments)
    collected.note(
        BEFORE,
        "The jaxpr is complete before anything is computed: the functions were run once with symbols instead of "
        "numbers, and their derivative was written after them.",
    )
    collected.note(1, "The compiled function runs as a whole; its statements ran during tracing, with symbols.")
    collected.note(4, "What the backward pass needs of tanh is computed here already, next to the value.")
    collected.note(
        BACKWARD,
        "No graph is traversed at run time: the backward pass consists of ordinary equations of the same program.",
    )
    collected.show_value(5, describe_array("loss", loss))
    collected.show_value(BACKWARD, describe_array("gradient of W_h", gradients["W_h"]))
    collected.result(loss, {name: np.asarray(value) for name, value in gradients.items()})
    return collected
