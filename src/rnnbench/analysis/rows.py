"""One row per case, computed from its launches, its verification, the machine's limit and its profile."""

import statistics
from collections.abc import Iterable

import msgspec

from rnnbench.analysis.case_results import CaseResult, find_case_results
from rnnbench.analysis.levels import Spreads, find_level, find_spreads
from rnnbench.analysis.limit import find_peaks, is_above, least_time, share
from rnnbench.analysis.profile_results import find_profile_results
from rnnbench.analysis.row import MeasuredRow, Row, is_verified, over
from rnnbench.analysis.steadiness import is_steady
from rnnbench.domain.case import Case
from rnnbench.domain.result import Launch, Status
from rnnbench.domain.run import Run
from rnnbench.domain.workload import work_is_known
from rnnbench.stats.intervals import interval_of
from rnnbench.store import Contents


def make_rows(contents: Contents) -> list[Row]:
    """Rows in the plan's order, the unsupported ones last."""
    return [measured.row for measured in measure_rows(contents)]


def measure_rows(contents: Contents) -> list[MeasuredRow]:
    """The same rows, with the data they were computed from."""
    run = contents.run
    spreads = find_spreads(contents)
    measured = [_measure(run, result, spreads) for result in find_case_results(contents)]
    # The limits come first: a row above its limit is never the best.
    measured = _with_profiles(contents, _with_ratios(_with_limits(contents, measured)))
    unsupported = (_blank(run, left.case, "unsupported", left.reason) for left in run.left_out)
    return measured + [MeasuredRow(row) for row in unsupported]


def _measure(run: Run, result: CaseResult, spreads: Spreads) -> MeasuredRow:
    case, launches, proof = result.case, result.launches, result.proof
    blank = msgspec.structs.replace(_blank(run, case, *result.status_and_reason), node=result.node)
    if not result.measured:
        failure = result.failure
        fields = {"stage": failure.stage, "log_tail": failure.log_tail} if failure else {}
        return MeasuredRow(msgspec.structs.replace(blank, **fields))
    level = find_level(launches, spreads)
    wall = interval_of(level)
    worst = proof.worst if proof else None
    batches = sum(launch.batches for launch in launches)
    row = msgspec.structs.replace(
        blank,
        wall_s=wall.estimate,
        wall_low_s=wall.low,
        wall_high_s=wall.high,
        uncertain=wall.uncertain,
        elapsed_s=batches * wall.estimate,
        batches=batches,
        sequences_per_s=run.workloads[case.workload].batch / wall.estimate,
        import_s=_median(launch.import_s for launch in launches),
        build_s=_median(launch.build_s for launch in launches),
        first_call_s=_median(launch.first_call_s for launch in launches),
        warm_up_s=_median((launch.first_call_s or 0.0) + launch.warm_seconds for launch in launches),
        peak_host_bytes=_largest(launch.peak_host_bytes for launch in launches),
        peak_device_bytes=_largest(launch.peak_device_bytes for launch in launches),
        parameter_count=launches[-1].parameter_count,
        threads=launches[-1].threads,
        compile_s=_median(_compile_time(launch, wall.estimate) for launch in launches),
        launches=len(launches),
        noisy=any(launch.noisy for launch in launches),
        steady=is_steady(launches),
        checked=result.checked,
        worst_error=worst.error if worst else None,
        worst_quantity=worst.quantity if worst else "",
    )
    return MeasuredRow(row, level)


def _compile_time(launch: Launch, wall_s: float) -> float | None:
    """The first call and the warm-up, less as many steady batches: tracing, compiling, filling caches."""
    if launch.first_call_s is None:
        return None
    return max(0.0, launch.first_call_s + launch.warm_seconds - (1 + launch.warm_batches) * wall_s)


def _with_ratios(measured: list[MeasuredRow]) -> list[MeasuredRow]:
    """Ratios to the best row of each group. Only a verified row can be the best."""
    best: dict[tuple[str, str, str, str], MeasuredRow] = {}
    for each in measured:
        if is_verified(each.row):
            fastest = best.setdefault(each.row.group, each)
            if each.wall.estimate < fastest.wall.estimate:
                best[each.row.group] = each
    compared: list[MeasuredRow] = []
    for each in measured:
        base = best.get(each.row.group)
        if each.level is None or base is None:
            compared.append(each)
            continue
        to_best = over(each, base)
        row = msgspec.structs.replace(
            each.row,
            ratio=to_best.estimate,
            ratio_low=to_best.low,
            ratio_high=to_best.high,
            ratio_uncertain=to_best.uncertain,
            best=each is base,
        )
        compared.append(msgspec.structs.replace(each, row=row))
    return compared


def _with_limits(contents: Contents, measured: list[MeasuredRow]) -> list[MeasuredRow]:
    """The least time the machine needs, and the share of it, where the machine's rates were measured."""
    peaks = find_peaks(contents.records)
    limited: list[MeasuredRow] = []
    for case, each in zip(contents.run.cases, measured, strict=True):
        peak = peaks.get((each.row.node, case.device, case.precision))
        if peak is None or each.level is None or not work_is_known(contents.run.workloads[case.workload]):
            limited.append(each)
            continue
        least = least_time(contents.run.workloads[case.workload], case.phase, case.precision, peak)
        reached = share(least, each.wall)
        row = msgspec.structs.replace(
            each.row,
            limit_s=least.seconds,
            limit_share=reached.estimate,
            limit_share_low=reached.low,
            limit_share_high=reached.high,
            above_limit=is_above(reached, peak),
        )
        limited.append(msgspec.structs.replace(each, row=row))
    return limited


def _with_profiles(contents: Contents, measured: list[MeasuredRow]) -> list[MeasuredRow]:
    """The figures of its profile for every row that has one. Nothing else of the row changes."""
    results = find_profile_results(contents.profiles)
    profiled: list[MeasuredRow] = []
    for case, each in zip(contents.run.cases, measured, strict=True):
        result = results.get(case.key)
        if result is None:
            profiled.append(each)
            continue
        profile, batch, length = result.successful_profile, result.new_batch, result.new_length
        row = msgspec.structs.replace(
            each.row,
            operators=profile.count if profile else None,
            host_share=profile.host_share if profile else None,
            bottleneck=str(result.bottleneck) if result.bottleneck else "",
            new_batch_s=batch.cost_s if batch else None,
            new_batch=batch.outcome if batch else "",
            new_length_s=length.cost_s if length else None,
            new_length=length.outcome if length else "",
        )
        profiled.append(msgspec.structs.replace(each, row=row))
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
