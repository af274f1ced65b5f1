"""TensorFlow under tf.profiler, which leaves its own binary form; what reads that comes with TensorFlow."""

import tensorflow as tf

from rnnbench_worker.xla_trace import only_file, perfetto_file, timeline

#: An eager operator, and within it its kernel: the rest is dispatch.
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
    return timeline(perfetto_file(list(chrome_events(only_file(folder, ".xplane.pb"))), folder))


def chrome_events(path):
    """A plane is a process, a line in it a thread; times within a line are picoseconds after its beginning."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # not where it was in older versions

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
                    args["kernel_of"] = eager_op  # it does not say so itself
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
    """Its statistics by name: of XLA's operators, which one of the program it is."""
    for stat in event.stats:
        value = getattr(stat, stat.WhichOneof("value"))
        if stat.HasField("ref_value"):
            value = plane.stat_metadata[value].name
        if not isinstance(value, bytes):
            yield plane.stat_metadata[stat.metadata_id].name, value
