"""The order of launches: rounds over all cases, shuffled, so that drift of the machine affects all cases alike.

The schedule starts no process itself: it is given a function that launches, and is tested with a fake one.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Launch
from rnnbench.launch.process import CREW

Execute = Callable[[Case, int, int], Launch]  # case, round, attempt


def run_schedule(
    cases: Sequence[Case],
    method: Method,
    earlier: Iterable[Launch],
    execute: Execute,
    keep: Callable[[Launch], None] = lambda launch: None,
) -> list[Launch]:
    """Make all launches that are left, `method.ahead` at a time, and call `keep` as each one ends.

    A case that failed is not launched again. A noisy launch is repeated at the end of its round, when the machine may
    be quiet again. `earlier` are the launches made before the run was resumed.
    """
    launches: list[Launch] = []
    ledger = _Ledger(method, earlier)

    def on_launch(launch: Launch) -> None:
        keep(launch)
        ledger.add(launch)
        launches.append(launch)

    for round_number in range(method.launches):
        queue = shuffled(cases, method.seed, round_number)
        while queue := [case for case in queue if ledger.unfinished(case, round_number)]:
            attempts = [(case, round_number, ledger.attempts(case, round_number)) for case in queue]
            in_parallel(lambda attempt: execute(*attempt), attempts, method.ahead, on_launch)
    return launches


def launches_left(cases: Sequence[Case], method: Method, earlier: Iterable[Launch]) -> list[Case]:
    """The launches that are left, each given by its case, if none of them is noisy or fails."""
    ledger = _Ledger(method, earlier)
    return [case for case in cases for number in range(method.launches) if ledger.unfinished(case, number)]


def shuffled(cases: Sequence[Case], seed: int, round_number: int) -> list[Case]:
    """The order of one round: different in each round, the same for the same seed."""
    order = list(cases)
    random.Random(f"{seed}/{round_number}").shuffle(order)
    return order


class _Ledger:
    """The launches made so far, and whether a case still needs one in a round."""

    def __init__(self, method: Method, earlier: Iterable[Launch]) -> None:
        self._repeats = method.repeats
        self._failed_cases: set[str] = set()
        self._launches: dict[tuple[str, int], list[Launch]] = {}
        for launch in earlier:
            self.add(launch)

    def add(self, launch: Launch) -> None:
        self._launches.setdefault((launch.case.key, launch.round), []).append(launch)
        if launch.outcome != "ok":
            self._failed_cases.add(launch.case.key)

    def attempts(self, case: Case, round_number: int) -> int:
        return len(self._launches.get((case.key, round_number), ()))

    def unfinished(self, case: Case, round_number: int) -> bool:
        launches = self._launches.get((case.key, round_number), [])
        settled = any(not launch.noisy for launch in launches) or len(launches) > self._repeats
        return case.key not in self._failed_cases and not settled


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, on_result: Callable[[Result], None]
) -> None:
    """Call `work` on every item, `jobs` at a time, and `on_result` as each ends, always in the caller's thread.

    An interruption ends all workers; their results are dropped.
    """
    if jobs <= 1:
        for item in items:
            on_result(work(item))
        return
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            on_result(future.result())
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        with CREW.closing():  # a thread that waits for its turn must not start a worker now
            pool.shutdown(wait=True)
        raise
    pool.shutdown(wait=True)
