"""ONNX Runtime: the PyTorch network exported to ONNX and run in a session."""

import gzip
import json
import os

from rnnbench_worker.graph import FIRST_CALL, Graph
from rnnbench_worker.profile import BATCHES
from rnnbench_worker.shared.exported import argument_names, builds, example_arguments
from rnnbench_worker.timeline import Timeline, operation, read_chrome

from .program import SessionProgram, apply_settings, describe_device, onnx_bytes

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    return SessionProgram(job, parameters)


def graphs(job, make):
    """The ONNX graph that a session gets: each layer of the stack is one LSTM node."""
    import onnx  # only here, because the session does not need it

    program, _ = make()
    names = argument_names(job["workload"])
    model = onnx.load_model_from_string(onnx_bytes(program._network, example_arguments(job["workload"]), names))
    graph = Graph("ONNX graph", FIRST_CALL)
    places = {value.name: graph.node("input", value.name) for value in model.graph.input}
    for node in model.graph.node:
        place = graph.node(node.op_type, node.name, [places[name] for name in node.input if name in places])
        places.update((name, place) for name in node.output)
    return [graph]


def profiler(job):
    return watch


def watch(program, block, folder):
    """By ONNX Runtime's profile of a session, which covers everything since the session was opened."""
    block()
    (runs, nodes) = last_runs(list(read_chrome(program.engine().end_profiling())))
    path = os.path.join(folder, "trace.json.gz")
    with gzip.open(path, "wt") as file:
        json.dump(runs + nodes, file)
    return Timeline(
        host=[operation(event, event["args"]["op_name"]) for event in nodes if event["cat"] == "Node"],
        device=[operation(event) for event in nodes if event["cat"] == "Kernel"],
        batches=BATCHES,
        file=path,
    )


def last_runs(events):
    """The last runs of the model, and everything that began in them: the runs before were the warm-up."""
    runs = sorted((event for event in events if event["name"] == "model_run"), key=lambda event: event["ts"])[-BATCHES:]
    start = runs[0]["ts"]
    return runs, [event for event in events if event["ts"] >= start and event["cat"] in ("Node", "Kernel")]
