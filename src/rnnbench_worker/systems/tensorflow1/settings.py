"""What is set once per process: the threads; and what TensorFlow then has.

Denormals need no setting: the threads of TensorFlow's pools flush them by themselves.
"""

import tensorflow as tf


def make_session(job, graph):
    """The first session of a process sizes the pools of all: one within operators, one across them."""
    config = tf.ConfigProto(intra_op_parallelism_threads=job["threads"], inter_op_parallelism_threads=job["threads"])
    return tf.Session(graph=graph, config=config)


def describe_device(job):
    with make_session(job, tf.Graph()) as session:
        kinds = {device.device_type for device in session.list_devices()}
        return {
            "versions": {"tensorflow": tf.__version__},
            "device": "cuda" if "GPU" in kinds else "cpu",
            "device_name": "",
            "threads": session._config.intra_op_parallelism_threads,
        }
