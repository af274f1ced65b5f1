"""The lines of a kernel, as they are written: before the loop, and in a step.

A step has levels. Between two of them the programs that share sequences wait for each other, where one needs what the
others made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

#: The last program that leaves sets the counters back, for the next kernel.
#: Each thread looks for itself whether all programs are there. With an atomic of Triton's, one thread would look, and
#: the others wait for what it tells them.
_BARRIER = """
@triton.jit
def arrive(counter):
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release", scope="gpu")


@triton.jit
def wait(counter, target):
    tl.inline_asm_elementwise(
        '''{
            .reg .pred waits;
            .reg .s32 there;
            again:
            ld.acquire.gpu.global.s32 there, [$1];
            setp.lt.s32 waits, there, $2;
            @waits bra again;
            mov.s32 $0, there;
        }''',
        "=r,l,r", [counter.to(tl.int64), target], dtype=tl.int32, is_pure=False, pack=1,
    )


@triton.jit
def leave(counter, PROGRAMS: tl.constexpr):
    tl.debug_barrier()
    if tl.atomic_add(counter + 1, 1, sem="acq_rel", scope="gpu") == PROGRAMS - 1:
        tl.store(counter, 0)
        tl.store(counter + 1, 0)

"""
_CHOSEN = [f"{name}: tl.constexpr" for name in ("BLOCK_ROWS", "BLOCK_UNITS", "PROGRAMS", "PRECISION")]


class Inexpressible(Exception):
    """This loop cannot be a kernel, for this reason."""


class Value(NamedTuple):
    """What a node is for one program: a name for each `units` columns of it. A scalar, a vector and what has one column
    are a single name, which Triton extends as PyTorch does."""

    pieces: list[str]
    level: int
    is_wide: bool  # whether it has a piece for each `units` columns


class Text:
    def __init__(self, units: int) -> None:
        self.units = units
        self.before: list[str] = []
        self.last: list[str] = []  # of a step
        self.after: list[str] = []  # all steps
        self.meets_at_the_end = False
        self._levels: list[list[str]] = [[]]
        self._loads: list[list[str]] = [[]]  # of a level, before all else: they take long, and can all be under way
        self._kept: list[list[str]] = [[]]  # stores of a level that no other program waits for
        self.kept_last: list[str] = []  # the same, of what leaves a step
        self._given: dict[str, Callable[[str], str]] = {}  # what a step is given, as it is loaded for a moment
        self._meets: set[int] = set()
        self._names = 0

    def write(self, level: int, line: str) -> None:
        self._extend(level)
        self._levels[level].append(line)

    def _extend(self, level: int) -> None:
        while len(self._levels) <= level:
            self._levels.append([])
            self._loads.append([])
            self._kept.append([])

    def assign(self, level: int, stem: str, expression: str) -> str:
        """A line that gives a new name to an expression."""
        self.write(level, f"{(name := self.new_name(stem))} = {expression}")
        return name

    def load(self, level: int, stem: str, expression: str) -> str:
        """The same for a value from memory, which was there before the level began."""
        self._extend(level)
        self._loads[level].append(f"{(name := self.new_name(stem))} = {expression}")
        return name

    def given(self, loaded: Callable[[str], str]) -> str:
        """A name for what each step is given, loaded while programs wait for each other in the step before."""
        self._given[name := self.new_name("given")] = loaded
        return name

    def keep(self, level: int, line: str) -> None:
        """A store for after the kernel. It is under way while programs wait for each other, and none waits for it."""
        self._extend(level)
        self._kept[level].append(line)

    def new_name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}_{self._names}"

    def meet_after(self, level: int) -> None:
        """What was stored at this level is known to all programs at the next."""
        self._meets.add(level)

    def meets(self, level: int) -> bool:
        return level in self._meets

    @property
    def barriers(self) -> int:
        """In each step."""
        return len(self._meets) + self.meets_at_the_end

    def _step(self, from_the_end: bool) -> list[str]:
        """Level after level, then what leaves the step. Between arriving and waiting a program stores what it keeps
        since the last barrier, and at the last one of the step it loads what the next one is given."""
        sign = "-" if from_the_end else "+"
        lines = [
            f"t = first {sign} done",
            "parity = done % 2",
            f"following = tl.where(done + 1 < steps, t {sign} 1, t)",
        ]
        sections = [[*loads, *rest] for loads, rest in zip(self._loads, self._levels, strict=True)] + [self.last]
        meetings = self._meets | ({len(self._levels)} if self.meets_at_the_end else set())
        following = [f"{name}_following = {loaded('following')}" for name, loaded in self._given.items()]
        meanwhile: list[str] = []
        for number, (section, kept) in enumerate(zip(sections, [*self._kept, self.kept_last], strict=True)):
            if number > max(meetings, default=number):
                lines += _as_soon_as_known(section, kept)
                continue
            lines += section
            meanwhile += kept
            if number in meetings:
                meanwhile = following + meanwhile if number == max(meetings) else meanwhile
                lines += ["met += PROGRAMS", "arrive(counter)", *meanwhile, "wait(counter, met)"]
                meanwhile = []
        lines += meanwhile if meetings else following + meanwhile
        return [*lines, *(f"{name} = {name}_following" for name in self._given)]

    def module(self, parameters: Sequence[str], integers: Sequence[str], functions: str, from_the_end: bool) -> str:
        """A module of Python with the function `kernel`, and the `functions` that it calls."""
        body = [
            "row_block = tl.program_id(0)",
            "unit_block = tl.program_id(1)",
            "row = row_block * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]",
            "own_column = tl.arange(0, BLOCK_UNITS)[None, :]",
            "column = unit_block * BLOCK_UNITS + own_column",
            "in_rows = row < rows",
            f"in_units = column < {self.units}",
            "here = in_rows & in_units",
            "in_rows_of_one = row < tl.where(unit_block == 0, rows, 0)",
            "counter = counters + row_block * 32",  # each in a line of the cache of its own
            "met = 0",
            *self.before,
            *[f"{name} = {loaded('first')}" for name, loaded in self._given.items()],
            "for done in range(steps):",
            *_indented(self._step(from_the_end)),
            *self.after,
            "leave(counter, PROGRAMS)",
        ]
        return "\n".join(
            [
                "import triton",
                "import triton.language as tl",
                functions,
                _BARRIER,
                f"@triton.jit(do_not_specialize={list(integers)!r})",
                f"def kernel({', '.join([*parameters, 'counters', *integers, *_CHOSEN])}):",
                *_indented(body),
                "",
            ]
        )


def _as_soon_as_known(lines: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Stores behind the last waiting of a step, each right behind the line that makes its value: at the first meeting
    of the next step all threads wait until what was stored before has arrived."""
    found = list(lines)
    for store in kept:
        names = set(re.findall(r"\w+", store))
        places = [k for k, line in enumerate(found) if names.intersection(line.split(" = ")[0].split(", "))]
        found.insert(max(places, default=-1) + 1, store)
    return found


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
