"""Keras on TensorFlow."""

import tensorflow as tf

from rnnbench_worker.systems.tensorflow.device import device_of, peak_bytes, place_of, wait_for

from .program import KerasProgram


class TensorFlowProgram(KerasProgram):
    def __init__(self, job, parameters):
        super(TensorFlowProgram, self).__init__(job, parameters)
        self._place = place_of(job)

    @property
    def device(self):
        return device_of(self._model.trainable_variables[0].value)

    def put(self, array):
        with tf.device(self._place):
            return tf.convert_to_tensor(array)

    def sync(self, handle):
        wait_for(self._place)

    def peak_device_bytes(self):
        return peak_bytes(self._place)
