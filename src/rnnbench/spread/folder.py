"""The folder of a spread run: what was asked, its parts, and the visits of nodes to them.

Part 0 plans and verifies; each other part times one comparison group. A visit is one node's work on one part,
`parts/NNN/on/NODE`: an ordinary run folder that only this node writes to. A node that is thought lost may go on, while
another one repeats its part: each has a folder of its own. The first visit that is complete counts, for good.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from rnnbench.domain.bounds import CountedOnce, require_name
from rnnbench.domain.case import Case
from rnnbench.domain.run import Run
from rnnbench.domain.system import Device, Precision
from rnnbench.domain.workload import Phase, flops
from rnnbench.errors import UserError
from rnnbench.files import DAMAGED_JSON, read_regular, write_atomically
from rnnbench.plan import Selection
from rnnbench.store import SPREAD_FILE, require_empty

PLAN = 0  # the part that plans, makes environments and verifies
_COMPLETE = "complete"  # in a part's folder: the node whose visit counts

Group = tuple[str, Phase, Device, Precision]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for. It is made into a plan and a method on a node: the login node is another machine."""

    selection: Selection
    method: dict[str, Any]  # what `make_method` takes
    command: tuple[str, ...] = ()
    data: str = ""
    profile: bool = False


class Resuming(msgspec.Struct, frozen=True, kw_only=True):
    """What a resumed run may change, as in `session.resume`."""

    retry_failed: bool = False
    limit_seconds: float | None = None
    ahead: int | None = None
    repeats: int | None = None


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """`spread.json`: everything that a job needs to know, and the name by which its jobs are found in the queue."""

    engine: Literal["slurm"] = "slurm"
    name: str  # of the jobs: no other run has it
    request: Request
    groups: CountedOnce  # at most so many: those in which no case can be run are known to part 0 only
    options: tuple[str, ...] = ()  # of sbatch
    resuming: Resuming = Resuming()

    @property
    def parts(self) -> range:
        return range(self.groups + 1)


def is_spread(folder: Path) -> bool:
    return os.path.lexists(folder / SPREAD_FILE)


def create_spread(folder: Path, spread: Spread) -> None:
    require_empty(folder)
    try:
        (folder / "jobs").mkdir(parents=True)
        write_spread(folder, spread)
    except OSError as error:
        raise UserError(f"cannot begin a run in {folder}: {error.strerror}", "give another --out") from error


def write_spread(folder: Path, spread: Spread) -> None:
    write_atomically(folder / SPREAD_FILE, msgspec.json.format(msgspec.json.encode(spread), indent=1))


def read_spread(folder: Path) -> Spread:
    path = folder / SPREAD_FILE
    try:
        spread = msgspec.json.decode(read_regular(path), type=Spread)
        require_name(spread.name, "the name of the jobs")
    except OSError as error:
        raise UserError(f"{folder} is not a spread run: {error.strerror}", f"it would contain {SPREAD_FILE}") from error
    except DAMAGED_JSON as error:
        raise UserError(f"{path} is damaged: {error}", "restore it from a copy") from error
    return spread


def part_folder(folder: Path, part: int) -> Path:
    return folder / "parts" / f"{part:03d}"


def visit_folder(folder: Path, part: int, node: str) -> Path:
    return part_folder(folder, part) / "on" / node


def complete_on(folder: Path, part: int) -> str | None:
    """The node whose visit counts; None: no visit is complete."""
    path = part_folder(folder, part) / _COMPLETE
    try:
        node = read_regular(path).decode().strip()
        require_name(node, "a node")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is damaged: {error}", "delete it, and resume the run") from error
    return node


def complete(folder: Path, part: int, node: str) -> bool:
    """This node's visit is complete. Returns whether it is the first, and so the one that counts.

    A hard link is made or refused at once, also by a network's file system. So all agree who was first, without clocks.
    """
    mine = part_folder(folder, part) / f".{_COMPLETE}-{node}"
    write_atomically(mine, f"{node}\n".encode())
    try:
        os.link(mine, part_folder(folder, part) / _COMPLETE)
    except FileExistsError:
        return complete_on(folder, part) == node  # it may have been made by a request that was sent twice
    finally:
        mine.unlink(missing_ok=True)
    return True


def reopen(folder: Path, part: int) -> None:
    """No visit of the part counts any more: it is to be worked on again."""
    (part_folder(folder, part) / _COMPLETE).unlink(missing_ok=True)


def groups_of(run: Run) -> list[Group]:
    """The comparison groups of a plan: the first is part 1.

    Those with the most work come first, since Slurm starts parts in this order: a long one that starts last would keep
    one node busy while all others are idle.
    """
    sizes = Counter(case.group for case in run.cases)
    return sorted(sizes, key=lambda group: -sizes[group] * flops(run.workloads[group[0]], group[1]))


def cases_of(run: Run, group: Group) -> tuple[Case, ...]:
    return tuple(case for case in run.cases if case.group == group)


def part_name(groups: Sequence[Group], part: int) -> str:
    """For people. Before there is a plan, parts have only numbers."""
    if part == PLAN:
        return "plan and verification"
    return " · ".join(groups[part - 1]) if part <= len(groups) else f"part {part}"
