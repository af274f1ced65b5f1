"""A TensorFlow 1 network as a program: one graph, one session, batches by feed_dict as the seeds had them."""

import numpy as np
import tensorflow as tf

from rnnbench_worker.batches import as_int32, steps_first, with_lengths
from rnnbench_worker.program import Program
from rnnbench_worker.systems.blank_last import blank_first, labels_before_blank
from rnnbench_worker.training import BETA_1

from .adam import Adam
from .network import Network
from .settings import make_session
from .stacks import make_stack


class TensorFlow1Program(Program):
    """Variables are made now, the operators around them at the first call."""

    def __init__(self, job, parameters):
        self._workload = job["workload"]
        self._train_phase = job["phase"] == "train"
        self._graph = tf.Graph()
        self._session = make_session(job, self._graph)
        with self._graph.as_default():
            stack = make_stack(self._workload, job["granularity"])
            self._network = Network(self._workload, stack, parameters)
        self._variables = self._network.variables()
        self._load(self._variables, self._network.own(parameters))
        self._optimiser = Adam()
        self._fetches = None

    # --- data ---

    def stage(self, batch):
        staged = as_int32(with_lengths(batch, self._workload))
        if self._workload["loss"] == "ctc":
            staged["targets"] = sparse(labels_before_blank(staged["targets"]))
        return staged

    def feed(self, staged):
        """The session takes arrays of the host, and copies them itself."""
        needed = self._network.batch
        return {needed[name]: staged[name] for name in needed if self._train_phase or name != "targets"}

    # --- computing ---

    def forward(self, fed):
        if self._fetches is None:
            with self._graph.as_default():
                self._fetches = self._network.logits()
        return self._session.run(self._fetches, feed_dict=fed)

    def train(self, fed):
        self._make_step()
        return self._session.run(self._fetches, feed_dict=fed)[0]

    def _make_step(self):
        if self._fetches is None:
            with self._graph.as_default():
                loss = self._network.loss()
                self._fetches = [loss, self._optimiser.minimize(loss, var_list=self._variables)]
                self._state = self._optimiser.variables()
                self._reset = tf.variables_initializer(self._state)
            self._session.run(self._reset)

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        logits = steps_first(handle)
        return blank_first(logits) if self._workload["loss"] == "ctc" else logits

    def gradients(self, fed):
        """Read from the training step itself: from nothing, Adam's first moment becomes (1 - β1) × gradient."""
        self._make_step()
        everything = self._variables + self._state
        before = self._session.run(everything)
        self._session.run(self._reset)
        self.train(fed)
        moments = [self._optimiser.get_slot(variable, "m") for variable in self._variables]
        gradients = [moment / (1 - BETA_1) for moment in self._session.run(moments)]
        self._load(everything, before)
        return self._network.canonical(gradients)

    def parameters(self):
        return self._network.canonical(self._session.run(self._variables))

    def parameter_count(self):
        return sum(variable.shape.num_elements() for variable in self._variables)

    def _load(self, variables, values):
        for variable, value in zip(variables, values):
            variable.load(value, self._session)


def sparse(labels):
    """Labels as the sparse tensor that CTC wants."""
    rows, columns = np.indices(labels.shape)
    places = np.stack([rows.ravel(), columns.ravel()], axis=1)
    return tf.SparseTensorValue(places.astype(np.int64), labels.ravel(), np.array(labels.shape, np.int64))
