"""Keras 2: one network and one program for its backends. The folders keras2-… each choose a backend. Code only."""


def with_version(description):
    """What a backend says of itself, and Keras's version."""
    import keras  # a backend's settings come first: Keras imports it

    description["versions"]["keras"] = keras.__version__
    return description
