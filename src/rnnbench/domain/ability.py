"""Abilities: what a user may need of a recurrent layer beyond the plain one, and what came of trying it."""

from typing import Literal

import msgspec

from rnnbench.domain.system import Device

#: Each with its meaning, and its heading in a table.
MEANINGS: dict[str, tuple[str, str]] = {
    "own-cell": ("own cell", "a cell of one's own: an LSTM whose gates see the cell state"),
    "normalisation": ("norm", "layer normalisation inside the step"),
    "recurrent-dropout": ("dropout", "a dropout mask on the state, one for each sequence, the same at all steps"),
    "all-states": ("states", "the cell states of all steps, and gradients through them"),
    "variable-lengths": ("lengths", "sequences of their own lengths in one batch"),
    "reset": ("reset", "the state set to zero in the middle of a sequence, at another step in each"),
    "double-backward": ("2nd grad", "the gradient of a gradient's size, with respect to the weights"),
    "feedback": ("feedback", "the output of a step as a part of the next step's input"),
    "attention": ("attention", "attention over a memory inside the step"),
    "other-steps": ("steps", "another number of steps without building anything again"),
}
ABILITIES = tuple(MEANINGS)

#: `yes`: its numbers are the reference's. `no`: it cannot, and the reason says why. `wrong`: it gives other numbers.
#: `failed`: it was killed, or took too long. `not tried`: not here, or not yet.
Verdict = Literal["yes", "no", "wrong", "failed", "not tried"]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One system, one ability."""

    system: str
    device: Device
    environment: str
    version: str  # of the framework, without the name of a build
    ability: str
    verdict: Verdict
    reason: str = ""  # why not; of a `yes`, what must be known of it


def plain_version(version: str) -> str:
    """`2.13.0` for `2.13.0+cpu`: builds of one version can do the same."""
    return version.partition("+")[0]


#: An LSTM of the published tables beside which a cell is a workload of its own, and the ability that the cell shows.
CELL_ABILITIES = {"peephole": "own-cell", "slstm": "own-cell", "layernorm-lstm": "normalisation"}
