"""TensorFlow 1's own Adam, with epsilon where it was published."""

import tensorflow as tf

from rnnbench_worker.training import BETA_1, BETA_2, EPSILON, LEARNING_RATE


class Adam(tf.train.AdamOptimizer):
    def __init__(self):
        super(Adam, self).__init__(LEARNING_RATE, BETA_1, BETA_2, EPSILON)

    def _prepare(self):
        super(Adam, self)._prepare()
        _, decay = self._get_beta_accumulators()
        # The kernel adds epsilon to the root before it is corrected; scaled like this it is as published.
        self._epsilon_t = EPSILON * tf.sqrt(1.0 - decay)
