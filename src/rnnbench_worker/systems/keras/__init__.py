"""Keras 3: one network and one program for all its backends. The folders keras-… each choose a backend.

Code only: what a backend needs besides is beside it in `on_tensorflow.py`, `on_torch.py` and `on_jax.py`.
"""


def with_version(description):
    """What a backend says of itself, and Keras's version."""
    import keras  # a backend's settings come first: Keras looks at its device when it is imported

    description["versions"]["keras"] = keras.__version__
    return description
