"""TensorFlow's fastest product and copy, for the machine's limit."""

import tensorflow as tf

from .device import place_of, wait_for


def rates(job):
    place = place_of(job)
    precision = tf.bfloat16 if job["precision"] == "bf16" else tf.float32  # TF32 is a setting of the process

    def product(size):
        with tf.device(place):
            left, right = [tf.cast(tf.random.uniform([size, size]), precision) for _ in range(2)]
        return lambda: tf.matmul(left, right)

    def copy(count):
        with tf.device(place):
            source = tf.random.uniform([count])
        # Negated on the way: a plain assignment or identity shares the memory and copies nothing.
        return lambda: tf.negative(source)

    return {"product": product, "copy": copy, "sync": lambda handle: wait_for(place)}
