"""The four quick conclusions of seed 000, taken apart into quotients of times that they say are greater than 1.

"More efficient than" becomes the other's time over its own; "a larger difference on the CPU" the quotient
of two quotients. Where the seed says "could be", one case is enough; otherwise all must hold. Where it
names no device or table, every one it has is tested, so that it may turn out to hold in some only.
"""

from itertools import product
from typing import Literal, NamedTuple

from rnnbench.domain.system import PHASES, Device
from rnnbench.domain.workload import Phase

EAGER, GRAPH, TORCH, JIT = "TF Eager", "TF Graph", "PyTorch", "PyTorch JIT on outer scope"
FINE, CELL, CUDNN = "fine-grained operators", "static LSTM cell", "cuDNN LSTM"
LOOPS = (FINE, CELL)


class Time(NamedTuple):
    """One entry of the seed's tables."""

    label: str
    table: str
    phase: Phase
    device: Device

    @property
    def seed_label(self) -> str:
        """What a manifest gives as `seed`. One of the tables has hyphens."""
        label = self.label.replace("TF ", "TF-") if self.table == CUDNN else self.label
        return f"{label} ({self.table})"


class Quotient(NamedTuple):
    """What is said to be greater than 1: the product of `over` divided by that of `under`."""

    statement: str
    over: tuple[Time, ...]
    under: tuple[Time, ...]


class Assertion(NamedTuple):
    """One part of a conclusion, as something that can be true or false."""

    statement: str
    quotients: tuple[Quotient, ...]
    rule: Literal["all", "any"] = "all"


class Conclusion(NamedTuple):
    number: int
    text: str
    assertions: tuple[Assertion, ...]


def _longer(one: Time, other: Time) -> Quotient:
    """The first takes longer than the second; the statement names only what differs."""
    differs = [index for index in range(len(one)) if one[index] != other[index]]
    first, second = (" ".join(str(time[index]) for index in differs) for time in (one, other))
    same = [str(value) for index, value in enumerate(one) if index not in differs]
    return Quotient(f"{first} over {second}: {', '.join(same)}", (one,), (other,))


def _settings(device: Device) -> tuple[str, ...]:
    """The tables the seed has for a device."""
    return LOOPS if device == "cpu" else (*LOOPS, CUDNN)


def _rivals(table: str) -> tuple[str, ...]:
    """PyTorch's rows of a table: its JIT was not tried on cuDNN's."""
    return (TORCH,) if table == CUDNN else (TORCH, JIT)


def _tensorflow_eager() -> tuple[Assertion, ...]:
    return (
        Assertion(
            "TensorFlow Eager can be slower on the GPU than on the CPU",
            tuple(
                _longer(Time(EAGER, table, phase, "cuda"), Time(EAGER, table, phase, "cpu"))
                for table, phase in product(LOOPS, PHASES)
            ),
            "any",
        ),
        Assertion(
            "PyTorch JIT, by contrast, is faster on the GPU than on the CPU",
            tuple(
                _longer(Time(JIT, table, phase, "cpu"), Time(JIT, table, phase, "cuda"))
                for table, phase in product(LOOPS, PHASES)
            ),
        ),
        Assertion(
            "On the GPU PyTorch JIT is faster than TensorFlow Eager",
            tuple(
                _longer(Time(EAGER, table, phase, "cuda"), Time(JIT, table, phase, "cuda"))
                for table, phase in product(LOOPS, PHASES)
            ),
        ),
    )


def _training() -> tuple[Assertion, ...]:
    fastest = tuple(
        Assertion(
            f"In training TensorFlow Graph is the fastest on the {where}",
            tuple(
                _longer(Time(other, table, "train", device), Time(GRAPH, table, "train", device))
                for table in _settings(device)
                for other in (EAGER, *_rivals(table))
            ),
        )
        for device, where in DEVICES
    )
    smaller = Assertion(
        "The difference between PyTorch and TensorFlow Eager in training is larger on the CPU than on the GPU",
        tuple(
            Quotient(
                f"({EAGER} over {other}) on cpu over the same on cuda: {table}, train",
                (Time(EAGER, table, "train", "cpu"), Time(other, table, "train", "cuda")),
                (Time(other, table, "train", "cpu"), Time(EAGER, table, "train", "cuda")),
            )
            for table, other in product(LOOPS, (TORCH, JIT))
        ),
    )
    return (*fastest, smaller)


