"""Keras 2 on TensorFlow 1."""

import tensorflow as tf

from rnnbench_worker.program import built_once as builds
from rnnbench_worker.systems.tensorflow1.inspection import graph_needed_for, watch_session
from rnnbench_worker.systems.tensorflow1.program import describe_device, make_session

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    description = describe_device(job)  # before Keras: the first session sets the number of threads
    from keras import backend

    from rnnbench_worker.shared.keras2 import add_keras_version

    # In a session of Keras's own, the threads across operators would be as many as the machine has.
    backend.set_session(make_session(job, tf.get_default_graph()))
    return add_keras_version(description)


def build(job, parameters):
    from rnnbench_worker.shared.keras2 import Keras2Program

    return Keras2Program(job, parameters, gate=tf.tuple)


def graphs(job, make):
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [graph_needed_for(tf.get_default_graph(), program.function.outputs + [program.function.updates_op])]


def profiler(job):
    return watch


def watch(program, block, folder):
    from keras import backend

    return watch_session(backend.get_session(), block, folder)
