"""A TensorFlow network as a program: feeding, stepping, and reading back what it computed."""

import tensorflow as tf

from rnnbench_worker.batches import as_int32, steps_first, with_lengths
from rnnbench_worker.canonical import added, averaged
from rnnbench_worker.program import Program
from rnnbench_worker.training import BETA_1

from .adam import Adam
from .device import device_of, peak_bytes, place_of, wait_for


class TensorFlowProgram(Program):
    """Two functions, whole, as the execution compiles them: the logits, and a training step."""

    def __init__(self, job, network, compiled, parameters):
        self._workload = job["workload"]
        self._network = network
        self._place = place_of(job)
        with tf.device(self._place):
            self._variables = tf.nest.map_structure(tf.Variable, network.own(parameters))
            self._flat = tf.nest.flatten(self._variables)
            self._adam = Adam(self._flat) if job["phase"] == "train" else None
        self._forward = compiled(self._logits)
        self._train = compiled(self._step)

    @property
    def device(self):
        return device_of(self._flat[0])

    # --- data ---

    def stage(self, batch):
        return as_int32(with_lengths(batch, self._workload))

    def feed(self, staged):
        with tf.device(self._place):
            return {name: tf.convert_to_tensor(array) for name, array in staged.items()}

    # --- computing ---

    def _logits(self, batch):
        return self._network.logits(self._variables, batch)

    def _step(self, batch):
        with tf.GradientTape() as tape:
            loss = self._network.loss(self._variables, batch)
        self._adam.apply(tape.gradient(loss, self._flat))
        return loss

    def forward(self, fed):
        with tf.device(self._place):
            return self._forward(fed)

    def train(self, fed):
        with tf.device(self._place):
            return self._train(fed)

    def sync(self, handle):
        wait_for(self._place)

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return steps_first(handle.numpy())

    def gradients(self, fed):
        """Read from the training step itself: from nothing, Adam's first moment becomes (1 - β1) × gradient."""
        everything = self._flat + self._adam.state()
        before = [variable.numpy() for variable in everything]
        self._adam.reset()
        self.train(fed)
        gradients = [first.numpy() / (1 - BETA_1) for first in self._adam.first]
        for variable, value in zip(everything, before):
            variable.assign(value)
        packed = tf.nest.pack_sequence_as(self._variables, gradients)
        return self._network.canonical(packed, averaged)

    def parameters(self):
        values = tf.nest.map_structure(lambda variable: variable.numpy(), self._variables)
        return self._network.canonical(values, added)

    def parameter_count(self):
        return sum(int(tf.size(variable)) for variable in self._flat)

    def peak_device_bytes(self):
        return peak_bytes(self._place)
