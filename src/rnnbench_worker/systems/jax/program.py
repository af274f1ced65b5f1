"""A JAX network as a program: feeding, stepping, and reading back what it computed."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rnnbench_worker.batches import as_int32, steps_first, with_lengths
from rnnbench_worker.canonical import added, averaged
from rnnbench_worker.program import Program
from rnnbench_worker.training import BETA_1, BETA_2, EPSILON, LEARNING_RATE

from .settings import device_name


class JaxProgram(Program):
    """Two functions, whole, as the execution compiles them: the logits, and a training step."""

    def __init__(self, job, network, compiled, parameters):
        self._workload = job["workload"]
        self._network = network
        # Copied, because the first training step gives its memory away.
        self._parameters = bound(jax.tree.map(jnp.array, network.own(parameters)))
        self._device = next(iter(jax.tree.leaves(self._parameters)[0].devices()))
        self._optimiser = optax.adam(LEARNING_RATE, b1=BETA_1, b2=BETA_2, eps=EPSILON)
        self._moments = bound(self._optimiser.init(self._parameters)) if job["phase"] == "train" else None
        self._forward = compiled(network.logits)
        # The old parameters and moments are of no use afterwards: the new ones may take their place.
        self._train = compiled(self._step, donate_argnums=(0, 1))

    @property
    def device(self):
        return device_name(self._device)

    # --- data ---

    def stage(self, batch):
        return as_int32(with_lengths(batch, self._workload))

    def feed(self, staged):
        return jax.device_put(staged, self._device)

    # --- computing ---

    def _step(self, parameters, moments, batch):
        """The whole of a training step, without side effects."""
        loss, gradients = jax.value_and_grad(self._network.loss)(parameters, batch)
        updates, moments = self._optimiser.update(gradients, moments, parameters)
        return loss, optax.apply_updates(parameters, updates), moments

    def forward(self, fed):
        return self._forward(self._parameters, fed)

    def train(self, fed):
        loss, self._parameters, self._moments = self._train(self._parameters, self._moments, fed)
        return loss

    def sync(self, handle):
        # The loss is ready before the update is.
        jax.block_until_ready((handle, self._parameters, self._moments))

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return steps_first(np.asarray(handle.astype(jnp.float32)))

    def gradients(self, fed):
        """Read from the training step itself: from nothing, Adam's first moment becomes (1 - β1) × gradient.

        A step that gave its gradients away as well would be another program, and a slower one.
        """
        copies = bound(jax.tree.map(jnp.copy, self._parameters))
        _, _, moments = self._train(copies, bound(self._optimiser.init(copies)), fed)
        first = optax.tree.get(moments, "mu")
        return self._read(jax.tree.map(lambda moment: moment / (1 - BETA_1), first), averaged)

    def parameters(self):
        return self._read(self._parameters, added)

    def _read(self, own, join):
        return self._network.canonical(jax.tree.map(np.array, own), join)

    def parameter_count(self):
        return sum(leaf.size for leaf in jax.tree.leaves(self._parameters))

    def peak_device_bytes(self):
        statistics = self._device.memory_stats()  # none on a CPU
        return statistics.get("peak_bytes_in_use") if statistics else None


def bound(arrays):
    """Tied to their device, as a step's results are: loose ones would have it compiled once more at its second call."""
    return jax.device_put(arrays, jax.devices()[0])
