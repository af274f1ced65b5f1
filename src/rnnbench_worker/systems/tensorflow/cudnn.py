"""All layers in one call: cuDNN's LSTM, on CUDA only. Its weights are one flat array in cuDNN's own layout."""

import numpy as np
import tensorflow as tf

from rnnbench_worker.canonical import directions, join_gates, names, split_gates


class CudnnStack(object):
    """Called like the stacks of stacks.py. Two biases: the second starts at zero and is learnt as well."""

    def __init__(self, workload):
        self._workload = workload
        self._shape = {
            "num_layers": workload["layers"],
            "num_units": workload["hidden"],
            "input_size": workload["input_width"],
        }
        self._kind = {
            "rnn_mode": "lstm",
            "input_mode": "linear_input",
            "direction": "bidirectional" if len(workload["directions"]) == 2 else "unidirectional",
        }

    def __call__(self, weights, xs, lengths):
        workload = self._workload
        layers = workload["layers"] * len(workload["directions"])
        zeros = tf.zeros([layers, xs.shape[1], workload["hidden"]])
        if lengths is None:
            lengths = tf.fill([xs.shape[1]], xs.shape[0])
        return tf.raw_ops.CudnnRNNV3(
            input=xs, input_h=zeros, input_c=zeros, params=weights["stack"][0], sequence_lengths=lengths,
            is_training=True, time_major=True, **self._kind
        ).output  # fmt: skip

    def own(self, parameters):
        """cuDNN's canonical form: per layer and direction eight matrices [H,in] and eight biases, gates i, f, g, o."""
        weights, biases = [], []
        for layer, direction in directions(self._workload):
            w, u, b = [parameters[name] for name in names(layer, direction)]
            weights += [gate.T for gate in split_gates(w) + split_gates(u)]
            biases += split_gates(b) + split_gates(np.zeros_like(b))
        flat = tf.raw_ops.CudnnRNNCanonicalToParamsV2(weights=weights, biases=biases, **self._shape, **self._kind)
        return {"stack": [flat.numpy()]}

    def canonical(self, weights, join):
        count = 8 * len(directions(self._workload))
        made = tf.raw_ops.CudnnRNNParamsToCanonicalV2(
            params=weights["stack"][0], num_params_weights=count, num_params_biases=count, **self._shape, **self._kind
        )
        parameters = {}
        for index, (layer, direction) in enumerate(directions(self._workload)):
            part = slice(8 * index, 8 * index + 8)
            matrices = [matrix.numpy().T for matrix in made.weights[part]]
            vectors = [vector.numpy() for vector in made.biases[part]]
            b = join(join_gates(vectors[:4]), join_gates(vectors[4:]))
            parameters.update(zip(names(layer, direction), (join_gates(matrices[:4]), join_gates(matrices[4:]), b)))
        return parameters
