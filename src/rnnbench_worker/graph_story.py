"""Seed 003's six statements, one by one: what each of them adds to a graph, or finds in one that is there already.

A framework that takes part has a function `story(job, parameters, batch)` that returns what `Story` collects.
"""

import inspect
import re

import numpy as np

from .graph import deliver
from .loading import load_inputs

ASSIGNMENT = re.compile(r"\s*((?:h2h|i2h|next_h|loss) = (?!self\.).*)")  # not a call of another part of the step
BEFORE, BACKWARD = 0, 6


def tell_story(job, framework, channel):
    parameters, batches = load_inputs(job["inputs"])
    deliver(job, channel, "story", framework.story(job, parameters, batches[0]).fields)


class Story(object):
    """Nodes of one graph, each with the statement that makes it and the one it belongs to; then the way back."""

    def __init__(self, title, graph, code):
        self._graph = graph
        self.fields = {
            "title": title,
            "graph": graph.fields,
            "code": code,
            "born": [],  # of every node: the statement after which it exists; 0: before all of them
            "of": [],  # of every node: the statement it computes; 0: what all of them read
            "values": [""] * (BACKWARD + 1),  # what one can see after each statement
            "backward": [],  # places, in the order in which the way back goes through them
            "notes": {},
        }

    def mark(self, statement, born):
        """All nodes that are new belong to this statement."""
        new = len(self._graph.fields["operators"]) - len(self.fields["of"])
        self.fields["of"] += [statement] * new
        self.fields["born"] += [born] * new

    def see(self, statement, value):
        self.fields["values"][statement] = value

    def note(self, statement, text):
        self.fields["notes"][str(statement)] = text

    def result(self, loss, gradients):
        """For the driver to compare with its reference before it believes the page."""
        self.fields["loss"] = float(loss)
        self.fields["gradients"] = {name: np.asarray(value).tolist() for name, value in gradients.items()}


def statements(*functions):
    """The five assignments, as they stand in the source of what is run; with their line numbers."""
    found = []
    for function in functions:
        lines, start = inspect.getsourcelines(function)
        for number, line in enumerate(lines):
            assignment = ASSIGNMENT.match(line)
            if assignment:
                found.append((start + number, assignment.group(1)))
    return [line for line, _ in found], [code for _, code in found]


def described(name, value):
    """`h2h [20, 1]: 0.12, -0.53, 0.08, …`"""
    array = np.asarray(value)
    shown = ", ".join("{:.3f}".format(number) for number in array.ravel()[:3])
    return "{} {}: {}{}".format(name, list(array.shape), shown, ", …" if array.size > 3 else "")
