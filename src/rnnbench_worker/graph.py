"""The graph that a system's execution really builds, as nodes and edges that the driver understands."""

import json
import os

from .loading import load_inputs, told

#: When a framework makes a graph.
FIRST_CALL = "at the first call"
EVERY_CALL = "at every call"
NEVER = "never"


class Graph(object):
    """Nodes in an order in which they can be computed. An edge goes from a node to one that reads its result."""

    def __init__(self, form, built, text="", note=""):
        self.fields = {
            "form": form,
            "built": built,
            "operators": [],  # one for each node
            "names": [],  # the framework's or the program's name of each node, or ""
            "edges": [],
            "bodies": [],
            "text": text,  # the graph as the framework itself prints it
            "note": note,
        }

    def node(self, operator, name="", inputs=()):
        """Add a node and return its place; `inputs` are the places of the nodes it reads."""
        place = len(self.fields["operators"])
        self.fields["operators"].append(operator)
        self.fields["names"].append(name)
        self.fields["edges"].extend([source, place] for source in inputs)
        return place

    def edge(self, source, target):
        self.fields["edges"].append([source, target])

    def body(self, place, role, graph):
        """Add the graph inside a node: that of a loop, a branch or a called function."""
        self.fields["bodies"].append({"of": place, "role": role, "graph": graph.fields})


def no_graph(note):
    """The answer where an execution builds no graph: the note says why."""
    return Graph("none", NEVER, note=note)


def take_graphs(job, framework, channel):
    """Sends the path of the graphs, or nothing where the framework's folder offers no `graphs`."""
    if not hasattr(framework, "graphs"):
        return
    parameters, batches = load_inputs(job["inputs"])

    def make():
        program = framework.build(told(job), parameters)
        channel.send("built", seconds=0.0, parameters=int(program.parameter_count()), device=program.device)
        return program, program.feed(program.stage(batches[0]))

    found = framework.graphs(told(job), make)
    send_as_file(job, channel, "graphs", [graph.fields for graph in found])


def send_as_file(job, channel, name, content):
    """Deliver content in a JSON file: the graph of an unrolled network is too long for one line on the pipe."""
    path = os.path.join(job["arrays"], name + ".json")
    with open(path, "w") as file:
        json.dump(content, file)
    channel.send("file", path=path)
