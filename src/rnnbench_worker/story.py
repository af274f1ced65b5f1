"""The story of one recurrent step: what each of its six statements adds to a graph, or finds in an existing one.

The statements are those of Tim Lazarus, "Comparing TensorFlow 2.0 with PyTorch and PyTorch JIT" (slides, 2019). A
framework that takes part has a function `story(job, parameters, batch)` that returns a `Story`.
"""

import inspect
import re

import numpy as np

from .graph import send_as_file
from .loading import load_inputs, told

#: An assignment of the slides, but not one that calls another part of the step.
ASSIGNMENT = re.compile(r"\s*((?:h2h|i2h|next_h|loss) = (?!self\.).*)")
#: The numbers of what comes before the first statement, and of the last statement, the backward pass.
BEFORE, BACKWARD = 0, 6


def tell_story(job, framework, channel):
    parameters, batches = load_inputs(job["inputs"])
    send_as_file(job, channel, "story", framework.story(told(job), parameters, batches[0]).fields)


class Story(object):
    """The nodes of one graph, the statement that creates each and the one it computes, and the backward pass."""

    def __init__(self, title, graph, code):
        self._graph = graph
        self.fields = {
            "title": title,
            "graph": graph.fields,
            "code": code,
            "born": [],  # for each node the statement after which it exists; 0: before the first
            "of": [],  # for each node the statement that it computes; 0: it is read by all of them
            "values": [""] * (BACKWARD + 1),  # what can be seen after each statement
            "backward": [],  # the places of the nodes in the order of the backward pass
            "notes": {},
        }

    def mark(self, statement, born):
        """Assign all nodes that have been added since the last call to this statement."""
        new = len(self._graph.fields["operators"]) - len(self.fields["of"])
        self.fields["of"] += [statement] * new
        self.fields["born"] += [born] * new

    def show_value(self, statement, value):
        self.fields["values"][statement] = value

    def note(self, statement, text):
        self.fields["notes"][str(statement)] = text

    def result(self, loss, gradients):
        """What the driver compares with its reference before it shows the story."""
        self.fields["loss"] = float(loss)
        self.fields["gradients"] = {name: np.asarray(value).tolist() for name, value in gradients.items()}


def find_statements(*functions):
    """(line numbers, code) of the five assignments in the source of the functions that are run."""
    found = []
    for function in functions:
        lines, start = inspect.getsourcelines(function)
        for number, line in enumerate(lines):
            assignment = ASSIGNMENT.match(line)
            if assignment:
                found.append((start + number, assignment.group(1)))
    return [line for line, _ in found], [code for _, code in found]


def describe_array(name, value):
    """`h2h [20, 1]: 0.12, -0.53, 0.08, …`"""
    array = np.asarray(value)
    shown = ", ".join("{:.3f}".format(number) for number in array.ravel()[:3])
    return "{} {}: {}{}".format(name, list(array.shape), shown, ", …" if array.size > 3 else "")
