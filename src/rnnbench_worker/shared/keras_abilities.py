"""The abilities of Keras's systems, for all backends: a model for each, trained for one step as `fit` would.

A cell of one's own gets what does not change over time as a third state, since Keras's loop passes nothing else on. The
optimiser is gradient descent with rate 1, so that the gradients are what a step takes away from the weights.
"""

import keras
import numpy as np
from keras import layers, ops

from rnnbench_worker.abilities import (
    CELLS,
    DROPOUT_RATE,
    STEPS,
    Cannot,
    arguments_of,
    probes_of,
    run_ability,
    sequences_of,
    step_around,
    weight_arrays,
)
from rnnbench_worker.shared.keras import AnyCell, Operators, host_copy, parse_execution


class AbilityOperators(Operators):
    @staticmethod
    def attend(query, memory):
        """The memory is flat, as a state of Keras must be."""
        batch, hidden = memory.shape[0], query.shape[-1]
        slots = ops.reshape(memory, (-1 if batch is None else batch, memory.shape[-1] // hidden, hidden))
        shares = ops.softmax(ops.einsum("bsh,bh->bs", slots, query), axis=1)
        return ops.einsum("bs,bsh->bh", shares, slots)


class AbilityCell(AnyCell):
    """A step around the LSTM of rnnbench_cells, or the ability's own cell; its output is h and c side by side."""

    def __init__(self, ability, hidden, extra, **options):
        super(AbilityCell, self).__init__(CELLS.get(ability, "lstm"), hidden, **options)
        self._ability = ability
        self.state_size = [hidden, hidden, extra]
        self.output_size = 2 * hidden
        self._around = step_around(ability, self._run_cell, AbilityOperators)

    def build(self, shape):
        width = shape[-1] - 1  # the last column is the flag
        widths = {"attention": width + self._hidden}
        super(AbilityCell, self).build((shape[0], widths.get(self._ability, width)))
        self.head = None
        if self._ability == "feedback":
            self.head = self.add_weight(shape=(self._hidden, width), name="head")
            self._parts, self.own = self._parts + ["head"], self.own + [self.head]

    def _run_cell(self, weights, x, h, c):
        new = self._cell.step(Operators, weights, x, {"h": h, "c": c})
        return new["h"], new["c"]

    def call(self, x, states, training=False):
        h, c, extra = states
        weights = dict(zip(self._parts, self.own))
        h, c = self._around(weights, self.head, x[:, :-1], x[:, -1:], h, c, extra)
        return ops.concatenate([h, c], axis=-1), [h, c, extra]


class Kept(layers.Layer):
    """Passes its input on and keeps it in a variable: so the outputs of a training step can be read after it."""

    def __init__(self, shape):
        super(Kept, self).__init__()
        self.kept = self.add_weight(shape=shape, initializer="zeros", trainable=False)

    def call(self, values):
        self.kept.assign(ops.cast(values, "float32"))
        return values


class AbilityModel(keras.Model):
    """Its loss is the sum of outputs times probes, or the size of that loss's gradient of the inputs."""

    input_gradient = None  # of a backend: (function, inputs) -> gradient

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        if self.input_gradient is None:
            return ops.sum(y_pred * y)
        gradient = self.input_gradient(lambda xs: ops.sum(self([xs] + list(x[1:]), training=True) * y), x[0])
        return ops.sum(gradient * gradient)


def prove(job, ability, arrays, input_gradient, builds):
    """`input_gradient(function, inputs)` and `builds(model)` are the backend's."""
    keras.config.set_dtype_policy("float32")
    program = AbilityProgram(job, ability, arrays)
    if ability == "double-backward":
        program.model.input_gradient = input_gradient
    return run_ability(ability, lambda steps: program.compute(ability, arrays, steps), lambda: builds(program.model))


class AbilityProgram(object):
    """A compiled model with the arrays' weights."""

    def __init__(self, job, ability, arrays):
        execution = parse_execution(job["execution"])
        steps = None if ability == "other-steps" else STEPS
        weights = weight_arrays(ability, arrays)
        if job["granularity"] == "packed":
            self.model, self._kept, variables = own_model(ability, arrays, steps, execution)
            self._masks = None
        else:
            self.model, self._kept, variables, self._masks = layer_model(ability, arrays, steps, execution)
        self._variables = dict(zip(weights, variables))
        self._weights = weights
        self._is_own = job["granularity"] == "packed"
        self._unmoved = keras.optimizers.SGD(1.0)
        self.model.compile(self._unmoved, run_eagerly=execution.run_eagerly, jit_compile=execution.jit_compile)

    def compute(self, ability, arrays, steps):
        xs, flags, extra = sequences_of(ability, arrays, steps)
        probe_h, probe_c = probes_of(ability, arrays, steps)
        batch, hidden = xs.shape[1], probe_h.shape[2]
        for name, variable in self._variables.items():
            variable.assign(self._weights[name])
        by_batch = [np.ascontiguousarray(one.swapaxes(0, 1)) for one in (xs, flags)]
        if self._is_own:
            zeros = np.zeros((batch, hidden), np.float32)
            inputs = by_batch + [zeros, zeros, extra.reshape(batch, -1)]
            probe = np.concatenate([probe_h, probe_c], axis=2)
        else:
            inputs, probe = by_batch, probe_h
        # As tensors: what Keras is given as an array stays one where a step runs eagerly.
        inputs = [ops.convert_to_tensor(one) for one in inputs]
        self.model.train_on_batch(inputs, ops.convert_to_tensor(np.ascontiguousarray(probe.swapaxes(0, 1))))
        outputs = np.ascontiguousarray(host_copy(self._kept_values(inputs)).swapaxes(0, 1))
        found = {"h": outputs[:, :, :hidden]}
        if self._is_own:
            found["c"] = outputs[:, :, hidden:]
        for name, variable in self._variables.items():
            found["gradient/" + name] = self._weights[name] - host_copy(variable)
        if self._masks is not None:
            found["mask"] = host_copy(self._masks)  # the layer has drawn its own
        return found

    def _kept_values(self, inputs):
        """Where nothing is kept: the outputs of the same weights, without training."""
        if self._kept is not None:
            return self._kept.kept
        after = {name: host_copy(variable) for name, variable in self._variables.items()}
        for name, variable in self._variables.items():
            variable.assign(self._weights[name])
        outputs = self.model.predict_on_batch(inputs)
        for name, variable in self._variables.items():
            variable.assign(after[name])
        return outputs


def finished(ability, inputs, outputs, shape, steps):
    """The model, and what keeps its outputs.

    Nothing does where the number of steps is open, or where the model is also run within a gradient.
    """
    kept = None if steps is None or ability == "double-backward" else Kept(shape)
    return AbilityModel(inputs, outputs if kept is None else kept(outputs)), kept


def keep_masks(recurrent, batch):
    """A variable that gets the masks which a layer draws, one for each gate, as `Kept` gets outputs."""
    cell = recurrent.cell
    masks = recurrent.add_weight(shape=(4, batch, cell.units), initializer="zeros", trainable=False)
    draw = cell._create_dropout_mask

    def draw_and_keep(step_input, rate):
        drawn = draw(step_input, rate)
        masks.assign(ops.stack(drawn))
        return drawn

    cell._create_dropout_mask = draw_and_keep
    return masks


def own_model(ability, arrays, steps, execution):
    """A cell of one's own in keras.layers.RNN."""
    xs, _, extra = sequences_of(ability, arrays, STEPS)
    batch, hidden = xs.shape[1], arrays["u"].shape[0]
    constant = int(np.prod(extra.shape[1:]))
    inputs = [keras.Input((steps, width), batch_size=batch) for width in (xs.shape[2], 1)]
    inputs += [keras.Input((width,), batch_size=batch) for width in (hidden, hidden, constant)]
    cell = AbilityCell(ability, hidden, constant)
    recurrent = layers.RNN(cell, return_sequences=True, unroll=execution.unroll)
    outputs = recurrent(ops.concatenate(inputs[:2], axis=2), initial_state=inputs[2:])
    model, kept = finished(ability, inputs, outputs, (batch, STEPS, 2 * hidden), steps)
    return model, kept, cell.own


def layer_model(ability, arrays, steps, execution):
    """keras.layers.LSTM, for what it offers."""
    if ability in CELLS or ability in ("reset", "feedback", "attention"):
        offered = arguments_of(layers.LSTM.__init__)
        raise Cannot("keras.layers.LSTM lets nothing into its steps; its arguments are " + offered)
    batch, width = arrays["xs"].shape[1:]
    hidden = arrays["u"].shape[0]
    inputs = [keras.Input((steps, one), batch_size=batch) for one in (width, 1)]
    options = {"unit_forget_bias": False, "use_cudnn": execution.use_cudnn, "unroll": execution.unroll}
    if ability == "recurrent-dropout":
        options["recurrent_dropout"] = DROPOUT_RATE
    recurrent = layers.LSTM(hidden, return_sequences=True, return_state=ability == "all-states", **options)
    if ability == "all-states":
        found = [tuple(one.shape) for one in recurrent(inputs[0])]
        raise Cannot("keras.layers.LSTM returns, with return_state=True, {}: the last cell state".format(found))
    masks = keep_masks(recurrent, batch) if ability == "recurrent-dropout" else None
    mask = inputs[1][:, :, 0] > 0.5 if ability == "variable-lengths" else None
    outputs = recurrent(inputs[0], mask=mask)
    model, kept = finished(ability, inputs, outputs, (batch, STEPS, hidden), steps)
    cell = recurrent.cell
    return model, kept, [cell.kernel, cell.recurrent_kernel, cell.bias], masks
