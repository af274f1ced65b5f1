"""Keras 2 on TensorFlow 1."""

import tensorflow as tf

from rnnbench_worker.systems.keras2 import with_version
from rnnbench_worker.systems.tensorflow1.settings import describe_device, make_session


def describe(job):
    description = with_version(describe_device(job))
    from keras import backend

    # Keras would make one whose threads across operators are as many as the machine has.
    backend.set_session(make_session(job, tf.get_default_graph()))
    return description


def build(job, parameters):
    from rnnbench_worker.systems.keras2.program import Keras2Program

    return Keras2Program(job, parameters, gate=tf.tuple)
