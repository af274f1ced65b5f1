"""One row per case: its launches and its verification boiled down to what a table shows."""

import statistics
from collections.abc import Iterable

import msgspec
import numpy as np

from rnnbench.analysis.case_results import CaseResult, find_case_results
from rnnbench.analysis.limit import find_peaks, least_time, share
from rnnbench.analysis.profile_results import find_profile_results
from rnnbench.analysis.row import MeasuredRow, Row
from rnnbench.domain.case import Case
from rnnbench.domain.result import Launch, Status
from rnnbench.domain.run import Run
from rnnbench.stats.intervals import Series, interval, ratio, replicates, wall_time
from rnnbench.store import Contents


def make_rows(contents: Contents) -> list[Row]:
    """Rows in the plan's order, the unsupported ones last."""
    return [one.row for one in measure_rows(contents)]


def measure_rows(contents: Contents) -> list[MeasuredRow]:
    """The same rows, with what they are made of."""
    run = contents.run
    measured = [_measure(run, result) for result in find_case_results(contents)]
    measured = _with_profiles(contents, _with_limits(contents, _with_ratios(measured)))
    unsupported = (_blank(run, left.case, "unsupported", left.reason) for left in run.left_out)
    return measured + [MeasuredRow(row) for row in unsupported]


def _measure(run: Run, result: CaseResult) -> MeasuredRow:
    case, chosen, proof = result.case, result.launches, result.proof
    blank = _blank(run, case, *result.status_and_reason)
    if not result.measured:
        failure = result.failure
        fields = {"stage": failure.stage, "log_tail": failure.log_tail} if failure else {}
        return MeasuredRow(msgspec.structs.replace(blank, **fields))
    series = [
        Series(
            np.array([sample.batches for sample in launch.samples], np.float64),
            np.array([sample.seconds for sample in launch.samples], np.float64),
        )
        for launch in chosen
    ]
    draws = replicates(series)
    wall = interval(wall_time(series), draws)
    worst = proof.worst if proof else None
    batches = sum(launch.batches for launch in chosen)
    row = msgspec.structs.replace(
        blank,
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
        compile_s=_median(_beyond_steady(launch, wall.estimate) for launch in chosen),
        launches=len(chosen),
        noisy=any(launch.noisy for launch in chosen),
        worst_error=worst.error if worst else None,
        worst_quantity=worst.quantity if worst else "",
    )
    return MeasuredRow(row, draws, tuple(series))


def _beyond_steady(launch: Launch, wall_s: float) -> float | None:
    """Seconds of the first call and the warm-up that were not batches: tracing, compiling, filling caches."""
    if launch.first_call_s is None:
        return None
    return max(0.0, launch.first_call_s + launch.warm_seconds - (1 + launch.warm_batches) * wall_s)


def _with_ratios(measured: list[MeasuredRow]) -> list[MeasuredRow]:
    """Only a verified row is ever best, and only the best is a baseline."""
    best: dict[tuple[str, str, str, str], MeasuredRow] = {}
    for one in measured:
        if one.row.status == "verified" and one.row.wall_s is not None:
            rival = best.get(one.row.group)
            if rival is None or rival.row.wall_s is None or one.row.wall_s < rival.row.wall_s:
                best[one.row.group] = one
    compared: list[MeasuredRow] = []
    for one in measured:
        base = best.get(one.row.group)
        if one.draws is None or base is None or base.draws is None:
            compared.append(one)
            continue
        is_best = one is base
        against = ratio(one.wall.estimate, one.draws, base.wall.estimate, base.draws)
        row = msgspec.structs.replace(
            one.row,
            ratio=against.estimate,
            ratio_low=1.0 if is_best else against.low,
            ratio_high=1.0 if is_best else against.high,
            best=is_best,
        )
        compared.append(msgspec.structs.replace(one, row=row))
    return compared


def _with_limits(contents: Contents, measured: list[MeasuredRow]) -> list[MeasuredRow]:
    """Beside every time, the least the machine needs; nothing where its rates were not measured."""
    peaks = find_peaks(contents.records)
    limited: list[MeasuredRow] = []
    for case, one in zip(contents.run.cases, measured, strict=True):
        peak = peaks.get((case.device, case.precision))
        if peak is None or one.draws is None:
            limited.append(one)
            continue
        least = least_time(contents.run.workloads[case.workload], case.phase, case.precision, peak)
        low, estimate, high = share(least, one.wall)
        row = msgspec.structs.replace(
            one.row, limit_s=least.seconds, limit_share=estimate, limit_share_low=low, limit_share_high=high
        )
        limited.append(msgspec.structs.replace(one, row=row))
    return limited


def _with_profiles(contents: Contents, measured: list[MeasuredRow]) -> list[MeasuredRow]:
    """Beside every row what its profile says, where it has one. It changes nothing else of the row."""
    found = find_profile_results(contents.profiles)
    profiled: list[MeasuredRow] = []
    for case, one in zip(contents.run.cases, measured, strict=True):
        of = found.get(case.key)
        if of is None:
            profiled.append(one)
            continue
        batch, length = of.new_batch, of.new_length
        row = msgspec.structs.replace(
            one.row,
            operators=of.counted.count if of.counted else None,
            host_share=of.counted.host_share if of.counted else None,
            bottleneck=str(of.bottleneck) if of.bottleneck else "",
            new_batch_s=batch.cost_s if batch else None,
            new_batch=batch.outcome if batch else "",
            new_length_s=length.cost_s if length else None,
            new_length=length.outcome if length else "",
        )
        profiled.append(msgspec.structs.replace(one, row=row))
    return profiled


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
        batch=run.workloads[case.workload].batch,
        description=system.description,
        seed_label=system.seed,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
