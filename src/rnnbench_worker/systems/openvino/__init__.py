"""OpenVINO: the PyTorch network converted and compiled for the CPU."""

from rnnbench_worker.graph import FIRST_CALL, Graph
from rnnbench_worker.shared.exported import builds
from rnnbench_worker.timeline import Timeline, end_to_end

from .program import CompiledProgram, apply_settings, describe_device, openvino

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    apply_settings(job)
    return describe_device(job)


def build(job, parameters):
    return CompiledProgram(job, parameters)


def graphs(job, make):
    """The graph that OpenVINO's CPU plugin executes, after fusing."""
    program, fed = make()
    program.forward(fed)
    graph = Graph("OpenVINO runtime graph", FIRST_CALL)
    places = {}
    for node in program.engine().get_compiled_model().get_runtime_model().get_ordered_ops():
        sources = [source.get_source_output().get_node().get_friendly_name() for source in node.inputs()]
        places[node.get_friendly_name()] = graph.node(
            node.get_rt_info()["layerType"].astype(str),
            node.get_friendly_name(),
            [places[source] for source in sources],
        )
    return [graph]


def profiler(job):
    return watch


def watch(program, block, folder):
    """By performance counters, which have the time of each node in the last inference. OpenVINO writes no trace."""
    block(1)
    executed = openvino.ProfilingInfo.Status.EXECUTED
    totals = [
        (node.node_type, 1, node.real_time.total_seconds())
        for node in program.engine().get_profiling_info()
        if node.status == executed
    ]
    return Timeline(host=end_to_end(totals), device=[], batches=1, file="")
