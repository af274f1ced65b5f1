"""The order of launches: rounds over all cases, shuffled, so that drift touches every row alike.

Knows nothing of processes: it is given a function that launches, so that it is tested with a fake one.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Launch
from rnnbench.launch.worker import end_all_workers

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, on_result: Callable[[Result], None]
) -> None:
    """`work` on every item, so many at a time; `on_result` as they end, always in the caller's thread.

    An interruption ends all workers; what comes of those is handed to nobody.
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
        end_all_workers()
        raise
    finally:
        pool.shutdown(wait=True)


Execute = Callable[[Case, int, int], Launch]  # case, round, attempt


def shuffled(cases: Sequence[Case], seed: int, round_number: int) -> list[Case]:
    """One round's order: another one each round, the same one for the same seed."""
    order = list(cases)
    random.Random(f"{seed}/{round_number}").shuffle(order)
    return order


class _Ledger:
    """What has been launched, and from that what is still to be done."""

    def __init__(self, method: Method, earlier: Iterable[Launch]) -> None:
        self._repeats = method.repeats
        self._failed: set[str] = set()
        self._made: dict[tuple[str, int], list[Launch]] = {}
        for launch in earlier:
            self.enter(launch)

    def enter(self, launch: Launch) -> None:
        self._made.setdefault((launch.case.key, launch.round), []).append(launch)
        if launch.outcome != "ok":
            self._failed.add(launch.case.key)

    def attempts(self, case: Case, round_number: int) -> int:
        return len(self._made.get((case.key, round_number), ()))

    def unfinished(self, case: Case, round_number: int) -> bool:
        made = self._made.get((case.key, round_number), [])
        settled = any(not launch.noisy for launch in made) or len(made) > self._repeats
        return case.key not in self._failed and not settled


def run_schedule(
    cases: Sequence[Case],
    method: Method,
    earlier: Iterable[Launch],
    execute: Execute,
    keep: Callable[[Launch], None] = lambda launch: None,
) -> list[Launch]:
    """Launch what is still to be done, `method.ahead` at a time, and keep each launch as it ends.

    A case that failed is not launched again. A noisy launch is repeated at the end of its round, when
    whatever kept the machine busy may be over. `earlier` are launches of the same run before a resume.
    """
    launches: list[Launch] = []
    ledger = _Ledger(method, earlier)

    def take(launch: Launch) -> None:
        keep(launch)
        ledger.enter(launch)
        launches.append(launch)

    for round_number in range(method.launches):
        queue = shuffled(cases, method.seed, round_number)
        while queue := [case for case in queue if ledger.unfinished(case, round_number)]:
            attempts = [(case, round_number, ledger.attempts(case, round_number)) for case in queue]
            in_parallel(lambda attempt: execute(*attempt), attempts, method.ahead, take)
    return launches


def launches_left(cases: Sequence[Case], method: Method, earlier: Iterable[Launch]) -> list[Case]:
    """The case of every launch that is left if none of them is noisy and none fails."""
    ledger = _Ledger(method, earlier)
    return [case for case in cases for number in range(method.launches) if ledger.unfinished(case, number)]
