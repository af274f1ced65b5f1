"""TensorFlow 1 traces a run of a session that asks for it: every operator as the executor ran it."""

import json
import re

import tensorflow as tf
from tensorflow.python.client.timeline import Timeline as ChromeTrace

from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Operation, Timeline
from rnnbench_worker.xla_trace import perfetto_file

#: `a/path/MatMul_1 = MatMul(a/path/x, a/path/w)`, as each operator is labelled.
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
    return Timeline(host=operations(runs), device=[], batches=BATCHES, file=perfetto_file(events, folder))


def traced_runs(session, block):
    """The StepStats of every run of the session within the block."""
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
    """From a kernel's start to its end: what surrounds that is the executor's own. Kernels call no kernels, and the
    stats do not say on which thread one ran: each has a lane of its own.
    """
    nodes = [node for stats in runs for device in stats.dev_stats for node in device.node_stats]
    return [
        Operation(
            kind_of(node),
            str(lane),
            (node.all_start_micros + node.op_start_rel_micros) / 1e6,
            (node.op_end_rel_micros - node.op_start_rel_micros) / 1e6,
        )
        for lane, node in enumerate(nodes)
    ]


def kind_of(node):
    labelled = LABEL.search(node.timeline_label)
    return labelled.group(1) if labelled else node.node_name
