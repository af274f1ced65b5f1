"""A JAX network as a program: its executions, feeding, training steps, and reading back what was computed."""

from collections import namedtuple
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax, monitoring

from rnnbench_worker.canonical import as_int32, batch_first, join_bias_gradients, join_bias_values, with_lengths
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Program

from .settings import device_name, peak_bytes

# --- executions ---------------------------------------------------------------------------------------

#: A loop over time, and what compiles the step around it: `jax.jit`, or nothing. A loop is called like `lax.scan`,
#: `loop(step, state, sequences, reverse)`, and returns the outputs of all steps; it is None where one operator
#: computes them all. JAX compiles at the first call, so that the time of that call includes tracing and compiling.
Execution = namedtuple("Execution", "loop compiled")


def python_loop(step, state, sequences, reverse):
    """One step after the other: operator by operator if nothing is jitted, otherwise unrolled."""
    # Unstacked at once: the gradient of `sequence[t]` is an array as long as the whole sequence, for each t.
    leaves, structure = jax.tree.flatten(sequences)
    slices_of_steps = [structure.unflatten(slices) for slices in zip(*[jnp.unstack(leaf) for leaf in leaves])]
    outputs = []
    for slices in reversed(slices_of_steps) if reverse else slices_of_steps:
        state, output = step(state, slices)
        outputs.append(output)
    return jnp.stack(outputs[::-1] if reverse else outputs)


def scan_loop(step, state, sequences, reverse, unroll=1):
    """The loop stays a loop in the compiled program, with `unroll` steps per iteration."""
    return lax.scan(step, state, sequences, reverse=reverse, unroll=unroll)[1]


def not_compiled(function, donate_argnums=()):
    """Not compiled as a whole. JAX still compiles each operator by itself, once per shape."""
    return function


EXECUTIONS = {
    "eager": Execution(python_loop, not_compiled),
    "jit": Execution(None, jax.jit),
    "jit-unrolled": Execution(python_loop, jax.jit),
    "jit-scan": Execution(scan_loop, jax.jit),
    "jit-scan-unroll8": Execution(partial(scan_loop, unroll=8), jax.jit),
}

_COMPILED = "/jax/core/compile/backend_compile_duration"
_compilations = [0]


def _count_compilation(event, seconds, **details):
    if event == _COMPILED:
        _compilations[0] += 1


monitoring.register_event_duration_secs_listener(_count_compilation)


def builds(program):
    """How often XLA has compiled in this process, by JAX's own events.

    Not `_cache_size` of the jitted step: without `jit`, JAX still compiles every operator by itself, once per shape.
    """
    return _compilations[0]


# --- the program --------------------------------------------------------------------------------------


class JaxProgram(Program):
    """Two functions, each compiled as a whole by the execution: the logits, and a training step."""

    def __init__(self, job, network, compiled, parameters):
        self._workload = job["workload"]
        self._network = network
        # Copied, because the first training step donates its memory.
        self._parameters = committed(jax.tree.map(jnp.array, network.from_canonical(parameters)))
        self._device = next(iter(jax.tree.leaves(self._parameters)[0].devices()))
        self._optimiser = optax.adam(LEARNING_RATE, b1=BETA_1, b2=BETA_2, eps=EPSILON)
        self._moments = committed(self._optimiser.init(self._parameters)) if job["phase"] == "train" else None
        self._forward = compiled(network.logits)
        # The old parameters and moments are not needed afterwards: the new ones may use their memory.
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
        """A whole training step, without side effects."""
        loss, gradients = jax.value_and_grad(self._network.loss)(parameters, batch)
        updates, moments = self._optimiser.update(gradients, moments, parameters)
        return loss, optax.apply_updates(parameters, updates), moments

    def forward(self, fed):
        return self._forward(self._parameters, fed)

    def train(self, fed):
        loss, self._parameters, self._moments = self._train(self._parameters, self._moments, fed)
        return loss

    def sync(self, handle):
        # Everything: the loss is ready before the update is.
        jax.block_until_ready((handle, self._parameters, self._moments))

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return batch_first(np.asarray(unremembered(handle)))

    def gradients(self, fed):
        """Read from the training step itself: Adam's first moment, starting from zero, becomes (1 - β1) × gradient.

        A step that also returned its gradients would be another, slower program.
        """
        copies = committed(jax.tree.map(jnp.copy, self._parameters))
        _, _, moments = self._train(copies, committed(self._optimiser.init(copies)), fed)
        first = optax.tree.get(moments, "mu")
        return self._read(jax.tree.map(lambda moment: moment / (1 - BETA_1), first), join_bias_gradients)

    def parameters(self):
        return self._read(self._parameters, join_bias_values)

    def _read(self, own, join):
        return self._network.to_canonical(jax.tree.map(np.array, own), join)

    def parameter_count(self):
        return sum(leaf.size for leaf in jax.tree.leaves(self._parameters))

    def peak_device_bytes(self):
        return peak_bytes(self._device)


def unremembered(array):
    """A copy to be read. JAX keeps what it has read of an array, and to free that with the array takes 20 ms for the
    logits of a language model: on the clock of the next batch.
    """
    return jnp.array(array, jnp.float32)


def committed(arrays):
    """Committed to their device, as a step's results are: otherwise the step's second call would compile it again."""
    return jax.device_put(arrays, jax.devices()[0])
