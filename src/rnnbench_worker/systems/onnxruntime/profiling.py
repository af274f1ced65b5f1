"""ONNX Runtime's profile of a session, which keeps it from its opening to its end."""

import gzip
import json
import os

from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Timeline, operation, read_chrome


def profiler(job):
    return watch


def watch(program, block, folder):
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
    """The last runs of the model, and all that began within them: those before were to warm up."""
    runs = sorted((event for event in events if event["name"] == "model_run"), key=lambda event: event["ts"])[-BATCHES:]
    start = runs[0]["ts"]
    return runs, [event for event in events if event["ts"] >= start and event["cat"] in ("Node", "Kernel")]
