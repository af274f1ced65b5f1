"""A network of Lasagne's layers as a program: shared variables, and a function of them compiled at its first call."""

import sys
import types

import numpy as np
import theano
import theano.tensor as T
from theano.tensor.signal import pool

from rnnbench_worker.canonical import join_gates, split_gates, step_mask, weight_names
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE
from rnnbench_worker.shared.theano import FunctionProgram, host_copy

# Lasagne 0.1 imports a module that Theano 1.0 no longer has. Nothing here calls what was in it.
downsample = types.ModuleType("theano.tensor.signal.downsample")
downsample.max_pool_2d = pool.pool_2d
sys.modules[downsample.__name__] = downsample
sys.modules["theano.tensor.signal"].downsample = downsample

import lasagne  # noqa: E402

#: Lasagne's names of the gates, in the canonical order.
GATES = ("ingate", "forgetgate", "cell", "outgate")


class LasagneProgram(FunctionProgram):
    """Its function takes batches of any size, and of any length unless a mask has fixed it."""

    def __init__(self, job, parameters):
        super(LasagneProgram, self).__init__(job)
        self._network = Network(self._workload, parameters)
        self._shared = [shared for parts in self._network.shared.values() for shared in parts]

    # --- computing ---

    def forward(self, fed):
        if self.function is None:
            self.function = self._compiled(self._network.logits(), {})
        return self._call(fed), fed["inputs"].shape[:2]

    def train(self, fed):
        self._make_step()
        return self._call(fed)

    def _make_step(self):
        if self.function is None:
            loss = self._network.loss()
            # Lasagne adds epsilon before the bias correction: scaled like this it is the published one at the first
            # step, and smaller later.
            epsilon = EPSILON * (1 - BETA_2) ** 0.5
            updates = lasagne.updates.adam(loss, self._shared, LEARNING_RATE, BETA_1, BETA_2, epsilon)
            self._state = list(updates)  # both moments and the value of each parameter; last the number of steps
            self._moments = self._state[:-1:3]
            self.function = self._compiled(loss, updates)

    def _compiled(self, result, updates):
        return theano.function(list(self._network.batch.values()), result, updates=updates)

    def _call(self, fed):
        return self.function(*[fed[name] for name in self._network.batch])

    # --- reading back ---

    def logits(self, handle):
        logits, batch_and_steps = handle
        if self._workload["head_on"] == "last-step":
            return np.asarray(logits)
        return np.reshape(logits, batch_and_steps + (self._workload["classes"],))

    def gradients(self, fed):
        """Read from the training step itself: Adam's first moment, starting from zero, becomes (1 - β1) × gradient."""
        self._make_step()
        before = [host_copy(shared) for shared in self._state]
        for moment in self._moments:
            moment.set_value(np.zeros_like(host_copy(moment)))
        self.train(fed)
        gradients = self._to_canonical([host_copy(moment) / (1 - BETA_1) for moment in self._moments])
        for shared, value in zip(self._state, before):
            shared.set_value(value)
        return gradients

    def parameters(self):
        return self._to_canonical([host_copy(shared) for shared in self._shared])

    def _to_canonical(self, values):
        """Values in the order of the shared variables, joined where there is one for each gate."""
        values = iter(values)
        return {name: join_gates([next(values) for _ in parts]) for name, parts in self._network.shared.items()}

    def parameter_count(self):
        return sum(host_copy(shared).size for shared in self._shared)


class Network(object):
    """Embedding or features, LSTMLayers, head. `shared` has their variables by canonical name, one for each gate."""

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
            inside = step_mask(T.arange(steps), self.batch["lengths"])[:, :, 0].T
            mask = layers.InputLayer((batch, steps), T.cast(inside, "float32"))
        # The outer loop runs over depth, the inner one over time.
        for layer in range(workload["layers"]):
            both = [self._lstm(found, mask, parameters, layer, direction) for direction in workload["directions"]]
            found = both[0] if len(both) == 1 else layers.ConcatLayer(both, axis=2)
        if workload["head_on"] == "last-step":
            found = layers.SliceLayer(found, -1, axis=1)
        else:
            # As one matrix: a dense layer would treat all steps of a sequence as one vector.
            found = layers.ReshapeLayer(found, (-1, workload["hidden"] * len(workload["directions"])))
        self._head = layers.DenseLayer(
            found, workload["classes"], W=parameters["head.w"], b=parameters.get("head.b"), nonlinearity=None
        )
        self.shared["head.w"] = [self._head.W]
        if workload["head_bias"]:
            self.shared["head.b"] = [self._head.b]

    def _lstm(self, incoming, mask, parameters, layer, direction):
        canonical_names = weight_names(layer, direction)
        gates = {}
        for gate, w, u, b in zip(GATES, *[split_gates(parameters[name]) for name in canonical_names]):
            # Only these arguments: grad_clipping=0 would clip every gradient to zero.
            gates[gate] = lasagne.layers.Gate(W_in=w, W_hid=u, b=b)
        gates["cell"].nonlinearity = lasagne.nonlinearities.tanh
        lstm = lasagne.layers.LSTMLayer(
            incoming, self._workload["hidden"], peepholes=False, backwards=direction == "bwd", mask_input=mask, **gates
        )
        for name, kind in zip(canonical_names, ("W_in_to_", "W_hid_to_", "b_")):
            self.shared[name] = [getattr(lstm, kind + gate) for gate in GATES]
        return lstm

    def logits(self):
        """`[batch × steps, classes]`, or `[batch, classes]`."""
        return lasagne.layers.get_output(self._head)

    def loss(self):
        """Mean cross-entropy."""
        last_step = self._workload["head_on"] == "last-step"
        self.batch["targets"] = T.ivector("targets") if last_step else T.imatrix("targets")
        predictions = T.nnet.softmax(self.logits())
        return lasagne.objectives.categorical_crossentropy(predictions, self.batch["targets"].flatten()).mean()
