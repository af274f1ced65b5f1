"""Adam by TensorFlow's fused kernel, which Keras' own optimisers no longer use."""

import tensorflow as tf

from rnnbench_worker.training import BETA_1, BETA_2, EPSILON, LEARNING_RATE


class Adam(object):
    """Moments beside the variables, and the count of steps."""

    def __init__(self, variables):
        self._variables = variables
        self.first = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
        self._second = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
        self._step = tf.Variable(0.0)

    def state(self):
        return self.first + self._second + [self._step]

    def reset(self):
        for variable in self.state():
            variable.assign(tf.zeros_like(variable))

    def apply(self, gradients):
        step = self._step.assign_add(1.0)
        decay = tf.pow(BETA_2, step)
        # The kernel adds epsilon to the root before it is corrected; scaled like this it is as published.
        epsilon = EPSILON * tf.sqrt(1.0 - decay)
        for variable, first, second, gradient in zip(self._variables, self.first, self._second, gradients):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=tf.pow(BETA_1, step),
                beta2_power=decay,
                lr=LEARNING_RATE,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=epsilon,
                # An embedding's gradient comes as the rows it touches; the kernel wants them all.
                grad=tf.convert_to_tensor(gradient),
            )
