"""Loops over time, called as `loop(step, state, sequences, reverse)`: the outputs of all steps.

`sequences` is a list of tensors with time first, `step(state, turn)` gives the new state and an output.
"""

import tensorflow as tf


def python_loop(step, state, sequences, reverse):
    """One turn after the other: op by op when nothing is compiled, unrolled when something is."""
    # Taken apart at once: the gradient of `sequence[t]` is a tensor as long as the sequence, for each t.
    turns = list(zip(*[tf.unstack(sequence) for sequence in sequences]))
    outputs = []
    for turn in reversed(turns) if reverse else turns:
        state, output = step(state, turn)
        outputs.append(output)
    return tf.stack(outputs[::-1] if reverse else outputs)


def while_loop(step, state, sequences, reverse):
    """The loop stays a loop in the graph: tf.while_loop over TensorArrays."""
    steps = sequences[0].shape[0]
    # XLA must know every shape, and how often the loop turns at most.
    arrays = [
        tf.TensorArray(sequence.dtype, size=steps, element_shape=sequence.shape[1:]).unstack(sequence)
        for sequence in sequences
    ]
    outputs = tf.TensorArray(tf.float32, size=steps, element_shape=state[0].shape)

    def within(turn, *carried):
        return turn < steps

    def body(turn, outputs, *state):
        t = steps - 1 - turn if reverse else turn
        state, output = step(state, [array.read(t) for array in arrays])
        return (turn + 1, outputs.write(t, output)) + tuple(state)

    start = (tf.constant(0), outputs) + tuple(state)
    stacked = tf.while_loop(within, body, start, maximum_iterations=steps)[1].stack()
    stacked.set_shape([steps] + list(state[0].shape))  # which 2.0 forgets
    return stacked
