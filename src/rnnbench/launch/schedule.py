"""The order of launches: rounds over all cases, shuffled, so that drift touches every row alike.

Knows nothing of processes: it is given a function that launches, so that it is tested with a fake one.
"""

import random
from collections.abc import Callable, Iterable, Sequence

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Launch

Execute = Callable[[Case, int, int], Launch]  # case, round, attempt


def shuffled(cases: Sequence[Case], seed: int, round_number: int) -> list[Case]:
    """One round's order: another one each round, the same one for the same seed."""
    order = list(cases)
    random.Random(f"{seed}/{round_number}").shuffle(order)
    return order


def run_schedule(cases: Sequence[Case], method: Method, earlier: Iterable[Launch], execute: Execute) -> list[Launch]:
    """Launch what is still to be done.

    A case that failed is not launched again. A noisy launch is repeated at the end of its round, when
    whatever kept the machine busy may be over. `earlier` are launches of the same run before a resume.
    """
    launches: list[Launch] = []
    failed = {launch.case.key for launch in earlier if launch.outcome != "ok"}
    attempts: dict[tuple[str, int], list[Launch]] = {}
    for launch in earlier:
        attempts.setdefault((launch.case.key, launch.round), []).append(launch)

    def unfinished(case: Case, round_number: int) -> bool:
        made = attempts.get((case.key, round_number), [])
        settled = any(not launch.noisy for launch in made) or len(made) > method.repeats
        return case.key not in failed and not settled

    for round_number in range(method.launches):
        queue = shuffled(cases, method.seed, round_number)
        while queue := [case for case in queue if unfinished(case, round_number)]:
            for case in queue:
                made = attempts.setdefault((case.key, round_number), [])
                launch = execute(case, round_number, len(made))
                made.append(launch)
                launches.append(launch)
                if launch.outcome != "ok":
                    failed.add(case.key)
    return launches


def count_launches(cases: Sequence[Case], method: Method, earlier: Iterable[Launch]) -> int:
    """How many launches are left if none is noisy and none fails: for progress."""
    earlier = list(earlier)
    failed = {launch.case.key for launch in earlier if launch.outcome != "ok"}
    done = {(launch.case.key, launch.round) for launch in earlier}
    return sum(
        (case.key, round_number) not in done
        for case in cases
        if case.key not in failed
        for round_number in range(method.launches)
    )
