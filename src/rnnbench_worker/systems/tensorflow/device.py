"""The job's device in TensorFlow's words: where to put things, where they are, waiting for it, what it had to hold."""

import tensorflow as tf

GPU = "/GPU:0"


def place_of(job):
    return GPU if job["device"] == "cuda" else "/CPU:0"


def device_of(variable):
    """Where a variable really is, in the job's words: asked for a GPU, TensorFlow silently takes what there is."""
    return "cuda" if "GPU" in variable.device.upper() else "cpu"


def wait_for(place):
    """On a CPU a call returns when it is done; a GPU is asked."""
    if place == GPU:
        tf.test.experimental.sync_devices()


def peak_bytes(place):
    return tf.config.experimental.get_memory_info("GPU:0")["peak"] if place == GPU else None
