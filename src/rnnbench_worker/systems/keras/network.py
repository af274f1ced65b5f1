"""The whole network as a Keras model: embedding or features, recurrent layers, head; and its variables by name."""

import keras
from keras import layers, ops

from rnnbench_worker.canonical import directions, names
from rnnbench_worker.sequences import within


class Within(layers.Layer):
    """The mask that Keras's layers want, `[batch, steps]`, from the sequences' lengths."""

    def __init__(self, steps):
        super(Within, self).__init__()
        self._steps = steps

    def call(self, lengths):
        return ops.transpose(within(ops.arange(self._steps), lengths)[:, :, 0])


class CtcModel(keras.Model):
    """A model whose targets come with lengths: Keras's own CTC loss takes every sequence as full."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        # The mean over sequences: each counts once, however long it is.
        return ops.mean(ops.ctc_loss(y["targets"], y_pred, y["target_lengths"], y["lengths"], mask_index=0))


def make_model(workload, unroll, use_cudnn):
    """`[batch, steps, classes]` or `[batch, classes]` from inputs, or from inputs and lengths where those vary."""
    steps, last_step = workload["steps"], workload["head_on"] == "last-step"
    both_ways = len(workload["directions"]) == 2
    if workload["vocabulary"]:
        inputs = [keras.Input((steps,), dtype="int32")]
        xs = layers.Embedding(workload["vocabulary"], workload["embedding"], name="embedding")(inputs[0])
    else:
        inputs = [keras.Input((steps, workload["features"]))]
        xs = inputs[0]
    mask = None
    if workload["variable_length"]:
        inputs.append(keras.Input((), dtype="int32"))
        mask = Within(steps)(inputs[1])
    for layer in range(workload["layers"]):
        lstm = layers.LSTM(
            workload["hidden"],
            # Of the way back Keras would give the last step it computed, which is the first one in time.
            return_sequences=both_ways or not last_step or layer < workload["layers"] - 1,
            unit_forget_bias=False,
            unroll=unroll,
            use_cudnn=use_cudnn,
            name="layer{}".format(layer),
        )
        if both_ways:
            lstm = layers.Bidirectional(lstm, name="layer{}".format(layer))
        xs = lstm(xs, mask=mask)
    if last_step and both_ways:
        xs = xs[:, -1]
    logits = layers.Dense(workload["classes"], use_bias=workload["head_bias"], name="head")(xs)
    # Whatever the precision, the loss is computed in fp32.
    logits = layers.Activation("linear", dtype="float32")(logits)
    return (CtcModel if workload["loss"] == "ctc" else keras.Model)(inputs, logits)


def cell_of(model, layer, direction):
    """The one step of a layer in one direction, which has its variables."""
    found = model.get_layer("layer{}".format(layer))
    if isinstance(found, layers.Bidirectional):
        found = found.forward_layer if direction == "fwd" else found.backward_layer
    return found.cell


def variables_of(model, workload):
    """Every variable by its canonical name: Keras's own layout is the canonical one."""
    found = {}
    if workload["vocabulary"]:
        found["embedding"] = model.get_layer("embedding").embeddings
    for layer, direction in directions(workload):
        cell = cell_of(model, layer, direction)
        found.update(zip(names(layer, direction), (cell.kernel, cell.recurrent_kernel, cell.bias)))
    head = model.get_layer("head")
    found["head.w"] = head.kernel
    if workload["head_bias"]:
        found["head.b"] = head.bias
    return found
