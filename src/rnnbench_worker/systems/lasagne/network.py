"""The whole network as Lasagne's layers: embedding or features, LSTMLayers, head; and its variables by name."""

import theano.tensor as T

from rnnbench_worker.canonical import names, split_gates
from rnnbench_worker.sequences import within

from .imported import lasagne

#: Lasagne's names of the gates, in the canonical order.
GATES = ("ingate", "forgetgate", "cell", "outgate")


class Network(object):
    """Layers that hold the parameters as shared variables; `shared` has them by canonical name, one per gate."""

    def __init__(self, workload, parameters):
        self._workload = workload
        self.shared = {}
        layers = lasagne.layers
        batch, steps = workload["batch"], workload["steps"]
        if workload["vocabulary"]:
            self.batch = {"inputs": T.imatrix("inputs")}
            found = layers.InputLayer((batch, steps), self.batch["inputs"])
            sizes = workload["vocabulary"], workload["embedding"]
            found = layers.EmbeddingLayer(found, sizes[0], sizes[1], W=parameters["embedding"])
            self.shared["embedding"] = [found.W]
        else:
            self.batch = {"inputs": T.tensor3("inputs")}
            found = layers.InputLayer((batch, steps, workload["features"]), self.batch["inputs"])
        mask = None
        if workload["variable_length"]:
            self.batch["lengths"] = T.ivector("lengths")
            inside = within(T.arange(steps), self.batch["lengths"])[:, :, 0].T
            mask = layers.InputLayer((batch, steps), T.cast(inside, "float32"))
        # The seeds' order: outer loop over depth, inner loop over time.
        for layer in range(workload["layers"]):
            both = [self._lstm(found, mask, parameters, layer, direction) for direction in workload["directions"]]
            found = both[0] if len(both) == 1 else layers.ConcatLayer(both, axis=2)
        if workload["head_on"] == "last-step":
            found = layers.SliceLayer(found, -1, axis=1)
        else:
            # One matrix: a dense layer would take all steps of a sequence for one vector.
            found = layers.ReshapeLayer(found, (-1, workload["hidden"] * len(workload["directions"])))
        self._head = layers.DenseLayer(
            found, workload["classes"], W=parameters["head.w"], b=parameters.get("head.b"), nonlinearity=None
        )
        self.shared["head.w"] = [self._head.W]
        if workload["head_bias"]:
            self.shared["head.b"] = [self._head.b]

    def _lstm(self, incoming, mask, parameters, layer, direction):
        of = names(layer, direction)
        gates = {}
        for gate, w, u, b in zip(GATES, *[split_gates(parameters[name]) for name in of]):
            # No more than these: grad_clipping=0 would clip every gradient to zero.
            gates[gate] = lasagne.layers.Gate(W_in=w, W_hid=u, b=b)
        gates["cell"].nonlinearity = lasagne.nonlinearities.tanh
        made = lasagne.layers.LSTMLayer(
            incoming, self._workload["hidden"], peepholes=False, backwards=direction == "bwd", mask_input=mask, **gates
        )
        for name, kind in zip(of, ("W_in_to_", "W_hid_to_", "b_")):
            self.shared[name] = [getattr(made, kind + gate) for gate in GATES]
        return made

    def logits(self):
        """`[batch × steps, classes]`, or `[batch, classes]`."""
        return lasagne.layers.get_output(self._head)

    def loss(self):
        """Mean cross-entropy."""
        last_step = self._workload["head_on"] == "last-step"
        self.batch["targets"] = T.ivector("targets") if last_step else T.imatrix("targets")
        predictions = T.nnet.softmax(self.logits())
        return lasagne.objectives.categorical_crossentropy(predictions, self.batch["targets"].flatten()).mean()
