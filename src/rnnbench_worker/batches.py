"""What the losses need of a batch besides what it holds."""

import numpy as np


def with_lengths(batch, workload):
    """CTC wants the lengths of sequences and labels even where all are the same."""
    if workload["loss"] != "ctc":
        return dict(batch)
    count, labels = batch["targets"].shape
    completed = {"lengths": np.full(count, workload["steps"]), "target_lengths": np.full(count, labels)}
    completed.update(batch)
    return completed


def as_int32(batch):
    """Integers 32 bits wide, as JAX and TensorFlow's kernels have them; all else in one piece of memory."""
    return {
        name: array.astype(np.int32) if array.dtype.kind == "i" else np.ascontiguousarray(array)
        for name, array in batch.items()
    }


def steps_first(logits):
    """[batch, steps, classes] and [steps, batch, classes], one from the other; [batch, classes] as it is."""
    return np.ascontiguousarray(logits.swapaxes(0, 1)) if logits.ndim == 3 else logits
