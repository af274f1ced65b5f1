"""TensorFlow 1's graph: flat, its loops as nodes that go round (Enter, Merge, Switch, NextIteration, Exit)."""

import tensorflow as tf

from rnnbench_worker.systems.graph_def import definition_graph


def graphs(job, make):
    program, fed = make()
    (program.train if job["phase"] == "train" else program.forward)(fed)
    return [graph_behind(program._graph, program._fetches)]


def graph_behind(graph, fetches):
    """What a session runs for these fetches; the graph holds more, such as what gives variables their first values."""
    whole = graph.as_graph_def()
    fetches = fetches if isinstance(fetches, list) else [fetches]
    names = [getattr(fetch, "op", fetch).name for fetch in fetches]  # of a tensor, what makes it
    note = "of the {} nodes in the tf.Graph those that a batch needs; the session runs no others".format(len(whole.node))
    return definition_graph(tf.graph_util.extract_sub_graph(whole, names), note)
