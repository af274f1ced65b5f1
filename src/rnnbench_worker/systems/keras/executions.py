"""The executions: what compiles a step, and with `-unrolled` behind it, layers that unroll their loop over time.

What Keras would choose by itself is chosen here by name, because it looks at the machine, not at the job:
TensorFlow's steps, for one, it leaves to XLA wherever the machine has a GPU, except around a cuDNN layer.
"""

from collections import namedtuple

Execution = namedtuple("Execution", "unroll use_cudnn run_eagerly jit_compile")


def execution_of(name):
    mode, _, loop = name.partition("-")
    return Execution(
        unroll=loop == "unrolled",
        # XLA compiles no cuDNN operator of TensorFlow's: Keras would silently leave XLA.
        use_cudnn=False if mode == "xla" else "auto",
        run_eagerly=mode == "eager",
        jit_compile=mode in ("xla", "jit", "compile"),
    )
