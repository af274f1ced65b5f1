"""The result of each case: one launch for every round, whether it failed, and its verification."""

from collections.abc import Iterable, Iterator

import msgspec

from rnnbench.domain.case import Case
from rnnbench.domain.noise import in_hindsight
from rnnbench.domain.result import Figure, Launch, Status, Verification
from rnnbench.store import Contents

_Attempts = dict[str, dict[int, list[Launch]]]  # case -> round -> attempts, oldest first


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """A case with one launch per round, in the order of the rounds, and its verification."""

    case: Case
    launches: tuple[Launch, ...]
    all_launches: tuple[Launch, ...]  # also those that do not count, because the machine was busy
    proof: Verification | None

    @property
    def failure(self) -> Launch | None:
        """The first launch that failed. One failure is the case's result: the rest would be a biased choice."""
        return next((launch for launch in self.launches if launch.outcome != "ok"), None)

    @property
    def measured(self) -> bool:
        return bool(self.launches) and self.failure is None

    @property
    def node(self) -> str:
        """Where it was timed. All rows of a group were timed on one node."""
        return self.launches[-1].node if self.launches else ""

    @property
    def checked(self) -> str:
        """What of the timed program was checked at full size; the first launch is checked, the others need not be."""
        return next((launch.checked for launch in self.all_launches if launch.checked), "")

    @property
    def worst_at_full_size(self) -> Figure | None:
        """The figure of the timed program that is furthest off, if one does not pass."""
        failing = [figure for launch in self.all_launches for figure in launch.checks if not figure.passes]
        return max(failing, key=lambda figure: figure.excess, default=None)

    @property
    def status_and_reason(self) -> tuple[Status, str]:
        """The status of the row, and the reason where it is not `verified`."""
        if not self.launches:
            return "unverified", "not measured yet"
        if self.failure is not None:
            return "timeout" if self.failure.outcome == "timeout" else "failed", self.failure.reason
        if self.proof is not None and self.proof.verdict == "wrong":
            return "wrong", self.proof.reason  # wrong at every size
        if self.worst_at_full_size is not None:
            return "wrong", f"at full size: {self.worst_at_full_size}"
        if self.proof is None:
            return "unverified", "not verified in this run"
        if self.proof.verdict == "verified":
            return "verified", ""
        return "unverified", f"its verification ended as {self.proof.verdict}: {self.proof.reason}"


def find_case_results(contents: Contents) -> Iterator[CaseResult]:
    """Every case of the run, in the plan's order."""
    strict, usual = _attempts_judged(contents)
    proofs = {_proof_key(record.case): record for record in contents.records if isinstance(record, Verification)}
    for case in contents.run.cases:
        rounds = usual.get(case.key, {})
        yield CaseResult(
            case=case,
            launches=_that_count(strict.get(case.key, {}), rounds, contents.run.method.launches),
            all_launches=tuple(launch for number in sorted(rounds) for launch in rounds[number]),
            proof=proofs.get(_proof_key(case, contents.run.proved_on[case.workload])),
        )


def find_measured_launches(contents: Contents) -> Iterator[tuple[Launch, ...]]:
    """The launches of every measured case in the run's records, also of those that a smaller choice has left out."""
    strict, usual = _attempts_judged(contents)
    for key, rounds in usual.items():
        chosen = _that_count(strict[key], rounds, contents.run.method.launches)
        if all(launch.outcome == "ok" for launch in chosen):
            yield chosen


def _attempts_judged(contents: Contents) -> tuple[_Attempts, _Attempts]:
    """Strictly, and as usual."""
    records = [record for record in contents.records if isinstance(record, Launch)]
    threshold = contents.run.method.noise_threshold
    return _attempts(in_hindsight(records, threshold, strictly=True)), _attempts(in_hindsight(records, threshold))


def _attempts(launches: Iterable[Launch]) -> _Attempts:
    attempts: _Attempts = {}
    for launch in launches:
        attempts.setdefault(launch.case.key, {}).setdefault(launch.round, []).append(launch)
    return attempts


def _proof_key(case: Case, workload: str = "") -> tuple[str, ...]:
    return (workload or case.workload, case.system, case.phase, case.device, case.precision, case.environment)


def _that_count(strict: dict[int, list[Launch]], usual: dict[int, list[Launch]], fewest: int) -> tuple[Launch, ...]:
    """One launch of each round, in the order of the rounds; without noisy ones, where enough others are left: by the
    strict standard, or else by the usual one, or else with all quiet ones of a round that has several: a second quiet
    launch says more than a noisy one."""
    for rounds in (strict, usual):
        chosen = [_chosen_attempt(rounds[number]) for number in sorted(rounds)]
        quiet = [launch for launch in chosen if not launch.noisy]
        if len(quiet) >= fewest and all(launch.outcome == "ok" for launch in chosen):
            return tuple(quiet)
    every = [launch for number in sorted(usual) for launch in usual[number] if _is_quiet(launch)]
    if len(every) >= fewest and all(launch.outcome == "ok" for launch in chosen):
        return tuple(every)
    return tuple(chosen)


def _chosen_attempt(attempts: list[Launch]) -> Launch:
    """The last attempt of a round; if it worked, the last one that was not noisy."""
    quiet = [launch for launch in attempts if _is_quiet(launch)]
    return quiet[-1] if attempts[-1].outcome == "ok" and quiet else attempts[-1]


def _is_quiet(launch: Launch) -> bool:
    return launch.outcome == "ok" and not launch.noisy
