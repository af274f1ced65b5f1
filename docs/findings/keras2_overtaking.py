"""Keras 2.1.6 on TensorFlow 1.8: the update of a layer may overtake the gradient of the layer before it.

Run it with Keras 2.1.6 on TensorFlow 1.8. It repeats the same step from the same weights many times. The change of the
LSTM's weights must be the same every time, whatever the head's update is. A learning rate of 1 makes the error large.
"""

import keras
import numpy as np
from keras import backend as K
from keras import layers

random = np.random.RandomState(0)
model = keras.models.Sequential([layers.LSTM(12, input_shape=(6, 9)), layers.Dense(10, use_bias=False)])
model.compile(keras.optimizers.SGD(1.0), loss="mse")
start = [random.uniform(-0.3, 0.3, K.int_shape(weight)) for weight in model.weights]
inputs, targets = random.uniform(-1, 1, (5, 6, 9)), random.uniform(-1, 1, (5, 10))
rights = K.function(
    [model.input, model.targets[0], model.sample_weights[0]], K.gradients(model.total_loss, model.weights)
)

model.set_weights(start)
expected = rights([inputs, targets, np.ones(5)])[0]
wrong, worst = 0, 0.0
for _ in range(300):
    model.set_weights(start)
    model.train_on_batch(inputs, targets)
    found = start[0] - model.get_weights()[0]
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    wrong, worst = wrong + (error > 1e-4), max(worst, error)
print(f"Keras {keras.__version__} on {K.backend()}: {wrong} of 300 steps wrong, worst by {worst:.1e}")
