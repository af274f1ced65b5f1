"""Whether a run is fit to be published: every check passes a good run and objects to its kind of fault."""

import msgspec
import numpy as np
import pytest

from analysis_runs import make_limit
from made_up import make_case, make_launch, make_proof, make_run
from rnnbench.analysis.check import CHECKS, check_run, is_fit
from rnnbench.analysis.stability import unsettled_cases
from rnnbench.cli.answers import show_check
from rnnbench.domain.case import Method
from rnnbench.domain.result import GpuState
from rnnbench.store import Contents

CASES = [make_case(f"e{number}") for number in range(20)]


def good(cases=CASES, launches=3, samples=10, noise=0.01, change=lambda number, position: 1.0, **launch):
    """A good run: three quiet launches of every case, round by round. `change` is a factor for each sample."""
    generator = np.random.default_rng(0)
    records = [make_proof(case) for case in cases]
    for number in range(launches):
        for case in cases:
            seconds = [
                0.1 * change(number, position / samples) * np.exp(generator.normal(0, noise))
                for position in range(samples)
            ]
            quiet = {"probe_before_s": 0.003 * generator.normal(1, 0.01), "probe_after_s": 0.003}
            checked = {"steady": True, "checked": "three updates and an unseen batch" if number == 0 else ""}
            records.append(make_launch(case, *seconds, round=number, **{**quiet, **checked, **launch}))
    return Contents(run=make_run(cases), records=tuple(records))


def replaced(contents, change):
    """The same run with every launch changed; `change` gets its position among all launches."""
    position = iter(range(len(contents.records)))
    return msgspec.structs.replace(
        contents,
        records=tuple(
            msgspec.structs.replace(record, **change(next(position))) if hasattr(record, "round") else record
            for record in contents.records
        ),
    )


def of_run(contents, **fields):
    return msgspec.structs.replace(contents, run=msgspec.structs.replace(contents.run, **fields))


def found(contents, about):
    (finding,) = [one for one in check_run(contents) if one.about == about]
    return finding


def test_a_good_run_is_fit_without_objections():
    findings = check_run(good())
    assert [(one.about, one.level) for one in findings if one.level != "ok"] == []
    assert len(findings) == len(CHECKS)
    assert not any(one.advice or one.rows for one in findings)
    assert is_fit(findings)
    assert show_check(findings).endswith("fit to publish: 0 problems, 0 warnings")


def spoilt(contents, about, level="problem"):
    """Only that check objects, and it says what to do."""
    findings = check_run(contents)
    assert {one.about: one.level for one in findings if one.level != "ok"} == {about: level}
    finding = found(contents, about)
    assert finding.advice
    assert is_fit(findings) == (level == "warning")
    return finding


# --- completeness --------------------------------------------------------------------------------------


def test_an_interrupted_run_is_not_fit():
    whole = good()
    finding = found(msgspec.structs.replace(whole, records=whole.records[:-1]), "completeness")
    assert finding.level == "problem"
    assert finding.rows == (CASES[-1].key,)
    assert "--resume" in finding.advice


def test_a_run_with_damaged_lines_is_not_fit():
    damaged = msgspec.structs.replace(good(), damaged=("line 7: …",))
    assert "1 lines" in spoilt(damaged, "completeness").what


def test_one_unverified_row_is_a_problem():
    whole = good()
    finding = spoilt(msgspec.structs.replace(whole, records=whole.records[1:]), "verification")
    assert finding.rows == (CASES[0].key,)


@pytest.mark.parametrize("verdict", ["wrong", "failed"])
def test_wrong_and_failed_rows_are_a_warning(verdict):
    whole = good()
    if verdict == "wrong":
        records = (make_proof(CASES[0], "wrong", 0.5, reason="loss is off"), *whole.records[1:])
    else:
        records = (*whole.records[:-1], make_launch(CASES[-1], round=2, reason="it died"))
    finding = spoilt(msgspec.structs.replace(whole, records=records), "failures", "warning")
    assert len(finding.rows) == 1


def test_a_run_in_which_every_row_is_wrong_is_not_fit():
    contents = good(CASES[:3])
    proofs = [make_proof(case, verdict="wrong") for case in CASES[:3]]
    contents = msgspec.structs.replace(contents, records=(*proofs, *contents.records[3:]))
    finding = found(contents, "failures")
    assert (finding.level, finding.rows) == ("problem", tuple(case.key for case in CASES[:3]))
    assert "all 3 rows" in finding.what


def test_one_launch_of_each_is_too_few():
    quick = of_run(good(launches=1), method=Method(launches=1))
    assert {one.about for one in check_run(quick) if one.level == "problem"} == {"launches", "intervals"}
    finding = found(quick, "launches")
    assert len(finding.rows) == 20
    assert "20 are over ±20 % and marked ±" in found(quick, "intervals").what
    assert "--launches 3" in finding.advice


