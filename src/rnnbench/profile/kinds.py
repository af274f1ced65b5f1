"""What kind of work an operator does, from its name: the only thing that every profiler tells."""

import re
from collections.abc import Iterable
from typing import Literal

from rnnbench.domain.profile import Operator

Kind = Literal["product", "recurrent", "memory", "other"]

#: One operator for a whole layer or more: products inside, with what belongs to them.
_RECURRENT = ("lstm", "rnn", "elman")

_PRODUCT = (
    "gemm", "gemv", "matmul", r"(^|::|_)(add|badd|b)?mm(_|$)", "^dot", "[^a-z]dot([^a-z]|$)", "linear",
    "fullyconnected", "einsum", "cutlass", "cublas", "xmma",
    "[xy]nn_fusion",  # XLA's name on CPUs for a product that it leaves to a library
)  # fmt: skip

#: Next to nothing is done with each number that is read or written.
_MEMORY = (
    "add", "sub", "mul", "div", "neg", "sigmoid", "tanh", "relu", "exp", "log", "sqrt", "pow", "abs", "max", "min",
    "sum", "mean", "reduc", "norm", "entropy", "nll", "where", "less", "greater", "equal", "compare", "elemwise",
    "elementwise", "eltwise", "vectorized", "fus", "cpp_", "triton_(poi|red|per)", "adam", "lerp", "foreach",
    "multi_tensor", "accumulate", "copy", "clone", "memcpy", "memset", "reorder", "cast", "convert", "::to$", "assign",
    "readvariable", "cat", "concat", "stack", "split", "slice", "select", "narrow", "index", "gather", "scatter",
    "embed", "unbind", "subtensor", "fill", "zero", "ones", "full", "empty", "alloc", "iota", "range", "broadcast",
    "expand", "tile", "pad", "view", "reshape", "transpose", "permute", "squeeze", "strided", "dimshuffle", "::t$",
    "detach", "identity", "const",
)  # fmt: skip

#: Looked through in this order. Names are operators of frameworks, operators of XLA, kernels of CUDA.
_RULES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("recurrent", re.compile("|".join(_RECURRENT), re.IGNORECASE)),
    ("product", re.compile("|".join(_PRODUCT), re.IGNORECASE)),
    ("memory", re.compile("|".join(_MEMORY), re.IGNORECASE)),
)


def kind_of(name: str) -> Kind:
    """`other` where the name tells nothing that is known here."""
    return next((kind for kind, pattern in _RULES if pattern.search(name)), "other")


def counts_by_kind(operators: Iterable[Operator]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in operators:
        kind = kind_of(one.name)
        found[kind] = found.get(kind, 0.0) + one.count
    return found


def seconds_by_kind(operators: Iterable[Operator], busy_s: float) -> dict[str, float]:
    """Their seconds by kind, brought to the time in which any of them ran: several may run at once."""
    found: dict[str, float] = {}
    for one in operators:
        kind = kind_of(one.name)
        found[kind] = found.get(kind, 0.0) + one.seconds
    total = sum(found.values())
    return {kind: seconds / total * busy_s for kind, seconds in found.items()} if total else {}
