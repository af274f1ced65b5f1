"""Seed 003's one recurrent step as a network of JAX's program; each statement is a scope, to be found again."""

import jax
import jax.numpy as jnp


class ElmanStep(object):
    """Stands where `network.Network` stands; the canonical layout is its own."""

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

    def own(self, arrays):
        return dict(arrays)

    def canonical(self, own, join):
        return dict(own)