# --- noise ----------------------------------------------------------------------------------------------


def test_a_few_noisy_rows_are_a_warning_and_many_a_problem():
    few = replaced(good(), lambda position: {"noisy": position in (3, 4)})
    many = replaced(good(), lambda position: {"noisy": position < 5})
    assert len(spoilt(few, "busy launches", "warning").rows) == 2
    assert len(spoilt(many, "busy launches").rows) == 5


@pytest.mark.parametrize(("device", "quiet", "advice"), [
    ("cpu", None, "stop other work"), ("cuda", None, "--threads 1 or 2"), ("cuda", True, "stop other work"),
])  # fmt: skip
def test_the_advice_for_a_gpus_host_is_to_time_on_quiet_processors(device, quiet, advice):
    cases = [make_case(f"e{number}", device=device) for number in range(20)]
    noisy = replaced(good(cases), lambda position: {"noisy": position < 5, "quiet": quiet})
    assert advice in found(noisy, "busy launches").advice


def test_a_noisy_launch_that_was_repeated_does_not_count():
    whole = good()
    again = msgspec.structs.replace(whole.records[-1], attempt=1)
    noisy = msgspec.structs.replace(whole.records[-1], noisy=True)
    assert is_fit(check_run(msgspec.structs.replace(whole, records=(*whole.records[:-1], noisy, again))))


def test_wide_intervals_are_a_problem_and_the_advice_depends_on_whether_launches_or_samples_vary():
    assert "longer sampling" in spoilt(good(noise=0.2), "intervals").advice
    generator = np.random.default_rng(1)
    levels = generator.normal(1, 0.15, 60)
    apart = replaced(good(), lambda position: {})
    launches = [record for record in apart.records if hasattr(record, "round")]
    moved = [
        msgspec.structs.replace(one, samples=tuple(type(s)(s.batches, s.seconds * level) for s in one.samples))
        for one, level in zip(launches, levels, strict=True)
    ]
    apart = msgspec.structs.replace(apart, records=(*(make_proof(case) for case in CASES), *moved))
    assert "--launches 8" in spoilt(apart, "intervals").advice
    assert "--launches 8" in found(good(launches=1), "intervals").advice  # their samples say nothing about launches


# --- what was timed ---------------------------------------------------------------------------------------


def test_rows_that_were_not_checked_at_full_size_are_a_problem():
    finding = spoilt(good(checked=""), "full size")
    assert len(finding.rows) == 20
    assert "measure again" in finding.advice
    unverified = of_run(good(checked=""), method=Method(verify=False))
    assert found(unverified, "full size").level == "warning"


def test_one_checked_launch_of_a_case_is_enough():
    assert found(good(), "full size").level == "ok"


def test_a_row_above_the_machines_limit_is_a_problem():
    whole = good()
    slow = make_limit(CASES[0], flops_per_s=1e10)  # the work of a batch takes 1.9 s, the rows 0.1
    finding = spoilt(msgspec.structs.replace(whole, records=(*whole.records, slow)), "limit")
    assert len(finding.rows) == 20
    assert "do not trust" in finding.advice


@pytest.mark.parametrize(("count", "level"), [(2, "warning"), (5, "problem")])
def test_rows_that_were_not_warm_when_sampling_began_are_named(count, level):
    cold = replaced(good(), lambda position: {"steady": position >= count})
    assert len(spoilt(cold, "steadiness", level).rows) == count


# --- drift ----------------------------------------------------------------------------------------------


def test_rows_that_get_faster_while_they_are_sampled_were_not_warm():
    finding = spoilt(good(change=lambda number, position: 1.1 - 0.1 * position), "drift in launches")
    assert "(20 faster, 0 slower)" in finding.what
    assert "warm" in finding.advice


def test_rows_that_get_slower_were_throttled():
    finding = spoilt(good(change=lambda number, position: 1 + 0.1 * position), "drift in launches")
    assert "(0 faster, 20 slower)" in finding.what
    assert "cool" in finding.advice


def test_a_round_that_was_slower_as_a_whole_is_named():
    finding = spoilt(good(change=lambda number, position: 1.05 if number == 1 else 1.0), "drift over rounds")
    assert "round 2 of 3 was slower as a whole: 1.0" in finding.what


def test_one_slower_row_does_not_make_a_round_slower():
    slow = replaced(good(), lambda position: {})
    records = list(slow.records)
    last = records[-1]
    records[-1] = msgspec.structs.replace(
        last, samples=tuple(type(s)(s.batches, 1.08 * s.seconds) for s in last.samples)
    )
    assert found(msgspec.structs.replace(slow, records=tuple(records)), "drift over rounds").level == "ok"


def test_rounds_of_few_rows_are_not_judged():
    assert "not judged" in found(good(CASES[:4]), "drift over rounds").what


