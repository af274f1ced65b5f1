"""TensorFlow's stack with cuDNN's operator replaced by one that reads the flat weights in the documented layout.

Without a GPU only cuDNN itself remains unverified. The layout, the biases, the lengths, the gradients and the updates
are those of the real system.
"""

import tensorflow as tf

from rnnbench_worker.systems import tensorflow as real

from .operators import StandIn

#: The fault of each broken execution.
FAULTS = {
    "other-gates": {"gates": "iofg"},
    "other-directions": {"backward_first": True},
    "other-layout": {"biases_beside_matrices": True},
}

describe = real.describe


def build(job, parameters):
    fault = FAULTS.get(job["execution"])
    stand_in = StandIn(**fault or {})
    tf.raw_ops.CudnnRNNV3 = stand_in.rnn
    return real.build(dict(job, execution="eager") if fault else job, parameters)
