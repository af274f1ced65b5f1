"""The order of launches: rounds over all cases, shuffled, so that drift of the machine affects all cases alike.

The schedule starts no process itself: it is given a function that launches, and is tested with a fake one.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

from rnnbench.domain.case import Case, Method
from rnnbench.domain.noise import in_hindsight
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
    be quiet again, and one that is noisy in hindsight after all rounds. `earlier` are the launches made before the run
    was resumed.
    """
    launches: list[Launch] = []
    earlier, left = list(earlier), list(cases)
    while left:
        made = _make_rounds(left, method, [*earlier, *launches], execute, keep)
        launches += made
        launched = {launch.case.key for launch in made}
        left = [case for case in left if case.key in launched]
    return launches


def _make_rounds(
    cases: Sequence[Case], method: Method, earlier: Iterable[Launch], execute: Execute, keep: Callable[[Launch], None]
) -> list[Launch]:
    """The launches that are left by what is known of the machine now."""
    launches: list[Launch] = []
    queue = _Queue(cases, method, _Ledger(method, earlier))

    def on_launch(launch: Launch) -> None:
        keep(launch)
        queue.add(launch)
        launches.append(launch)

    _in_parallel(lambda attempt: execute(*attempt), queue.take, method.ahead, on_launch)
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
        for launch in in_hindsight(list(earlier), method.noise_threshold, strictly=True):
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


Attempt = tuple[Case, int, int]  # case, round, attempt


class _Queue:
    """The launches to make. Which is next depends on how earlier ones ended, so there may be none now and one later.

    While the last workers of a round compile, the first ones of the next round start, but none of a later round: drift
    of the machine should still affect all cases alike. No case is launched twice at a time, in case it fails.
    """

    def __init__(self, cases: Sequence[Case], method: Method, ledger: _Ledger) -> None:
        self._ledger = ledger
        self._rounds = {number: shuffled(cases, method.seed, number) for number in range(method.launches)}
        self._under_way: set[str] = set()

    def take(self) -> Attempt | None:
        rounds_under_way = 0
        for number, cases in self._rounds.items():
            cases[:] = [case for case in cases if self._ledger.unfinished(case, number)]
            rounds_under_way += bool(cases)
            if rounds_under_way > 2:
                break
            free = [case for case in cases if case.key not in self._under_way]
            if free:
                # The first of those with the fewest attempts: a noisy launch is repeated after all others of its round.
                case = min(free, key=lambda case: self._ledger.attempts(case, number))
                self._under_way.add(case.key)
                return case, number, self._ledger.attempts(case, number)
        return None

    def add(self, launch: Launch) -> None:
        self._under_way.discard(launch.case.key)
        self._ledger.add(launch)


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, on_result: Callable[[Result], None]
) -> None:
    """Call `work` on every item, `jobs` at a time, and `on_result` as each ends, always in the caller's thread.

    An interruption ends all workers; their results are dropped.
    """
    _in_parallel(work, partial(next, iter(items), None), jobs, on_result)


def _in_parallel(
    work: Callable[[Item], Result], take: Callable[[], Item | None], jobs: int, on_result: Callable[[Result], None]
) -> None:
    """`take` gives the next item, or None while there is none: it is asked again after each result."""
    if jobs <= 1:
        while (item := take()) is not None:
            on_result(work(item))
        return
    pool = ThreadPoolExecutor(max_workers=jobs)
    under_way: set[Future[Result]] = set()
    try:
        while True:
            while len(under_way) < jobs and (item := take()) is not None:
                under_way.add(pool.submit(work, item))
            if not under_way:
                break
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in ended:
                on_result(future.result())
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        with CREW.closing():  # a thread that waits for its turn must not start a worker now
            pool.shutdown(wait=True)
        raise
    pool.shutdown(wait=True)
