"""One row per case: its launches and its verification boiled down to what a table shows."""

import statistics
from collections.abc import Iterable

import msgspec
import numpy as np

from rnnbench.domain.case import Case
from rnnbench.domain.result import Launch, Status, Verification
from rnnbench.stats.bootstrap import Floats, Series, interval, ratio, replicates, wall_time
from rnnbench.store.folder import Contents
from rnnbench.store.run import Run


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Every field of a table's row; times in seconds. None: not measured."""

    workload: str
    system: str
    framework: str
    granularity: str
    execution: str
    phase: str
    device: str
    precision: str
    environment: str
    status: Status
    reason: str = ""
    wall_s: float | None = None
    wall_low_s: float | None = None
    wall_high_s: float | None = None
    elapsed_s: float | None = None
    batches: int | None = None
    sequences_per_s: float | None = None
    ratio: float | None = None  # to the best verified row of the same group
    ratio_low: float | None = None
    ratio_high: float | None = None
    best: bool = False
    import_s: float | None = None
    build_s: float | None = None
    first_call_s: float | None = None
    warm_up_s: float | None = None  # first call and all batches until steady: some compile in the second call
    peak_host_bytes: int | None = None
    peak_device_bytes: int | None = None
    parameter_count: int | None = None
    threads: int | None = None
    launches: int = 0
    noisy: bool = False  # every launch of some round was marked noisy
    worst_error: float | None = None
    worst_quantity: str = ""
    stage: str = ""
    log_tail: str = ""
    description: str = ""
    seed_label: str = ""

    @property
    def group(self) -> tuple[str, str, str, str]:
        return (self.workload, self.phase, self.device, self.precision)


class _Measured(msgspec.Struct):
    row: Row
    draws: Floats | None


def make_rows(contents: Contents) -> list[Row]:
    """Rows in the plan's order, the unsupported ones last within it."""
    launches = _by_case(record for record in contents.records if isinstance(record, Launch))
    proofs = {_proof_key(record.case): record for record in contents.records if isinstance(record, Verification)}
    run = contents.run
    measured = [
        _measure(run, case, launches.get(case.key, {}), proofs.get(_proof_key(case, run.proved_on[case.workload])))
        for case in run.cases
    ]
    rows = _with_ratios(measured)
    rows += [_blank(run, left.case, "unsupported", left.reason) for left in run.left_out]
    return rows


def _by_case(records: Iterable[Launch]) -> dict[str, dict[int, list[Launch]]]:
    """case -> round -> attempts in the order they were made."""
    found: dict[str, dict[int, list[Launch]]] = {}
    for launch in records:
        found.setdefault(launch.case.key, {}).setdefault(launch.round, []).append(launch)
    return found


def _proof_key(case: Case, workload: str = "") -> tuple[str, ...]:
    return (workload or case.workload, case.system, case.phase, case.device, case.precision, case.environment)


def _measure(run: Run, case: Case, rounds: dict[int, list[Launch]], proof: Verification | None) -> _Measured:
    chosen = [_standing(rounds[number]) for number in sorted(rounds)]
    failure = next((launch for launch in chosen if launch.outcome != "ok"), None)
    if not chosen:
        return _Measured(_blank(run, case, "unverified", "not measured yet"), None)
    if failure is not None:
        row = _blank(run, case, "timeout" if failure.outcome == "timeout" else "failed", failure.reason)
        return _Measured(msgspec.structs.replace(row, stage=failure.stage, log_tail=failure.log_tail), None)
    series = [
        Series(
            np.array([sample.batches for sample in launch.samples], np.float64),
            np.array([sample.seconds for sample in launch.samples], np.float64),
        )
        for launch in chosen
    ]
    draws = replicates(series)
    wall = interval(wall_time(series), draws)
    status, reason = _judgement(proof)
    worst = proof.worst if proof else None
    batches = sum(launch.batches for launch in chosen)
    row = msgspec.structs.replace(
        _blank(run, case, status, reason),
        wall_s=wall.estimate,
        wall_low_s=wall.low,
        wall_high_s=wall.high,
        elapsed_s=sum(launch.seconds for launch in chosen),
        batches=batches,
        sequences_per_s=run.workloads[case.workload].batch / wall.estimate,
        import_s=_median(launch.import_s for launch in chosen),
        build_s=_median(launch.build_s for launch in chosen),
        first_call_s=_median(launch.first_call_s for launch in chosen),
        warm_up_s=_median((launch.first_call_s or 0.0) + launch.warm_seconds for launch in chosen),
        peak_host_bytes=_largest(launch.peak_host_bytes for launch in chosen),
        peak_device_bytes=_largest(launch.peak_device_bytes for launch in chosen),
        parameter_count=chosen[-1].parameter_count,
        threads=chosen[-1].threads,
        launches=len(chosen),
        noisy=any(launch.noisy for launch in chosen),
        worst_error=worst.error if worst else None,
        worst_quantity=worst.quantity if worst else "",
    )
    return _Measured(row, draws)


def _standing(made: list[Launch]) -> Launch:
    """The last attempt of a round stands for it, but of those that worked a quiet one is preferred."""
    quiet = [launch for launch in made if launch.outcome == "ok" and not launch.noisy]
    return quiet[-1] if made[-1].outcome == "ok" and quiet else made[-1]


def _judgement(proof: Verification | None) -> tuple[Status, str]:
    if proof is None:
        return "unverified", "not verified in this run"
    if proof.verdict == "verified":
        return "verified", ""
    if proof.verdict == "wrong":
        return "wrong", proof.reason
    return "unverified", f"its verification ended as {proof.verdict}: {proof.reason}"


def _with_ratios(measured: list[_Measured]) -> list[Row]:
    """Only a verified row is ever best, and only the best is a baseline."""
    best: dict[tuple[str, str, str, str], _Measured] = {}
    for one in measured:
        if one.row.status == "verified" and one.row.wall_s is not None:
            rival = best.get(one.row.group)
            if rival is None or rival.row.wall_s is None or one.row.wall_s < rival.row.wall_s:
                best[one.row.group] = one
    rows: list[Row] = []
    for one in measured:
        base = best.get(one.row.group)
        if one.draws is None or base is None or base.draws is None:
            rows.append(one.row)
            continue
        assert one.row.wall_s is not None
        assert base.row.wall_s is not None
        against = ratio(one.row.wall_s, one.draws, base.row.wall_s, base.draws)
        is_best = one is base
        rows.append(
            msgspec.structs.replace(
                one.row,
                ratio=against.estimate,
                ratio_low=1.0 if is_best else against.low,
                ratio_high=1.0 if is_best else against.high,
                best=is_best,
            )
        )
    return rows


def _blank(run: Run, case: Case, status: Status, reason: str) -> Row:
    system = run.systems[case.system]
    return Row(
        workload=case.workload,
        system=case.system,
        framework=case.framework,
        granularity=system.granularity,
        execution=system.execution,
        phase=case.phase,
        device=case.device,
        precision=case.precision,
        environment=case.environment,
        status=status,
        reason=reason,
        description=system.description,
        seed_label=system.seed,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
