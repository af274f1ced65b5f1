"""A TensorFlow 1 network as a program: one graph, one session, batches by feed_dict as in Braun's benchmarks (2018).

Denormals need no setting: the threads of TensorFlow's pools flush them to zero themselves.
"""

import numpy as np
import tensorflow as tf

from rnnbench_worker.canonical import as_int32, batch_first, blank_first, labels_before_blank, with_lengths
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Program

from .network import Network, make_stack


def make_session(job, graph):
    """A session with the job's threads, within operators and across them; the first one sizes the pools of all."""
    config = tf.ConfigProto(intra_op_parallelism_threads=job["threads"], inter_op_parallelism_threads=job["threads"])
    return tf.Session(graph=graph, config=config)


def describe_device(job):
    with make_session(job, tf.Graph()) as session:
        kinds = {device.device_type for device in session.list_devices()}
        return {
            "versions": {"tensorflow": tf.__version__},
            "device": "cuda" if "GPU" in kinds else "cpu",
            "device_name": "",
            "threads": session._config.intra_op_parallelism_threads,
        }


class TensorFlow1Program(Program):
    """Variables are made at once, the operators around them at the first call."""

    def __init__(self, job, parameters):
        self._workload = job["workload"]
        self._train_phase = job["phase"] == "train"
        self._graph = tf.Graph()
        self._session = make_session(job, self._graph)
        with self._graph.as_default():
            stack = make_stack(self._workload, job["granularity"])
            self._network = Network(self._workload, stack, parameters)
        self._variables = self._network.variables()
        self._load(self._variables, self._network.from_canonical(parameters))
        self._optimiser = Adam()
        self._fetches = None

    # --- data ---

    def stage(self, batch):
        staged = as_int32(with_lengths(batch, self._workload))
        if self._workload["loss"] == "ctc":
            staged["targets"] = sparse_labels(labels_before_blank(staged["targets"]))
        return staged

    def feed(self, staged):
        """The session takes host arrays and copies them itself."""
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
        logits = batch_first(handle)
        return blank_first(logits) if self._workload["loss"] == "ctc" else logits

    def gradients(self, fed):
        """Read from the training step itself: Adam's first moment, starting from zero, becomes (1 - β1) × gradient."""
        self._make_step()
        everything = self._variables + self._state
        before = self._session.run(everything)
        self._session.run(self._reset)
        self.train(fed)
        moments = [self._optimiser.get_slot(variable, "m") for variable in self._variables]
        gradients = [moment / (1 - BETA_1) for moment in self._session.run(moments)]
        self._load(everything, before)
        return self._network.to_canonical(gradients)

    def parameters(self):
        return self._network.to_canonical(self._session.run(self._variables))

    def parameter_count(self):
        return sum(variable.shape.num_elements() for variable in self._variables)

    def _load(self, variables, values):
        for variable, value in zip(variables, values):
            variable.load(value, self._session)


def sparse_labels(labels):
    """Labels as the sparse tensor that the CTC loss takes."""
    rows, columns = np.indices(labels.shape)
    places = np.stack([rows.ravel(), columns.ravel()], axis=1)
    return tf.SparseTensorValue(places.astype(np.int64), labels.ravel(), np.array(labels.shape, np.int64))


class Adam(tf.train.AdamOptimizer):
    """TensorFlow 1's own Adam, with epsilon where it is in the publication."""

    def __init__(self):
        super(Adam, self).__init__(LEARNING_RATE, BETA_1, BETA_2, EPSILON)

    def _prepare(self):
        super(Adam, self)._prepare()
        _, decay = self._get_beta_accumulators()
        # The kernel adds epsilon before the bias correction; scaled like this it is the published one.
        self._epsilon_t = EPSILON * tf.sqrt(1.0 - decay)
