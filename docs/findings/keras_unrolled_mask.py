"""Keras: a bidirectional LSTM that is unrolled and masked is wrong on TensorFlow and fails on PyTorch.

Run it with a Python that has Keras 3; KERAS_BACKEND chooses tensorflow, torch or jax. Padded steps must not count: the
output for a padded sequence, up to its end, must be equal to the output for the sequence without padding.
"""

import keras
import numpy as np

STEPS, LENGTH, WIDTH = 6, 4, 3
xs = np.random.default_rng(0).uniform(-1, 1, (1, STEPS, WIDTH)).astype(np.float32)
mask = np.arange(STEPS)[None] < LENGTH

print("Keras", keras.__version__, "on", keras.backend.backend())
for unroll in (False, True):
    layer = keras.layers.Bidirectional(keras.layers.LSTM(5, return_sequences=True, unroll=unroll))
    alone = keras.ops.convert_to_numpy(layer(xs[:, :LENGTH]))
    try:
        padded = keras.ops.convert_to_numpy(layer(xs, mask=keras.ops.convert_to_tensor(mask)))[:, :LENGTH]
    except AttributeError as error:
        said = str(error).splitlines()[2].strip("\x1b[01m")  # Keras prints it in bold
        print(f"unroll={unroll}: {said}")
        continue
    way, back = (np.linalg.norm((padded - alone)[..., part]) / np.linalg.norm(alone[..., part])
                 for part in (slice(5), slice(5, 10)))  # fmt: skip
    print(f"unroll={unroll}: forwards {way:.1e}, backwards {back:.1e}")
