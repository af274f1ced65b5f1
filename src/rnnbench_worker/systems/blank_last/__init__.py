"""For frameworks whose CTC takes the last class for the blank; here it is the first. Code only.

The head's columns are turned by one, so that nothing has to be moved while a batch is computed.
"""

import numpy as np


def blank_last(array):
    """Canonical classes, along the last axis, as such a framework has them."""
    return np.roll(array, -1, axis=-1)


def blank_first(array):
    """Back again."""
    return np.roll(array, 1, axis=-1)


def labels_before_blank(labels):
    """The numbers of the labels when the blank comes after them."""
    return labels - 1
