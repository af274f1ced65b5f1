"""A TensorFlow network as a program: its executions, feeding, training steps, and reading back what was computed."""

from collections import namedtuple

import tensorflow as tf

from rnnbench_worker.canonical import as_int32, batch_first, join_bias_gradients, join_bias_values, with_lengths
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Program

from .settings import device_of, device_string, peak_bytes, wait_for_device

# --- executions ---------------------------------------------------------------------------------------

#: A loop over time, what compiles the step around it, and whether CTC may use TensorFlow's own kernel. A loop is called
#: as `loop(step, state, sequences, reverse)` and returns the outputs of all steps; `sequences` is a list of tensors
#: whose first axis is time, `step(state, slices)` returns the new state and an output. tf.function traces at its first
#: call, so that the time of that call includes tracing and compiling.
Execution = namedtuple("Execution", "loop compiled native_ctc")


def python_loop(step, state, sequences, reverse):
    """One step after the other: operator by operator if nothing is compiled, otherwise unrolled."""
    # Unstacked at once: the gradient of `sequence[t]` is a tensor as long as the whole sequence, for each t.
    slices_of_steps = list(zip(*[tf.unstack(sequence) for sequence in sequences]))
    outputs = []
    for slices in reversed(slices_of_steps) if reverse else slices_of_steps:
        state, output = step(state, slices)
        outputs.append(output)
    return tf.stack(outputs[::-1] if reverse else outputs)


def while_loop(step, state, sequences, reverse):
    """The loop stays a loop in the graph: tf.while_loop over TensorArrays."""
    known = sequences[0].shape[0]
    steps = tf.shape(sequences[0])[0] if known is None else known  # not known: the graph is for any number of steps
    # XLA must know every shape, and the largest number of iterations.
    arrays = [
        tf.TensorArray(sequence.dtype, size=steps, element_shape=sequence.shape[1:]).unstack(sequence)
        for sequence in sequences
    ]
    outputs = tf.TensorArray(tf.float32, size=steps, element_shape=state[0].shape)

    def condition(iteration, *carried):
        return iteration < steps

    def body(iteration, outputs, *state):
        t = steps - 1 - iteration if reverse else iteration
        state, output = step(state, [array.read(t) for array in arrays])
        return (iteration + 1, outputs.write(t, output)) + tuple(state)

    start = (tf.constant(0), outputs) + tuple(state)
    stacked = tf.while_loop(condition, body, start, maximum_iterations=steps)[1].stack()
    stacked.set_shape([known] + list(state[0].shape))  # 2.0 loses it
    return stacked


def not_compiled(function):
    return function


def graph(function):
    """Without AutoGraph: each loop is already written as a Python loop or as tf.while_loop."""
    return tf.function(function, autograph=False)


def xla(function):
    """Everything is compiled: an operator that XLA cannot compile is an error."""
    return tf.function(function, autograph=False, jit_compile=True)


EXECUTIONS = {
    "eager": Execution(python_loop, not_compiled, native_ctc=True),
    "graph": Execution(python_loop, graph, native_ctc=True),
    "graph-while": Execution(while_loop, graph, native_ctc=True),
    # XLA has no sparse tensors, so it cannot use the CTC kernel.
    "xla": Execution(python_loop, xla, native_ctc=False),
    "xla-while": Execution(while_loop, xla, native_ctc=False),
}


def builds(program):
    return tracing_count(program._forward) + tracing_count(program._train)


def tracing_count(function, depth=3):
    """How often a tf.function, or those in the closure of a Python function, were traced; 0 where there is none."""
    if hasattr(function, "experimental_get_tracing_count"):
        return function.experimental_get_tracing_count()
    cells = getattr(function, "__closure__", None) or ()
    inside = [cell.cell_contents for cell in cells]
    return sum(tracing_count(one, depth - 1) for one in inside if callable(one) and depth)


# --- the program --------------------------------------------------------------------------------------


class TensorFlowProgram(Program):
    """Two functions, each compiled as a whole by the execution: the logits, and a training step."""

    def __init__(self, job, network, compiled, parameters):
        self._workload = job["workload"]
        self._network = network
        self._device_string = device_string(job)
        with tf.device(self._device_string):
            self._variables = tf.nest.map_structure(tf.Variable, network.from_canonical(parameters))
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
        with tf.device(self._device_string):
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
        with tf.device(self._device_string):
            return self._forward(fed)

    def train(self, fed):
        with tf.device(self._device_string):
            return self._train(fed)

    def sync(self, handle):
        wait_for_device(self._device_string)

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return batch_first(handle.numpy())

    def gradients(self, fed):
        """Read from the training step itself: Adam's first moment, starting from zero, becomes (1 - β1) × gradient."""
        everything = self._flat + self._adam.state()
        before = [variable.numpy() for variable in everything]
        self._adam.reset()
        self.train(fed)
        gradients = [first.numpy() / (1 - BETA_1) for first in self._adam.first]
        for variable, value in zip(everything, before):
            variable.assign(value)
        packed = tf.nest.pack_sequence_as(self._variables, gradients)
        return self._network.to_canonical(packed, join_bias_gradients)

    def parameters(self):
        values = tf.nest.map_structure(lambda variable: variable.numpy(), self._variables)
        return self._network.to_canonical(values, join_bias_values)

    def parameter_count(self):
        return sum(int(tf.size(variable)) for variable in self._flat)

    def peak_device_bytes(self):
        return peak_bytes(self._device_string)


class Adam(object):
    """Adam by TensorFlow's fused kernel, which Keras's own optimisers no longer use."""

    def __init__(self, variables):
        self._variables = variables
        self.first = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
        self._second = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
        self._step = tf.Variable(0.0)

    def state(self):
        return self.first + self._second + [self._step]

    def reset(self):
        for variable in self.state():
            variable.assign(tf.zeros_like(variable))

    def apply(self, gradients):
        step = self._step.assign_add(1.0)
        decay = tf.pow(BETA_2, step)
        # The kernel adds epsilon before the bias correction; scaled like this it is the published one.
        epsilon = EPSILON * tf.sqrt(1.0 - decay)
        for variable, first, second, gradient in zip(self._variables, self.first, self._second, gradients):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=tf.pow(BETA_1, step),
                beta2_power=decay,
                lr=LEARNING_RATE,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=epsilon,
                # The gradient of an embedding has only the rows that were used; the kernel wants all of them.
                grad=tf.convert_to_tensor(gradient),
            )
