"""Taking the graph that a system's execution really builds, told as nodes and edges the driver understands."""

import json
import os

from .loading import load_inputs

#: When a framework makes a graph.
FIRST_CALL = "at the first call"
EVERY_CALL = "at every call"
NEVER = "never"


class Graph(object):
    """Nodes in an order in which they can be computed; edges go the way the numbers go."""

    def __init__(self, form, built, text="", note=""):
        self.fields = {
            "form": form,
            "built": built,
            "operators": [],  # of every node
            "names": [],  # what the framework or the program calls it, or ""
            "edges": [],
            "bodies": [],
            "text": text,  # as the framework itself prints it
            "note": note,
        }

    def node(self, operator, name="", inputs=()):
        """Its place; inputs are places of others."""
        place = len(self.fields["operators"])
        self.fields["operators"].append(operator)
        self.fields["names"].append(name)
        self.fields["edges"].extend([source, place] for source in inputs)
        return place

    def edge(self, source, target):
        self.fields["edges"].append([source, target])

    def body(self, place, role, graph):
        """The graph inside a node: of a loop, a branch, a function called."""
        self.fields["bodies"].append({"of": place, "role": role, "graph": graph.fields})


def no_graph(note):
    """Where there is none, the reason is the answer."""
    return Graph("none", NEVER, note=note)


def take_graphs(job, framework, channel):
    """Sends where the graphs lie; sends nothing where the framework's folder offers no `graphs`."""
    if not hasattr(framework, "graphs"):
        return
    parameters, batches = load_inputs(job["inputs"])

    def make():
        program = framework.build(job, parameters)
        channel.send("built", seconds=0.0, parameters=int(program.parameter_count()), device=program.device)
        return program, program.feed(program.stage(batches[0]))

    found = framework.graphs(job, make)
    deliver(job, channel, "graphs", [graph.fields for graph in found])


def deliver(job, channel, name, content):
    """Through a file: an unrolled network's graph is longer than a line should be."""
    path = os.path.join(job["arrays"], name + ".json")
    with open(path, "w") as file:
        json.dump(content, file)
    channel.send("file", path=path)
