"""The four quick conclusions of Carrot (2019), each split into quotients of times that it says are greater than 1.

"A is more efficient than B" becomes the time of B over that of A; "a larger difference on the CPU" becomes the
quotient of two quotients. Where the text says "could be", one case is enough; otherwise all must hold. Where it
names no device or table, all of its devices and tables are tested.
"""

from itertools import product
from typing import Literal, NamedTuple

from rnnbench.domain.system import PHASES, Device
from rnnbench.domain.workload import Phase

EAGER, GRAPH, TORCH, JIT = "TF Eager", "TF Graph", "PyTorch", "PyTorch JIT on outer scope"
FINE, CELL, CUDNN = "fine-grained operators", "static LSTM cell", "cuDNN LSTM"
LOOPS = (FINE, CELL)
DEVICES: tuple[tuple[Device, str], ...] = (("cpu", "CPU"), ("cuda", "GPU"))


class Time(NamedTuple):
    """One time in the tables of Carrot (2019)."""

    label: str
    table: str
    phase: Phase
    device: Device

    @property
    def seed_label(self) -> str:
        """What a manifest gives as `seed`. One of the tables writes hyphens."""
        label = self.label.replace("TF ", "TF-") if self.table == CUDNN else self.label
        return f"{label} ({self.table})"


class Quotient(NamedTuple):
    """The product of `over` divided by that of `under`. The conclusion says that it is greater than 1."""

    statement: str
    over: tuple[Time, ...]
    under: tuple[Time, ...]


class Assertion(NamedTuple):
    """One testable part of a conclusion."""

    statement: str
    quotients: tuple[Quotient, ...]
    rule: Literal["all", "any"] = "all"


class Conclusion(NamedTuple):
    number: int
    text: str
    assertions: tuple[Assertion, ...]


def _longer(slow: Time, fast: Time) -> Quotient:
    """The first takes longer than the second; the statement names only what differs."""
    differing = [index for index in range(len(slow)) if slow[index] != fast[index]]
    first, second = (" ".join(str(time[index]) for index in differing) for time in (slow, fast))
    same = [str(value) for index, value in enumerate(slow) if index not in differing]
    return Quotient(f"{first} over {second}: {', '.join(same)}", (slow,), (fast,))


def _tables(device: Device) -> tuple[str, ...]:
    """The tables that were published for a device."""
    return LOOPS if device == "cpu" else (*LOOPS, CUDNN)


def _pytorch_rows(table: str) -> tuple[str, ...]:
    """PyTorch's rows in a table; there is none of its JIT with cuDNN."""
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
                for table in _tables(device)
                for other in (EAGER, *_pytorch_rows(table))
            ),
        )
        for device, where in DEVICES
    )
    larger_on_cpu = Assertion(
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
    return (*fastest, larger_on_cpu)


def _forward_and_training() -> tuple[Assertion, ...]:
    assertions: list[Assertion] = []
    for device, where in DEVICES:
        pairs = [(table, other) for table in _tables(device) for other in _pytorch_rows(table)]
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
            Assertion(
                f"In the forward pass PyTorch and its JIT are faster than TensorFlow Graph on the {where}",
                tuple(forward),
            ),
            Assertion(f"In training they are slower than TensorFlow Graph on the {where}", tuple(train)),
            Assertion(
                f"The ratio of training to forward time is larger for them than for TensorFlow Graph on the {where}",
                tuple(overhead),
            ),
        ]
    return tuple(assertions)


def _fine_grained() -> tuple[Assertion, ...]:
    labels = (EAGER, GRAPH, TORCH, JIT)
    coarser = [(label, CELL) for label in labels] + [(label, CUDNN) for label in (EAGER, GRAPH, TORCH)]
    return (
        Assertion(
            "On the GPU the coarser operators are faster than the fine-grained ones",
            tuple(
                _longer(Time(label, FINE, phase, "cuda"), Time(label, table, phase, "cuda"))
                for (label, table), phase in product(coarser, PHASES)
            ),
        ),
        Assertion(
            "They gain less on the CPU than on the GPU",
            tuple(
                Quotient(
                    f"(fine-grained over cell) on cuda over the same on cpu: {label}, {phase}",
                    (Time(label, FINE, phase, "cuda"), Time(label, CELL, phase, "cpu")),
                    (Time(label, CELL, phase, "cuda"), Time(label, FINE, phase, "cpu")),
                )
                for label, phase in product(labels, PHASES)
            ),
        ),
    )


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
