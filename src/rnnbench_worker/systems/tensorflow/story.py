"""The single tanh step of Lazarus's slides (2019) in TensorFlow, statement by statement, and its story.

Eagerly a tape records operators; a tf.function has its graph before it runs.
"""

import contextlib

import tensorflow as tf

from rnnbench_worker.graph import EVERY_CALL, Graph
from rnnbench_worker.story import BACKWARD, BEFORE, Story, describe_array, find_statements

from .inspection import concrete_graph

#: Operators that compute nothing: a constant, a returned result, an enforced order.
IDLE = ("Const", "Identity", "NoOp")
SIXTH_STATEMENT = "gradients = tape.gradient(loss, [W_h, W_x])"


def ignore(statement, name, value):
    """The default of what is called after each statement; the story passes a function of its own."""


class ElmanStep(object):
    """Takes the place of `network.Network` in a program."""

    def __init__(self, done=ignore):
        self._done = done

    def logits(self, variables, batch):
        W_h, W_x, x, prev_h = variables["W_h"], variables["W_x"], batch["inputs"], batch["state"]
        h2h = tf.matmul(W_h, tf.transpose(prev_h))
        self._done(1, "h2h", h2h)
        i2h = tf.matmul(W_x, tf.transpose(x))
        self._done(2, "i2h", i2h)
        next_h = h2h + i2h
        self._done(3, "next_h", next_h)
        next_h = tf.tanh(next_h)
        self._done(4, "next_h", next_h)
        return next_h

    def loss(self, variables, batch):
        next_h = self.logits(variables, batch)
        loss = tf.reduce_sum(next_h)
        self._done(5, "loss", loss)
        return loss

    def from_canonical(self, arrays):
        return dict(arrays)

    def to_canonical(self, arrays, join):
        return dict(arrays)


# --- the story ----------------------------------------------------------------------------------------


def story(job, parameters, batch):
    _, first = find_statements(ElmanStep.logits)
    _, last = find_statements(ElmanStep.loss)
    variables = {name: tf.Variable(array, name=name) for name, array in parameters.items()}
    fed = {name: tf.constant(array) for name, array in batch.items()}
    tell = story_of_growing_graph if job["execution"] == "eager" else story_of_finished_graph
    return tell(first + last + [SIXTH_STATEMENT], variables, fed)


def story_of_growing_graph(code, variables, fed):
    graph = Graph("operators as they ran", EVERY_CALL)
    collected = Story("TensorFlow, eager", graph, code)
    recorder = OperatorRecorder(graph, variables, fed)
    collected.mark(BEFORE, born=BEFORE)
    collected.note(BEFORE, "There is no graph. Only the variables and the data exist.")

    def done(statement, name, value):
        collected.mark(statement, born=statement)
        collected.show_value(statement, describe_array(name, value))

    with recorder.recording():
        with tf.GradientTape() as tape:
            loss = ElmanStep(done).loss(variables, fed)
        recorder.in_backward_pass = True
        gradients = tape.gradient(loss, variables)
    collected.fields["backward"] = recorder.backward_order
    collected.note(1, "Each operator runs immediately; the tape records what its gradient will need.")
    text = "The tape is read from its end. For that TensorFlow ran {} more operators: {}."
    collected.note(BACKWARD, text.format(len(recorder.backward_operators), ", ".join(recorder.backward_operators)))
    collected.show_value(BACKWARD, describe_array("gradient of W_h", gradients["W_h"]))
    collected.result(loss, {name: value.numpy() for name, value in gradients.items()})
    return collected


def story_of_finished_graph(code, variables, fed):
    sizes, seen = [], {}

    def done(statement, name, value):
        sizes.append(len(tf.compat.v1.get_default_graph().get_operations()))
        seen[statement] = str(value)

    @tf.function(autograph=False)
    def step(batch):
        with tf.GradientTape() as tape:
            loss = ElmanStep(done).loss(variables, batch)
        return loss, tape.gradient(loss, variables)

    graph = concrete_graph(step.get_concrete_function(fed))
    collected = Story("TensorFlow, tf.function", graph, code)
    collected.mark(BEFORE, born=BEFORE)
    for place, operator in enumerate(graph.fields["operators"]):
        statement = 1 + sum(place >= size for size in sizes)
        collected.fields["of"][place] = BEFORE if operator == "Placeholder" else statement
        if statement == BACKWARD and operator not in IDLE:
            collected.fields["backward"].append(place)
    loss, gradients = step(fed)
    for statement, symbol in seen.items():
        collected.show_value(statement, symbol)
    collected.note(
        BEFORE,
        "The graph is complete before anything is computed: the Python code was run once with symbols instead of "
        "numbers, and the backward pass was added after it.",
    )
    collected.note(
        1, "This is what the statement saw when it was traced: a symbol. The call runs the graph as a whole."
    )
    text = "The backward pass consists of nodes of the same graph. After the call: {}. The Python code ran {} time."
    collected.note(BACKWARD, text.format(describe_array("loss", loss), len(sizes) // 5))
    collected.show_value(BACKWARD, describe_array("gradient of W_h", gradients["W_h"]))
    collected.result(loss, {name: value.numpy() for name, value in gradients.items()})
    return collected


class OperatorRecorder(object):
    """Records the operators as they run, and the order in which the tape then asks for their gradients."""

    def __init__(self, graph, variables, fed):
        self._graph = graph
        self._places = {fed[name]._id: graph.node("input", name) for name in sorted(fed)}
        # A variable is read into a new tensor; its shape tells which variable it was.
        self._read = {tuple(one.shape): graph.node("variable", name) for name, one in sorted(variables.items())}
        self._ran = []  # (operator, ids of inputs, place)
        self.in_backward_pass = False
        self.backward_order, self.backward_operators = [], []

    @contextlib.contextmanager
    def recording(self):
        """Meanwhile TensorFlow reports every operator and every gradient function that it calls."""
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.eager import backprop
        from tensorflow.python.framework import op_callbacks

        def gradient_function(operator, attributes, count, inputs, *others):
            self.record_gradient(operator, inputs)
            return backprop._gradient_function(operator, attributes, count, inputs, *others)

        pywrap_tfe.TFE_Py_RegisterGradientFunction(gradient_function)
        op_callbacks.add_op_callback(self.record_operator)
        try:
            yield
        finally:
            op_callbacks.remove_op_callback(self.record_operator)
            pywrap_tfe.TFE_Py_RegisterGradientFunction(backprop._gradient_function)

    def record_operator(self, operator, inputs, attributes, outputs, op_name=None, graph=None, **others):
        if self.in_backward_pass:
            self.backward_operators.append(operator)
            return
        sources = []
        for tensor in inputs:
            place = self._places.get(tensor._id, self._read.get(tuple(tensor.shape)))
            sources += [] if place is None else [place]
        place = self._graph.node(operator, "", sources)
        self._places.update((tensor._id, place) for tensor in outputs)
        self._ran.append((operator, [tensor._id for tensor in inputs], place))

    def record_gradient(self, operator, inputs):
        """The tape drops inputs that it does not need: then the last operator of the same kind is meant."""
        ids = [tensor._id for tensor in inputs or () if hasattr(tensor, "_id")]
        left = [one for one in self._ran if one[0] == operator and one[2] not in self.backward_order]
        if left:
            self.backward_order.append(max(left, key=lambda one: (bool(set(ids) & set(one[1])), one[2]))[2])
