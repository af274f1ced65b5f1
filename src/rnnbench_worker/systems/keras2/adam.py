"""Keras 2's own Adam, with all gradients computed before the first update is made."""

from keras.optimizers import Adam

from rnnbench_worker.training import BETA_1, BETA_2, EPSILON, LEARNING_RATE


class GatedAdam(Adam):
    """`gate` takes the gradients and gives them back. On TensorFlow an update could otherwise overtake a gradient that
    still needs the weights as they were: docs/findings.md.
    """

    def __init__(self, gate):
        # Keras adds epsilon to the root before that is corrected: the published one at the first step, and less later.
        super(GatedAdam, self).__init__(LEARNING_RATE, BETA_1, BETA_2, epsilon=EPSILON * (1 - BETA_2) ** 0.5)
        self._gate = gate

    def get_gradients(self, loss, params):
        return self._gate(super(GatedAdam, self).get_gradients(loss, params))
