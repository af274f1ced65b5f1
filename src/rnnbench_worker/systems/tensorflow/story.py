"""Seed 003's story in TensorFlow: eagerly a tape takes operators down; as a tf.function the graph is there first."""

import contextlib

import tensorflow as tf

from rnnbench_worker.graph import EVERY_CALL, Graph
from rnnbench_worker.graph_story import BACKWARD, BEFORE, Story, described, statements

from .elman import ElmanStep
from .graph import concrete_graph

#: They compute nothing: a constant, a result handed out, an order kept.
IDLE = ("Const", "Identity", "NoOp")
SIXTH = "gradients = tape.gradient(loss, [W_h, W_x])"


def story(job, parameters, batch):
    _, first = statements(ElmanStep.logits)
    _, last = statements(ElmanStep.loss)
    variables = {name: tf.Variable(array, name=name) for name, array in parameters.items()}
    fed = {name: tf.constant(array) for name, array in batch.items()}
    tell = grown if job["execution"] == "eager" else standing
    return tell(first + last + [SIXTH], variables, fed)


def grown(code, variables, fed):
    graph = Graph("operators as they ran", EVERY_CALL)
    told = Story("TensorFlow, eager", graph, code)
    tape_of = Operators(graph, variables, fed)
    told.mark(BEFORE, born=BEFORE)
    told.note(BEFORE, "There is no graph. The variables and the data exist, and that is all.")

    def done(statement, name, value):
        told.mark(statement, born=statement)
        told.see(statement, described(name, value))

    with tape_of.watching():
        with tf.GradientTape() as tape:
            loss = ElmanStep(done).loss(variables, fed)
        tape_of.going_back = True
        gradients = tape.gradient(loss, variables)
    told.fields["backward"] = tape_of.walked
    told.note(1, "Each operator runs at once; the tape takes down what its gradient will need.")
    text = "The tape is read from its end. To do so TensorFlow ran {} more operators: {}."
    told.note(BACKWARD, text.format(len(tape_of.back), ", ".join(tape_of.back)))
    told.see(BACKWARD, described("gradient of W_h", gradients["W_h"]))
    told.result(loss, {name: value.numpy() for name, value in gradients.items()})
    return told


def standing(code, variables, fed):
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
    told = Story("TensorFlow, tf.function", graph, code)
    told.mark(BEFORE, born=BEFORE)
    for place, operator in enumerate(graph.fields["operators"]):
        statement = 1 + sum(place >= size for size in sizes)
        told.fields["of"][place] = BEFORE if operator == "Placeholder" else statement
        if statement == BACKWARD and operator not in IDLE:
            told.fields["backward"].append(place)
    loss, gradients = step(fed)
    for statement, symbol in seen.items():
        told.see(statement, symbol)
    told.note(
        BEFORE,
        "The graph is complete before anything is computed: the Python code was run once with symbols for "
        "numbers, and the way back was added behind it.",
    )
    told.note(1, "This is what the statement saw when it was traced: a symbol. The call runs the whole graph at once.")
    text = "The way back is nodes of the same graph. After the call: {}. The Python code was run {} time."
    told.note(BACKWARD, text.format(described("loss", loss), len(sizes) // 5))
    told.see(BACKWARD, described("gradient of W_h", gradients["W_h"]))
    told.result(loss, {name: value.numpy() for name, value in gradients.items()})
    return told


class Operators(object):
    """The operators as they run, and in which order the tape then asks for their gradients."""

    def __init__(self, graph, variables, fed):
        self._graph = graph
        self._places = {fed[name]._id: graph.node("input", name) for name in sorted(fed)}
        # A variable is read into a tensor of its own; the shapes tell which one it was.
        self._read = {tuple(one.shape): graph.node("variable", name) for name, one in sorted(variables.items())}
        self._ran = []  # (operator, ids of inputs, place)
        self.going_back = False
        self.walked, self.back = [], []

    @contextlib.contextmanager
    def watching(self):
        """While it lasts, TensorFlow tells of every operator and of every gradient function it calls."""
        from tensorflow.python import pywrap_tfe
        from tensorflow.python.eager import backprop
        from tensorflow.python.framework import op_callbacks

        def gradient_function(operator, attributes, count, inputs, *others):
            self.asked(operator, inputs)
            return backprop._gradient_function(operator, attributes, count, inputs, *others)

        pywrap_tfe.TFE_Py_RegisterGradientFunction(gradient_function)
        op_callbacks.add_op_callback(self.ran)
        try:
            yield
        finally:
            op_callbacks.remove_op_callback(self.ran)
            pywrap_tfe.TFE_Py_RegisterGradientFunction(backprop._gradient_function)

    def ran(self, operator, inputs, attributes, outputs, op_name=None, graph=None, **others):
        if self.going_back:
            self.back.append(operator)
            return
        sources = []
        for tensor in inputs:
            place = self._places.get(tensor._id, self._read.get(tuple(tensor.shape)))
            sources += [] if place is None else [place]
        place = self._graph.node(operator, "", sources)
        self._places.update((tensor._id, place) for tensor in outputs)
        self._ran.append((operator, [tensor._id for tensor in inputs], place))

    def asked(self, operator, inputs):
        """The tape forgets the inputs it does not need: then it is the last of its kind."""
        ids = [tensor._id for tensor in inputs or () if hasattr(tensor, "_id")]
        left = [one for one in self._ran if one[0] == operator and one[2] not in self.walked]
        if left:
            self.walked.append(max(left, key=lambda one: (bool(set(ids) & set(one[1])), one[2]))[2])
