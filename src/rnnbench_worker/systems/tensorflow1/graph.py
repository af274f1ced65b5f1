"""TensorFlow 1's graph: flat, its loops as nodes that go round (Enter, Merge, Switch, NextIteration, Exit)."""

import tensorflow as tf

from rnnbench_worker.systems.graph_def import definition_graph, sources_of


def graphs(job, make):
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [graph_behind(program._graph, program._fetches)]


def graph_behind(graph, fetches):
    """What a session runs for these fetches; the graph holds more, such as what gives variables their first values."""
    whole = graph.as_graph_def()
    fetches = fetches if isinstance(fetches, list) else [fetches]
    names = [getattr(fetch, "op", fetch).name for fetch in fetches]  # of a tensor, what makes it
    note = "of the {} nodes in the tf.Graph those that a batch needs; the session runs no others"
    part = tf.graph_util.extract_sub_graph(whole, names)
    return definition_graph(tf.GraphDef(node=in_order(part.node), library=part.library), note.format(len(whole.node)))


def in_order(nodes):
    """Each after all that it reads, but for what comes round a loop. As they were made, some precede their Enter."""
    by_name = {node.name: node for node in nodes}
    placed, order = set(), []
    for node in nodes:
        waiting = [node]
        while waiting:
            found = [by_name[name] for name in sources_of(waiting[-1]) if name not in placed]
            first = [one for one in found if one.op != "NextIteration"]
            waiting += first
            if not first:
                last = waiting.pop()
                if last.name not in placed:
                    placed.add(last.name)
                    order.append(last)
    return order
