"""The small version of a workload: the same structure at sizes where float64 NumPy takes no time."""

import msgspec

from rnnbench.domain.catalog import validated
from rnnbench.domain.workload import Workload

#: No two sizes alike, so that a transposed or mixed-up matrix cannot fit by chance.
_SIZES = {"batch": 5, "steps": 6, "hidden": 12}

#: One layer that reads the data and one that reads a layer: more would only be compiled for longer.
_LAYERS = 2


def small_version(workload: Workload) -> Workload:
    """Directions, head, lengths, loss and the layers (up to two) stay as they are.

    The name says all that was chosen, whatever was overridden before: workloads of one structure share
    their small version, and what is proved of it.
    """
    sizes = {**_SIZES, "layers": min(workload.layers, _LAYERS)}
    if workload.one_step:
        sizes = {"batch": 5, "features": 9, "hidden": 12}
    elif workload.vocabulary:
        sizes |= {"vocabulary": 31, "classes": 31, "embedding": 9}
    else:
        sizes |= {"features": 9, "classes": min(workload.classes, 10)}
    if workload.loss == "ctc":
        # The shortest sequence just holds its labels with a blank between any two.
        sizes |= {"labels": 2}
        if workload.variable_length:
            sizes |= {"shortest": 3}
    inside = ",".join(f"{name}={value}" for name, value in sorted(sizes.items()))
    return validated(msgspec.structs.replace(workload, name=f"{workload.id}[{inside}]", **sizes))
