"""The small version of a workload: the same structure at sizes where float64 NumPy takes no time."""

from rnnbench.domain.catalog import override
from rnnbench.domain.workload import Workload

#: No two sizes alike, so that a transposed or mixed-up matrix cannot fit by chance.
_SIZES = {"batch": 5, "steps": 7, "hidden": 12}
_LAYERS = 4


def small_version(workload: Workload) -> Workload:
    """Layers, directions, head, lengths and loss stay as they are."""
    sizes = dict(_SIZES)
    if workload.layers > _LAYERS:
        sizes["layers"] = _LAYERS
    if workload.vocabulary:
        sizes |= {"vocabulary": 31, "embedding": 9}
    else:
        sizes |= {"features": 9, "classes": min(workload.classes, 10)}
    if workload.loss == "ctc":
        # Long enough that the shortest sequence holds its labels with a blank between any two.
        sizes |= {"steps": 12, "labels": 3}
        if workload.variable_length:
            sizes |= {"shortest": 6}
    return override(workload, sizes)
