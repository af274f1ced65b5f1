"""Seed 003's one recurrent step as a network of TensorFlow's program, statement by statement."""

import tensorflow as tf


def nothing(statement, name, value):
    """What is called when a statement is done; whoever tells the story wants to know."""


class ElmanStep(object):
    """Stands where `network.Network` stands; the canonical layout is its own."""

    def __init__(self, done=nothing):
        self._done = done

    def logits(self, variables, batch):
        W_h, W_x, x, prev_h = variables["W_h"], variables["W_x"], batch["inputs"], batch["state"]
        h2h = tf.matmul(W_h, tf.transpose(prev_h))
        self._done(1, "h2h", h2h)
        i2h = tf.matmul(W_x, tf.transpose(x))
        self._done(2, "i2h", i2h)
        next_h = h2h + i2h
        self._done(3, "next_h", next_h)
        next_h = tf.tanh(next_h)
        self._done(4, "next_h", next_h)
        return next_h

    def loss(self, variables, batch):
        next_h = self.logits(variables, batch)
        loss = tf.reduce_sum(next_h)
        self._done(5, "loss", loss)
        return loss

    def own(self, arrays):
        return dict(arrays)

    def canonical(self, arrays, join):
        return dict(arrays)
