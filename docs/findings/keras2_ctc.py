"""Keras 2.1.6: CTC on Theano is a different loss than on TensorFlow.

Run it with Keras 2.1.6 on either backend: KERAS_BACKEND=theano python keras2_ctc.py
"""

import itertools

import keras
import numpy as np
from keras import backend as K

STEPS, CLASSES = 6, 4
BLANK = CLASSES - 1
LABELS = [0, 2]


def read(path):
    """The labels of a path: repeated classes once, without blanks."""
    return [label for label, _ in itertools.groupby(path) if label != BLANK]


def of_all_paths(probabilities):
    """CTC by its definition: minus the logarithm of the sum over all paths with these labels."""
    paths = (path for path in itertools.product(range(CLASSES), repeat=STEPS) if read(path) == LABELS)
    return -np.log(sum(np.prod([probabilities[step, label] for step, label in enumerate(path)]) for path in paths))


logits = np.random.RandomState(0).uniform(-3, 3, (1, STEPS, CLASSES))
probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
tensors = [K.variable(np.array([LABELS]), dtype="int32"), K.variable(probabilities)]
tensors += [K.variable(np.array([[count]]), dtype="int32") for count in (STEPS, len(LABELS))]
expected = of_all_paths(probabilities[0])
found = float(np.ravel(K.eval(K.ctc_batch_cost(*tensors)))[0])
print(f"Keras {keras.__version__} on {K.backend()}")
print(f"CTC {found:.6f}, by all paths {expected:.6f}, off by {abs(found / expected - 1):.1e}")
