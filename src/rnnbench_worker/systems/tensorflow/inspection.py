"""What TensorFlow shows of a program: the graph of a tf.function, XLA's HLO, eager operators as they ran; a profile."""

import tensorflow as tf

from rnnbench_worker.graph import EVERY_CALL, FIRST_CALL, Graph, no_graph
from rnnbench_worker.shared.graph_def import definition_graph
from rnnbench_worker.shared.xla import find_profile, hlo_graph, xla_timeline
from rnnbench_worker.timeline import write_chrome


def graphs(job, make):
    program, fed = make()
    function = program._train if job["phase"] == "train" else program._forward
    with tf.device(program._device_string):
        return function_graphs(function, (fed,), job["execution"].startswith("xla"))


def function_graphs(function, arguments, xla):
    """The graphs of a tf.function, or the operators of a function that runs eagerly."""
    if not hasattr(function, "get_concrete_function"):
        return [record_operators(lambda: function(*arguments))]
    found = [concrete_graph(function.get_concrete_function(*arguments))]
    if xla:
        found.append(hlo_graph(function.experimental_get_compiler_ir(*arguments)(stage="hlo"), FIRST_CALL))
    return found


def concrete_graph(concrete):
    return definition_graph(concrete.graph.as_graph_def())


def record_operators(call):
    """In eager mode there is only the tape, which keeps what gradients need until they are computed."""
    from tensorflow.python.framework import op_callbacks

    if not hasattr(op_callbacks, "add_op_callback"):
        return no_graph("TensorFlow runs operator by operator, and this version offers no way to record them")
    note = (
        "TensorFlow keeps no graph in eager mode, only a tape: these are the operators in the order in which they ran"
    )
    graph = Graph("operators as they ran", EVERY_CALL, note=note)
    places = {}

    def record(operator, inputs, attributes, outputs, op_name=None, graph_of=None, **others):
        sources = {places[tensor._id] for tensor in inputs if getattr(tensor, "_id", None) in places}
        name = operator.decode() if isinstance(operator, bytes) else operator  # raw operators come as bytes
        place = graph.node(name, "", sorted(sources))
        places.update((tensor._id, place) for tensor in outputs if hasattr(tensor, "_id"))

    op_callbacks.add_op_callback(record)
    try:
        call()
    finally:
        op_callbacks.remove_op_callback(record)
    return graph


#: The events of an eager operator and of the kernel inside it; the rest is dispatch.
EAGER = "EagerLocalExecute: "
EAGER_KERNEL = "KernelAndDeviceFunc::Run"


def profiler(job):
    return watch


def watch(program, block, folder):
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3, python_tracer_level=0)
    tf.profiler.experimental.start(folder, options)
    try:
        block()
    finally:
        tf.profiler.experimental.stop()
    return xla_timeline(write_chrome(list(chrome_events(find_profile(folder, ".xplane.pb"))), folder))


def chrome_events(path):
    """The events of tf.profiler's own binary format, whose reader is part of TensorFlow.

    A plane is a process, a line in it a thread; times in a line are picoseconds since its beginning.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # elsewhere in older versions

    space = xplane_pb2.XSpace()
    with open(path, "rb") as file:
        space.ParseFromString(file.read())
    for pid, plane in enumerate(space.planes, 1):
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": plane.name}}
        for tid, line in enumerate(plane.lines, 1):
            yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": line.name}}
            eager_op = ""
            for event in sorted(line.events, key=lambda event: event.offset_ps):
                name = plane.event_metadata[event.metadata_id].name
                args = dict(arguments(plane, event))
                if name.startswith(EAGER):
                    eager_op = name[len(EAGER) :]
                elif name == EAGER_KERNEL:
                    args["kernel_of"] = eager_op  # the event itself does not name it
                yield {
                    "ph": "X",
                    "pid": pid,
                    "tid": tid,
                    "name": name,
                    "ts": line.timestamp_ns / 1e3 + event.offset_ps / 1e6,
                    "dur": event.duration_ps / 1e6,
                    "args": args,
                }


def arguments(plane, event):
    """An event's statistics by name, which for XLA's operators say which one of the program it is."""
    for stat in event.stats:
        value = getattr(stat, stat.WhichOneof("value"))
        if stat.HasField("ref_value"):
            value = plane.stat_metadata[value].name
        if not isinstance(value, bytes):
            yield plane.stat_metadata[stat.metadata_id].name, value