def _forward_and_training() -> tuple[Assertion, ...]:
    assertions: list[Assertion] = []
    for device, where in DEVICES:
        pairs = [(table, other) for table in _settings(device) for other in _rivals(table)]
        forward = [
            _longer(Time(GRAPH, table, "forward", device), Time(other, table, "forward", device))
            for table, other in pairs
        ]
        train = [
            _longer(Time(other, table, "train", device), Time(GRAPH, table, "train", device)) for table, other in pairs
        ]
        overhead = [
            Quotient(
                f"train over forward, {other} over {GRAPH}: {table}, {device}",
                (Time(other, table, "train", device), Time(GRAPH, table, "forward", device)),
                (Time(other, table, "forward", device), Time(GRAPH, table, "train", device)),
            )
            for table, other in pairs
        ]
        assertions += [
            Assertion(f"Forward, PyTorch and its JIT are faster than TensorFlow Graph on the {where}", tuple(forward)),
            Assertion(f"In training they are slower than TensorFlow Graph on the {where}", tuple(train)),
            Assertion(
                f"Training costs them more forward passes than it does TensorFlow Graph on the {where}", tuple(overhead)
            ),
        ]
    return tuple(assertions)


def _fine_grained() -> tuple[Assertion, ...]:
    everyone = (EAGER, GRAPH, TORCH, JIT)
    coarser = [(label, CELL) for label in everyone] + [(label, CUDNN) for label in (EAGER, GRAPH, TORCH)]
    return (
        Assertion(
            "On the GPU the coarser operators are faster than the fine-grained ones",
            tuple(
                _longer(Time(label, FINE, phase, "cuda"), Time(label, table, phase, "cuda"))
                for (label, table), phase in product(coarser, PHASES)
            ),
        ),
        Assertion(
            "On the CPU less is gained by them than on the GPU",
            tuple(
                Quotient(
                    f"(fine-grained over cell) on cuda over the same on cpu: {label}, {phase}",
                    (Time(label, FINE, phase, "cuda"), Time(label, CELL, phase, "cpu")),
                    (Time(label, CELL, phase, "cuda"), Time(label, FINE, phase, "cpu")),
                )
                for label, phase in product(everyone, PHASES)
            ),
        ),
    )


DEVICES: tuple[tuple[Device, str], ...] = (("cpu", "CPU"), ("cuda", "GPU"))
CONCLUSIONS = (
    Conclusion(
        1,
        "TensorFlow Eager has some strange overheads on GPU execution, which could be even slower than CPU "
        "execution. By contrast, PyTorch JIT worth considering more.",
        _tensorflow_eager(),
    ),
    Conclusion(
        2,
        "If considering the entire training task, TensorFlow Graph execution is the most efficient one. The "
        "performance gap between PyTorch/PyTorch and TensorFlow eager is more significant on CPU execution, while "
        "the difference becomes smaller on GPU execution.",
        _training(),
    ),
    Conclusion(
        3,
        "Surprisingly, PyTorch/PyTorch JIT's forward computation is more efficient than TensorFlow graph mode, but "
        "when considering the whole training iteration, it becomes slower than TensorFlow graph mode. It seems that "
        "the AD implementation plus parameter updating has some more overheads.",
        _forward_and_training(),
    ),
    Conclusion(
        4,
        "Optimizing control-flow and fine-grained operators will significantly improve the performance on GPU while "
        "the performance loss is not that significant on CPU execution.",
        _fine_grained(),
    ),
)
