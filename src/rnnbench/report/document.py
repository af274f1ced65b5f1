"""What a report is made of: the runs, everything found in them, and how to speak of them. Writers only lay it out."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from rnnbench.analysis.analyse import analyse
from rnnbench.analysis.names import Group
from rnnbench.analysis.rows import Row
from rnnbench.analysis.standing import find_standing
from rnnbench.domain.result import Launch
from rnnbench.report.panel import make_panels
from rnnbench.store.folder import Contents, read_folder
from rnnbench.store.run import Run


class Document:
    """One or several runs, read and analysed once."""

    def __init__(self, names: Sequence[str], runs: Sequence[Contents]) -> None:
        self.names = names  # of the runs, each another
        self.runs = runs
        self.analysis = analyse(runs)
        self.panels = make_panels(self.analysis)

    def launches(self, group: Group, row: Row) -> tuple[Launch, ...]:
        """Those that stand for a row of a group."""
        return self._launches[group, row.system, row.environment]

    @cached_property
    def _launches(self) -> dict[tuple[Group, str, str], tuple[Launch, ...]]:
        return {
            (Group(number, *one.case.group), one.case.system, one.case.environment): one.launches
            for number, run in enumerate(self.runs)
            for one in find_standing(run)
        }

    @property
    def several(self) -> bool:
        return len(self.runs) > 1


def read_document(folders: Sequence[Path]) -> Document:
    return Document(run_names(folders), [read_folder(folder) for folder in folders])


def run_names(folders: Sequence[Path]) -> list[str]:
    """The folders' own names; with a number where two are called the same."""
    names: list[str] = []
    for folder in folders:
        name = plain = folder.resolve().name
        while name in names:
            name = f"{plain} ({sum(one.startswith(plain) for one in names) + 1})"
        names.append(name)
    return names


def machine_name(run: Run, device: str) -> str:
    """What the rows of a device ran on, as a subtitle says it."""
    machine = run.machine
    if device == "cuda" and machine.gpus:
        return machine.gpus[0].name
    return f"{machine.cpu}, {machine.cores} core{'' if machine.cores == 1 else 's'}"
