"""Keras on TensorFlow."""

import tensorflow as tf

from rnnbench_worker.systems.tensorflow.settings import device_of

from .program import KerasProgram


class TensorFlowProgram(KerasProgram):
    @property
    def device(self):
        return device_of(self._model.trainable_variables[0].value)

    def put(self, array):
        with tf.device("/GPU:0" if self._cuda else "/CPU:0"):
            return tf.convert_to_tensor(array)

    def sync(self, handle):
        # On a CPU a call returns when it is done; a GPU is asked.
        if self._cuda:
            tf.test.experimental.sync_devices()

    def peak_device_bytes(self):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] if self._cuda else None
