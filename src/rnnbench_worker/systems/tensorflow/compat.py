"""What older versions of TensorFlow 2 lack or name otherwise, in one home. What cannot be made up for is declared
in the manifest, by version.
"""

import tensorflow as tf

VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])

#: Where the functions about devices are; they were experiments until 2.1.
devices = tf.config if VERSION >= (2, 1) else tf.config.experimental


def allow_tf32(wanted):
    """A mode of 2.4 and later: before, fp32 is fp32."""
    if VERSION >= (2, 4):
        tf.config.experimental.enable_tensor_float_32_execution(wanted)
