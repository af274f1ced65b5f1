"""The executions: a loop over time, and what compiles the step around it.

tf.function traces when it is first called, not when it is made, so that the first call's time holds all
tracing and compiling. AutoGraph stays off: the loops are written as what they are meant to be.
"""

from collections import namedtuple

import tensorflow as tf

from .loops import python_loop, while_loop

Execution = namedtuple("Execution", "loop compiled native_ctc")


def as_written(function):
    return function


def graph(function):
    return tf.function(function, autograph=False)


def xla(function):
    """All of it or nothing: an operator that XLA cannot compile is an error."""
    return tf.function(function, autograph=False, jit_compile=True)


EXECUTIONS = {
    "eager": Execution(python_loop, as_written, native_ctc=True),
    "graph": Execution(python_loop, graph, native_ctc=True),
    "graph-while": Execution(while_loop, graph, native_ctc=True),
    # XLA knows no sparse tensors, hence not the CTC kernel.
    "xla": Execution(python_loop, xla, native_ctc=False),
    "xla-while": Execution(while_loop, xla, native_ctc=False),
}
