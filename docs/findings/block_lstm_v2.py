"""BlockLSTMV2's registered gradient is not the gradient of what it computes; finite differences show it.

Run it with a Python that has TensorFlow 2; `rnnbench env create tensorflow` prints the path of one.
"""

import numpy as np
import tensorflow as tf

STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 5, 6
random = np.random.default_rng(0)
xs, w, b, pull = (
    tf.constant(random.uniform(-1, 1, shape), tf.float32)
    for shape in [(STEPS, BATCH, WIDTH), (WIDTH + HIDDEN, 4 * HIDDEN), (4 * HIDDEN,), (STEPS, BATCH, HIDDEN)]
)
ZEROS, NONE = tf.zeros([BATCH, HIDDEN]), tf.zeros([HIDDEN])


def inputs(w):
    return {
        "seq_len_max": tf.constant(STEPS, tf.int64), "x": xs, "cs_prev": ZEROS, "h_prev": ZEROS,
        "w": w, "wci": NONE, "wcf": NONE, "wco": NONE, "b": b,
    }  # fmt: skip


def loss_v1(w):
    made = tf.raw_ops.BlockLSTM(forget_bias=0.0, cell_clip=-1.0, use_peephole=False, **inputs(w))
    return tf.reduce_sum(made.h * pull)


def loss_v2(w):
    made = tf.raw_ops.BlockLSTMV2(cell_clip=0.0, use_peephole=False, **inputs(w))
    return tf.reduce_sum(made.h * pull)


def finite_differences(loss, step=1e-2):
    found = np.zeros(w.shape)
    for index in np.ndindex(*w.shape):
        bump = np.zeros(w.shape, np.float32)
        bump[index] = step
        found[index] = (float(loss(w + bump)) - float(loss(w - bump))) / (2 * step)
    return found


def kernel_gradient(w):
    """What the registered gradient should call: the gradient kernel of the same version."""
    made = tf.raw_ops.BlockLSTMV2(cell_clip=0.0, use_peephole=False, **inputs(w))
    kept = {name: getattr(made, name) for name in ("i", "cs", "f", "o", "ci", "co", "h")}
    return tf.raw_ops.BlockLSTMGradV2(
        cs_grad=tf.zeros_like(made.cs), h_grad=pull, use_peephole=False, **inputs(w), **kept
    ).w_grad


def registered_gradient(loss):
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = loss(w)
    return tape.gradient(value, w)


def error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


print("TensorFlow", tf.__version__)
first, second = finite_differences(loss_v1), finite_differences(loss_v2)
print(f"BlockLSTM,   registered gradient: relative error {error(registered_gradient(loss_v1).numpy(), first):.1e}")
print(f"BlockLSTMV2, registered gradient: relative error {error(registered_gradient(loss_v2).numpy(), second):.1e}")
print(f"BlockLSTMV2, BlockLSTMGradV2:     relative error {error(kernel_gradient(w).numpy(), second):.1e}")