def test_a_processor_that_slows_down_is_seen():
    hot = replaced(
        good(), lambda position: {"probe_before_s": 0.003 * (1 + position / 200), "probe_after_s": 0.003 * 1.5}
    )
    finding = spoilt(hot, "processor speed")
    assert "from the first to the last third" in finding.what
    assert "frequency" in finding.advice


def test_launches_that_were_repeated_do_not_count():
    """A third of the launches ran on a machine half as fast, and each was repeated when it was quiet."""
    run = good()
    slow = {"probe_before_s": 0.006, "probe_after_s": 0.006}
    records = list(run.records)
    for launch in [record for record in records if getattr(record, "round", None) == 0]:
        records.append(msgspec.structs.replace(launch, attempt=1))
        records[records.index(launch)] = msgspec.structs.replace(launch, noisy=True, **slow)
    repeated = msgspec.structs.replace(run, records=tuple(records))
    assert is_fit(check_run(repeated))
    assert f"{len(CASES)} launches do not count" in found(repeated, "busy launches").what
    counted = replaced(run, lambda position: slow if position < len(CASES) else {})
    assert found(counted, "processor speed").level == "problem"


def test_a_few_slow_probes_are_no_problem():
    assert is_fit(
        check_run(replaced(good(), lambda position: {"probe_before_s": 0.01 if position % 20 == 0 else 0.003}))
    )


def test_a_missing_probe_is_a_warning():
    spoilt(replaced(good(), lambda position: {"probe_before_s": None}), "processor speed", "warning")


# --- circumstances ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("load", "level"), [(None, "ok"), (0.3, "ok"), (1.0, "warning"), (2.7, "problem")])
def test_other_load_when_the_run_began(load, level):
    whole = good()
    busy = of_run(whole, machine=msgspec.structs.replace(whole.run.machine, load=load))
    assert found(busy, "other load").level == level


def test_uncommitted_changes_are_a_warning():
    whole = good()
    spoilt(of_run(whole, tool=msgspec.structs.replace(whole.run.tool, revision="abc+")), "source", "warning")


def test_the_text_shows_a_few_rows_and_counts_the_others():
    text = show_check(check_run(replaced(good(), lambda position: {"noisy": True})))
    assert "problem  busy launches: 20 of 20 rows" in text
    assert "ce-short toy/fine/e0 train cpu fp32 toy-1.0" in text
    assert "and 15 more" in text
    assert "→ stop other work" in text
    assert text.endswith("not fit to publish: 1 problems, 0 warnings")


def test_an_empty_run_is_not_fit():
    assert not is_fit(check_run(Contents(run=make_run(CASES), records=())))


# --- a GPU ----------------------------------------------------------------------------------------------


def on_gpu(before=1980, after=1980, apart=1.0, **state):
    """The good run as if it had been timed on a GPU with these clocks."""
    states = {"gpu_before": GpuState(sm_mhz=before), "gpu_after": GpuState(sm_mhz=after, **state)}
    contents = good(**states)
    records = tuple(
        msgspec.structs.replace(record, device_seconds=apart * record.seconds) if hasattr(record, "round") else record
        for record in contents.records
    )
    return msgspec.structs.replace(contents, records=records)


def test_a_gpu_that_keeps_its_clock_and_agrees_with_the_host_is_fine():
    findings = check_run(on_gpu(apart=0.998))
    assert [one.about for one in findings if one.level != "ok"] == []


def test_a_gpu_whose_clock_changed_is_a_problem_with_its_reason():
    finding = found(on_gpu(after=1500, slowed_by=("power cap",)), "GPU clock")
    assert finding.level == "problem"
    assert "1,500" in finding.what
    assert "power cap" in finding.advice


@pytest.mark.parametrize("apart", [0.97, 1.02])
def test_clocks_that_disagree_are_a_problem(apart):
    assert found(on_gpu(apart=apart), "two clocks").level == "problem"


def test_single_batches_may_differ_between_the_clocks():
    contents = on_gpu(apart=0.9)
    assert found(of_run(contents, method=Method(timing="latency")), "two clocks").level == "ok"


def test_cases_with_wide_intervals_are_those_that_the_check_names():
    """One launch in 25 takes twice as long: only its row has a wide interval."""
    contents = replaced(
        good(), lambda position: {"samples": make_launch(CASES[0], 0.2, 0.2).samples} if position % 25 == 7 else {}
    )
    wide = unsettled_cases(contents)
    assert 0 < len(wide) < len(CASES)
    assert {case.key for case in wide} == set(found(contents, "intervals").rows)
    assert unsettled_cases(good()) == ()


def test_cases_with_too_few_quiet_launches_are_those_that_the_check_names():
    noisy = replaced(good(), lambda position: {"noisy": position in (3, 4)})
    assert {case.key for case in unsettled_cases(noisy)} == set(found(noisy, "busy launches").rows)
    assert len(unsettled_cases(noisy)) == 2
