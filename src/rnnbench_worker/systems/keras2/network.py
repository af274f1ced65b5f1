"""The whole network as a Keras 2 model: embedding or features, recurrent layers, head; its loss; its variables by name.

Written with Keras's layers and its backend's functions only, so that it serves TensorFlow and Theano.
"""

from keras import backend as K
from keras import layers
from keras.models import Model

from rnnbench_worker.canonical import directions, names
from rnnbench_worker.sequences import within


class Lengths(layers.Layer):
    """Gives its first input, and with it the mask that Keras's layers hand on: what lies within the lengths."""

    def __init__(self, steps):
        super(Lengths, self).__init__()
        self.supports_masking = True
        self._steps = steps

    def call(self, inputs, mask=None):
        return inputs[0]

    def compute_mask(self, inputs, mask=None):
        inside = within(K.arange(self._steps), inputs[1][:, 0])
        return K.permute_dimensions(inside, (1, 0, 2))[:, :, 0]

    def compute_output_shape(self, shapes):
        return shapes[0]


def make_model(workload):
    """`[batch, steps, classes]` or `[batch, classes]` from inputs, or from inputs and lengths where those vary."""
    batch, steps = workload["batch"], workload["steps"]
    last_step = workload["head_on"] == "last-step"
    both_ways = len(workload["directions"]) == 2
    if workload["vocabulary"]:
        inputs = [layers.Input(batch_shape=(batch, steps), dtype="int32")]
        xs = layers.Embedding(workload["vocabulary"], workload["embedding"])(inputs[0])
    else:
        inputs = [layers.Input(batch_shape=(batch, steps, workload["features"]))]
        xs = inputs[0]
    if workload["variable_length"]:
        inputs.append(layers.Input(batch_shape=(batch, 1), dtype="int32"))
        xs = Lengths(steps)([xs, inputs[1]])
    for layer in range(workload["layers"]):
        lstm = layers.LSTM(
            workload["hidden"],
            # Keras 2's own choice is a piecewise linear function: another network.
            recurrent_activation="sigmoid",
            unit_forget_bias=False,
            # Of the way back Keras would give the last step it computed, which is the first one in time.
            return_sequences=both_ways or not last_step or layer < workload["layers"] - 1,
        )
        xs = (layers.Bidirectional(lstm) if both_ways else lstm)(xs)
    if last_step and both_ways:
        xs = layers.Lambda(of_last_step, output_shape=(2 * workload["hidden"],))(xs)
    logits = layers.Dense(workload["classes"], use_bias=workload["head_bias"])(xs)
    return Model(inputs, logits)


def of_last_step(xs):
    return xs[:, -1]


def cross_entropy(workload):
    """A loss as `compile` takes it: of every prediction, `[batch]` or `[batch, steps]`."""

    def loss(targets, logits):
        # As a matrix: Theano's softmax takes nothing else.
        flat = K.reshape(logits, (-1, workload["classes"]))
        losses = K.sparse_categorical_crossentropy(K.flatten(targets), flat, from_logits=True)
        return losses if workload["head_on"] == "last-step" else K.reshape(losses, (-1, workload["steps"]))

    return loss


def with_ctc(model, workload):
    """A model of the costs, as Keras 2's users write CTC: labels and lengths are inputs, the loss is an output."""
    batch = workload["batch"]
    lengths, labels, label_lengths = [
        layers.Input(batch_shape=(batch, width), dtype="int32") for width in (1, workload["labels"], 1)
    ]
    inputs = list(model.inputs)
    if workload["variable_length"]:
        lengths = inputs.pop()

    def cost(tensors):
        logits, labels, lengths, label_lengths = tensors
        return K.ctc_batch_cost(labels, K.softmax(logits), lengths, label_lengths)

    costs = layers.Lambda(cost, output_shape=(1,))([model.output, labels, lengths, label_lengths])
    return Model(inputs + [lengths, labels, label_lengths], costs)


def variables_of(model, workload):
    """Every variable by its canonical name: Keras has the canonical layout, and its order is that of computing."""
    found = [name for place in directions(workload) for name in names(*place)]
    if workload["vocabulary"]:
        found = ["embedding"] + found
    found += ["head.w", "head.b"] if workload["head_bias"] else ["head.w"]
    return dict(zip(found, model.trainable_weights))
