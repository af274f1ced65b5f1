"""Keras on TensorFlow: Adam's second moment is wrong for a row of an embedding that occurs twice in a batch.

Run it with a Python that has Keras 3; KERAS_BACKEND chooses tensorflow, torch or jax. It makes one step on three ids,
two of them equal: the gradient of both rows is 0.5 (as 1 - 0.5, and as 0.5), so both rows must have the same moments.
"""

import keras
import numpy as np

table = keras.layers.Embedding(2, 1)
head = keras.layers.Dense(1, use_bias=False)
model = keras.Sequential([keras.Input((3,), dtype="int32"), table, keras.layers.Flatten(), head])
head.kernel.assign(np.array([[1.0], [-0.5], [0.5]]))
model.compile(keras.optimizers.Adam(), loss=lambda targets, predictions: keras.ops.mean(predictions))
model.train_on_batch(np.array([[0, 0, 1]]), np.zeros((1, 1)))

print("Keras", keras.__version__, "on", keras.backend.backend())
for variable in model.optimizer.variables:
    if "embeddings" in variable.name:
        name = variable.name.rpartition("_")[2]
        expected = {"momentum": 0.1 * 0.5, "velocity": 0.001 * 0.5**2}[name]
        rows = keras.ops.convert_to_numpy(variable).ravel()
        print(f"{name}: row 0 {rows[0]:.5f}, row 1 {rows[1]:.5f}; expected {expected:.5f} in both")
