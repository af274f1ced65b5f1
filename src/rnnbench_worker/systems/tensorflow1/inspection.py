"""What TensorFlow 1 shows of a program: its graph, and its trace of a session's run.

The graph is flat: a loop is a cycle of nodes (Enter, Merge, Switch, NextIteration, Exit).
"""

import json
import re

import tensorflow as tf
from tensorflow.python.client.timeline import Timeline as ChromeTrace

from rnnbench_worker.profile import BATCHES
from rnnbench_worker.shared.graph_def import definition_graph, input_names
from rnnbench_worker.timeline import Operation, Timeline, write_chrome


def graphs(job, make):
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [graph_needed_for(program._graph, program._fetches)]


def graph_needed_for(graph, fetches):
    """What a session runs for these fetches; the graph has more nodes, such as those that initialise variables."""
    whole = graph.as_graph_def()
    fetches = fetches if isinstance(fetches, list) else [fetches]
    names = [getattr(fetch, "op", fetch).name for fetch in fetches]  # a tensor has the operator that computes it
    note = "those of the {} nodes of the tf.Graph that a batch needs; the session runs no others"
    part = tf.graph_util.extract_sub_graph(whole, names)
    return definition_graph(
        tf.GraphDef(node=in_computable_order(part.node), library=part.library), note.format(len(whole.node))
    )


def in_computable_order(nodes):
    """Each node after all that it reads, except along edges that close a loop. Some are listed before their Enter."""
    by_name = {node.name: node for node in nodes}
    placed, order = set(), []
    for node in nodes:
        waiting = [node]
        while waiting:
            found = [by_name[name] for name in input_names(waiting[-1]) if name not in placed]
            first = [one for one in found if one.op != "NextIteration"]
            waiting += first
            if not first:
                last = waiting.pop()
                if last.name not in placed:
                    placed.add(last.name)
                    order.append(last)
    return order


#: The label of an operator: `a/path/MatMul_1 = MatMul(a/path/x, a/path/w)`.
LABEL = re.compile(r" = (\w+)\(")


def profiler(job):
    return watch


def watch(program, block, folder):
    return watch_session(program._session, block, folder)


def watch_session(session, block, folder):
    runs = traced_runs(session, block)
    assert len(runs) == BATCHES
    events = [
        event
        for stats in runs
        for event in json.loads(ChromeTrace(stats).generate_chrome_trace_format(show_dataflow=False))["traceEvents"]
    ]
    return Timeline(host=operations(runs), device=[], batches=BATCHES, file=write_chrome(events, folder))


def traced_runs(session, block):
    """The StepStats of every run of the session during the block."""
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    found, plain = [], session.run

    def traced(*arguments, **named):
        metadata = tf.RunMetadata()
        results = plain(*arguments, options=options, run_metadata=metadata, **named)
        found.append(metadata.step_stats)
        return results

    session.run = traced
    try:
        block()
    finally:
        del session.run
    return found


def operations(runs):
    """From the start of each kernel to its end, without the executor's work around it. Kernels call no kernels, and
    the statistics do not name their threads, so that each gets a lane of its own.
    """
    nodes = [node for stats in runs for device in stats.dev_stats for node in device.node_stats]
    return [
        Operation(
            operator_of(node),
            str(lane),
            (node.all_start_micros + node.op_start_rel_micros) / 1e6,
            (node.op_end_rel_micros - node.op_start_rel_micros) / 1e6,
        )
        for lane, node in enumerate(nodes)
    ]


def operator_of(node):
    labelled = LABEL.search(node.timeline_label)
    return labelled.group(1) if labelled else node.node_name
