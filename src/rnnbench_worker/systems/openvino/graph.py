"""OpenVINO's graph: the one its CPU plug-in executes, after fusing."""

from rnnbench_worker.graph import FIRST_CALL, Graph


def graphs(job, make):
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
