"""Keras 2 on TensorFlow 1."""

import tensorflow as tf

from rnnbench_worker.program import built_once as builds
from rnnbench_worker.systems.keras2 import with_version
from rnnbench_worker.systems.tensorflow1.graph import graph_behind
from rnnbench_worker.systems.tensorflow1.profiling import watch_session
from rnnbench_worker.systems.tensorflow1.settings import describe_device, make_session

__all__ = ["build", "builds", "describe", "graphs", "profiler"]


def describe(job):
    description = with_version(describe_device(job))
    from keras import backend

    # Keras would make one whose threads across operators are as many as the machine has.
    backend.set_session(make_session(job, tf.get_default_graph()))
    return description


def build(job, parameters):
    from rnnbench_worker.systems.keras2.program import Keras2Program

    return Keras2Program(job, parameters, gate=tf.tuple)


def graphs(job, make):
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [graph_behind(tf.get_default_graph(), program.function.outputs + [program.function.updates_op])]


def profiler(job):
    return watch


def watch(program, block, folder):
    from keras import backend

    return watch_session(backend.get_session(), block, folder)
