"""TensorFlow under tf.profiler."""

import tensorflow as tf

from rnnbench_worker.xla_trace import watched


def profiler(job):
    return watch


def watch(program, block, folder):
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3, python_tracer_level=0)
    return watched(
        lambda place: tf.profiler.experimental.start(place, options), tf.profiler.experimental.stop, block, folder
    )
