"""cuDNN's LSTM, all layers in one call, only on CUDA. Its weights are one flat array in cuDNN's own layout.

The layout is written down here, because TensorFlow's own operator for it (CudnnRNNCanonicalToParamsV2) aborts the
process with cuDNN 9. First come all matrices, layer by layer and within a layer forward before backward: for each
w of the gates i, f, g, o, then u of the same gates, each `[H,in]` row by row. Then come all biases in the same order.
There are two biases; the second starts at zero and is learnt as well.
"""

import numpy as np
import tensorflow as tf

from rnnbench_worker.canonical import GATES, join_gates, layer_directions, split_gates, weight_names


class CudnnStack(object):
    """A stack as `network.py` describes it, whose weights are a single array."""

    def __init__(self, job):
        self._workload = job["workload"]
        self._precision = tf.bfloat16 if job["precision"] == "bf16" else tf.float32  # TF32 is a setting of the process
        self._options = {
            "rnn_mode": "lstm",
            "input_mode": "linear_input",
            "direction": "bidirectional" if len(self._workload["directions"]) == 2 else "unidirectional",
            "is_training": job["phase"] == "train",  # otherwise nothing is kept for a backward pass
        }

    def __call__(self, weights, xs, lengths):
        triples = layer_directions(self._workload)
        zeros = tf.zeros([len(triples), xs.shape[1], self._workload["hidden"]], self._precision)
        given = {
            "input": tf.cast(xs, self._precision),
            "input_h": zeros,
            "input_c": zeros,
            "params": tf.cast(weights["stack"][0], self._precision),
        }
        given.update(self._options)
        if lengths is None:  # the operator without lengths fails with cuDNN 9
            lengths = tf.fill([xs.shape[1]], xs.shape[0])
        output = tf.raw_ops.CudnnRNNV3(sequence_lengths=lengths, time_major=True, **given).output
        return tf.cast(output, tf.float32)

    def from_canonical(self, parameters):
        matrices, biases = [], []
        for layer, direction in layer_directions(self._workload):
            w, u, b = [parameters[name] for name in weight_names(layer, direction)]
            matrices += [gate.T for gate in split_gates(w) + split_gates(u)]
            biases += [b, np.zeros_like(b)]
        return {"stack": [np.concatenate([array.ravel() for array in matrices + biases])]}

    def to_canonical(self, weights, join):
        """The inverse, for values and for gradients alike; `join` makes one bias of two."""
        hidden, triples = self._workload["hidden"], layer_directions(self._workload)
        widths = [width for layer, _ in triples for width in (self._input_width(layer), hidden)]
        sizes = [len(GATES) * hidden * width for width in widths] + [len(GATES) * hidden] * len(widths)
        parts = np.split(weights["stack"][0], np.cumsum(sizes)[:-1])
        matrices = [
            join_gates([gate.T for gate in part.reshape(len(GATES), hidden, width)])
            for part, width in zip(parts, widths)
        ]
        biases = parts[len(widths) :]
        parameters = {}
        for index, (layer, direction) in enumerate(triples):
            first, second = 2 * index, 2 * index + 1
            arrays = (matrices[first], matrices[second], join(biases[first], biases[second]))
            parameters.update(zip(weight_names(layer, direction), arrays))
        return parameters

    def _input_width(self, layer):
        workload = self._workload
        return workload["hidden"] * len(workload["directions"]) if layer else workload["input_width"]
