"""The lines of a kernel, as they are written: before the loop, and in a step.

A step has levels. Between two of them the programs that share sequences wait for each other, where one needs what the
others made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from . import words

#: The last program that leaves sets the counters back, for the next kernel, and says which tag was the last.
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
def leave(counter, last_tag, PROGRAMS: tl.constexpr):
    tl.debug_barrier()
    if tl.atomic_add(counter + 1, 1, sem="acq_rel", scope="gpu") == PROGRAMS - 1:
        tl.store(counter, 0)
        tl.store(counter + 1, 0)
        tl.store(counter + 2, last_tag)

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
        self._waits: dict[int, list[tuple[str, int]]] = {}  # for words, before all else of a level but its loads
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

    def wait_for(self, level: int, stem: str, addresses: Sequence[str]) -> list[str]:
        """Names for what other programs tell this one in words, which it waits for when the level begins."""
        self._extend(level)
        names = [self.new_name(stem) for _ in addresses]
        line = f"{', '.join(names)} = told{len(names)}({', '.join(addresses)}, tag, steps)"
        self._waits.setdefault(level, []).append((line, len(names)))
        return names

    @property
    def barriers(self) -> int:
        """In each step."""
        return len(self._meets) + self.meets_at_the_end

    @property
    def exchanges(self) -> int:
        """In each step, how often a program waits for words of others without a barrier."""
        return len(self._waits)

    def _step(self, from_the_end: bool) -> list[str]:
        """Level after level, then what leaves the step. Before a program waits it stores what it keeps since it last
        did, and before the last time in the step it loads what the next one is given."""
        sign = "-" if from_the_end else "+"
        lines = [
            f"t = first {sign} done",
            "parity = done % 2",
            "tag = last_tag + 1 + done",
            f"following = tl.where(done + 1 < steps, t {sign} 1, t)",
        ]
        waits = [[line for line, _ in self._waits.get(level, [])] for level in range(len(self._levels))]
        parts = zip(self._loads, waits, self._levels, strict=True)
        sections = [[*loads, *told, *rest] for loads, told, rest in parts] + [self.last]
        meetings = self._meets | ({len(self._levels)} if self.meets_at_the_end else set())
        pauses = meetings | {level - 1 for level in self._waits}
        following = [f"{name}_following = {loaded('following')}" for name, loaded in self._given.items()]
        meanwhile: list[str] = []
        for number, (section, kept) in enumerate(zip(sections, [*self._kept, self.kept_last], strict=True)):
            lines += section
            meanwhile += kept
            if number in pauses:
                meanwhile = following + meanwhile if number == max(pauses) else meanwhile
                if number in meetings:
                    meanwhile = ["met += PROGRAMS", "arrive(counter)", *meanwhile, "wait(counter, met)"]
                lines += meanwhile
                meanwhile = []
        lines += meanwhile if pauses else following + meanwhile
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
            f"last_tag = {'tl.load(counter + 2)' if self._waits else '0'}",
            *self.before,
            *[f"{name} = {loaded('first')}" for name, loaded in self._given.items()],
            "for done in range(steps):",
            *_indented(self._step(from_the_end)),
            *self.after,
            f"leave(counter, last_tag{' + steps' if self._waits else ''}, PROGRAMS)",
        ]
        return "\n".join(
            [
                "import triton",
                "import triton.language as tl",
                functions,
                _BARRIER,
                words.functions(count for waits in self._waits.values() for _, count in waits),
                f"@triton.jit(do_not_specialize={list(integers)!r})",
                f"def kernel({', '.join([*parameters, 'counters', *integers, *_CHOSEN])}):",
                *_indented(body),
                "",
            ]
        )


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
