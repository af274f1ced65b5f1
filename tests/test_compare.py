"""Two runs side by side: which cases are compared, what prevents a verdict, and when a regression test fails."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up import ENVIRONMENT, make_case, make_contents, make_launch, make_proof
from rnnbench.analysis.compare import choose_environment, compare_runs, failures
from rnnbench.domain.case import LeftOut, Method
from rnnbench.domain.run import Gpu, Tool
from rnnbench.errors import UserError
from rnnbench.report.comparison import NamedRun, as_fields, as_markdown, as_text

CASE = make_case()


def run_of(*cases, scale=1.0, seed=0, launches=3, **run):
    """Every case verified and measured by some launches with 1 % noise; `scale` multiplies their times."""
    generator = np.random.default_rng(seed)
    records = []
    for case in cases:
        records.append(make_proof(case))
        for number in range(launches):
            seconds = scale * generator.normal(0.1, 0.001, 8)
            records.append(make_launch(case, *seconds.tolist(), round=number, batches=2))
    return make_contents(cases, *records, **run)


def changed(contents, **fields):
    """The same results of a run that differs in some field."""
    return msgspec.structs.replace(contents, run=msgspec.structs.replace(contents.run, **fields))


def in_environment(contents, version="2.0", **fields):
    """The same results in another version of the framework."""
    environment = msgspec.structs.replace(
        ENVIRONMENT, id=f"toy-{version}", version=version, distributions={"toy": version}, **fields
    )

    def moved(record):
        case = msgspec.structs.replace(record.case, environment=environment.id)
        return msgspec.structs.replace(record, case=case)

    run = msgspec.structs.replace(
        contents.run,
        environments={environment.id: environment},
        cases=tuple(msgspec.structs.replace(case, environment=environment.id) for case in contents.run.cases),
    )
    return msgspec.structs.replace(contents, run=run, records=tuple(map(moved, contents.records)))


def only(a, b, **options):
    (case,) = compare_runs(a, b, **options).cases
    return case


# --- verdicts -------------------------------------------------------------------------------------------


def test_b_is_slower_and_a_faster_when_b_takes_longer():
    a, b = run_of(CASE), run_of(CASE, scale=1.2, seed=1)
    slower, faster = only(a, b), only(b, a)
    assert slower.verdict == "slower"
    assert slower.ratio == pytest.approx(slower.b_s / slower.a_s)
    assert slower.ratio_low < slower.ratio < slower.ratio_high
    assert 1.15 < slower.ratio < 1.25
    assert faster.verdict == "faster"
    assert faster.ratio == pytest.approx(1 / slower.ratio)


def test_equal_runs_show_no_difference():
    assert only(run_of(CASE), run_of(CASE, seed=1)).verdict == "no difference seen"


def test_a_difference_below_the_threshold_is_noise():
    a, b = run_of(CASE), run_of(CASE, scale=1.03)  # the same noise: the interval is narrow
    assert only(a, b).verdict == "slower"
    assert only(a, b, threshold=0.05).verdict == "no difference seen"


def test_one_launch_each_sees_coarse_differences_only():
    """Either launch may be off by the noise threshold of 10 %."""
    a = run_of(CASE, launches=1)
    for scale, verdict in ((1.15, "no difference seen"), (1.5, "slower"), (0.6, "faster")):
        assert only(a, run_of(CASE, launches=1, scale=scale, seed=1)).verdict == verdict
    mean = compare_runs(a, a).geometric_mean
    assert (mean.ratio, mean.low, mean.high) == (1.0, None, None)


def test_one_launch_beside_three_is_judged_by_the_three():
    assert only(run_of(CASE), run_of(CASE, launches=1, scale=1.3)).verdict == "slower"


NOISY = st.lists(
    st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=3), min_size=1, max_size=4
)  # launches, each with its samples


def _made(cases):
    named = {make_case(f"e{number}"): launches for number, launches in enumerate(cases)}
    records = [
        make_launch(case, *seconds, round=number)
        for case, launches in named.items()
        for number, seconds in enumerate(launches)
    ]
    return make_contents(list(named), *records)


@settings(deadline=None, max_examples=50)
@given(st.lists(NOISY, min_size=1, max_size=4))
def test_a_run_never_differs_from_itself(cases):
    run = _made(cases)
    found = compare_runs(run, run, threshold=0.0)
    assert {case.verdict for case in found.cases} == {"no difference seen"}
    assert found.geometric_mean.ratio == 1.0
    assert failures(found, 0.0) == []


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(NOISY, NOISY), min_size=1, max_size=4))
def test_swapped_runs_give_inverted_ratios(cases):
    a, b = _made([one for one, _ in cases]), _made([other for _, other in cases])
    there, back = compare_runs(a, b), compare_runs(b, a)
    opposite = {"slower": "faster", "faster": "slower"}
    for one, other in zip(there.cases, back.cases, strict=True):
        assert one.ratio * other.ratio == pytest.approx(1.0)
        assert one.ratio_low * other.ratio_high == pytest.approx(1.0)
        assert other.verdict == opposite.get(one.verdict, one.verdict)
    assert there.geometric_mean.ratio * back.geometric_mean.ratio == pytest.approx(1.0)


# --- all together ---------------------------------------------------------------------------------------

MANY = [make_case(f"e{number}") for number in range(20)]


def test_the_geometric_mean_is_that_of_the_ratios():
    found = compare_runs(run_of(*MANY), run_of(*MANY, scale=1.02, seed=1))
    mean = found.geometric_mean
    assert mean.ratio == pytest.approx(np.exp(np.mean(np.log([case.ratio for case in found.cases]))))
    assert mean.low < 1.02 < mean.high
    assert mean.high - mean.low < 0.02  # narrower than that of any case


def test_a_slow_round_widens_the_interval_of_the_mean():
    """20 cases that are all 5 % slower in one round are one observation of that, not twenty."""
    calm = run_of(*MANY)
    records = [
        msgspec.structs.replace(
            record, samples=tuple(type(one)(one.batches, 1.05 * one.seconds) for one in record.samples)
        )
        if getattr(record, "round", 0) == 2
        else record
        for record in calm.records
    ]
    stormy = msgspec.structs.replace(calm, records=tuple(records))
    width = [mean.high - mean.low for mean in (compare_runs(calm, one).geometric_mean for one in (calm, stormy))]
    assert width[1] > 10 * width[0]


def test_cases_that_only_one_run_has_are_named():
    other = make_case("other")
    found = compare_runs(run_of(CASE, other), run_of(CASE, make_case("third")))
    assert len(found.cases) == 1
    assert found.only_in_a == (other,)
    assert found.only_in_b == (make_case("third"),)


# --- not comparable -------------------------------------------------------------------------------------


def _stopped(a, b, *kinds):
    case = only(a, b)
    assert (case.verdict, case.ratio, case.ratio_low) == ("not comparable", None, None)
    assert case.differing == kinds
    return compare_runs(a, b).stopping


def test_another_version_of_the_framework_is_compared_only_when_asked_to():
    a, b = run_of(CASE), in_environment(run_of(CASE, scale=1.2))
    assert "environment: toy 1.0 → 2.0" in _stopped(a, b, "environment")
    case = only(a, b, across=["environment"])
    assert (case.verdict, case.environment_a, case.environment_b) == ("slower", "toy-1.0", "toy-2.0")
    assert "environment: toy 1.0 → 2.0" in compare_runs(a, b, across=["environment"]).crossed


def test_other_packages_count_and_another_path_does_not():
    a = in_environment(run_of(CASE))
    elsewhere = in_environment(run_of(CASE), python="/elsewhere/python", fingerprint="another")
    assert only(a, elsewhere).verdict == "no difference seen"
    environment = msgspec.structs.replace(
        a.run.environments["toy-2.0"], distributions={"toy": "2.0", "numpy": "3"}, python_version="3.12.0"
    )
    b = changed(a, environments={"toy-2.0": environment})
    assert _stopped(a, b, "environment") == (
        "environment: python version 3.11.0 → 3.12.0",
        "environment: numpy absent → 3",
    )


def test_another_source_stops_a_verdict():
    a = changed(run_of(CASE), tool=Tool(version="0", worker="x", sources={"toy": "one", "jax": "one"}))
    b = changed(run_of(CASE), tool=Tool(version="0", worker="y", sources={"toy": "two", "jax": "one"}))
    assert _stopped(a, b, "source") == ("source: code one → two",)
    assert only(a, b, across=["source"]).verdict == "no difference seen"


def test_a_change_in_another_framework_does_not_matter():
    a = changed(run_of(CASE), tool=Tool(version="0", worker="x", sources={"toy": "one", "jax": "one"}))
    b = changed(run_of(CASE), tool=Tool(version="0", worker="y", sources={"toy": "one", "jax": "two"}))
    assert only(a, b).verdict == "no difference seen"


def test_old_runs_without_framework_hashes_are_compared_by_the_hash_of_the_worker():
    a = changed(run_of(CASE), tool=Tool(version="0", worker="x"))
    b = changed(run_of(CASE), tool=Tool(version="0", worker="y", sources={"toy": "one"}))
    assert _stopped(a, b, "source") == ("source: code x → y",)


def test_another_machine_stops_a_verdict():
    a = run_of(CASE)
    b = changed(a, machine=msgspec.structs.replace(a.run.machine, cpu="another", caches={"L2": "1M"}))
    assert _stopped(a, b, "machine") == (
        "machine: cpu a processor → another",
        "machine: caches none → L2=1M",
    )
    assert only(a, b, across=["machine"]).verdict == "no difference seen"


def test_another_gpu_matters_only_to_rows_on_it():
    on_cpu, on_gpu = make_case(), make_case(device="cuda")
    a = run_of(on_cpu, on_gpu)
    gpu = Gpu(name="a GPU", driver="1", memory_mib=1)
    b = changed(a, machine=msgspec.structs.replace(a.run.machine, gpus=(gpu,)))
    assert [case.verdict for case in compare_runs(a, b).cases] == ["no difference seen", "not comparable"]


@pytest.mark.parametrize("field", [{"protocol": "2019"}, {"timing": "latency"}, {"threads": 2}])
def test_another_method_stops_a_verdict(field):
    a, b = run_of(CASE), run_of(CASE, method=Method(**field))
    _stopped(a, b, "method")
    assert only(a, b, across=["method"]).verdict == "no difference seen"


def test_effort_seed_and_system_are_only_noted():
    a = run_of(CASE)
    method = Method(effort="thorough", seed=7)
    b = changed(a, method=method, machine=msgspec.structs.replace(a.run.machine, kernel="Linux 9"))
    found = compare_runs(a, b)
    assert found.cases[0].verdict == "no difference seen"
    assert set(found.notes) == {"kernel  → Linux 9", "effort standard → thorough", "seed 0 → 7"}


def test_another_workload_of_the_same_name_is_never_compared():
    a = run_of(CASE)
    workload = msgspec.structs.replace(a.run.workloads["ce-short"], batch=32)
    b = changed(a, workloads={"ce-short": workload})
    assert _stopped(a, b, "workload") == ("workload: batch 64 → 32",)
    assert only(a, b, across=["environment", "source", "machine", "method"]).verdict == "not comparable"


def test_real_text_and_random_ids_are_two_workloads():
    a = run_of(make_case(workload="ptb-lm"))
    assert _stopped(a, changed(a, data="/data/ptb"), "workload") == ("workload: text random ids → the Penn Treebank",)
    short = run_of(CASE)
    assert only(short, changed(short, data="/data/ptb")).verdict == "no difference seen"


def test_two_environments_on_one_side_are_not_guessed_at():
    first, second = run_of(CASE), in_environment(run_of(CASE))
    a = msgspec.structs.replace(
        changed(
            first,
            cases=(*first.run.cases, *second.run.cases),
            environments={**first.run.environments, **second.run.environments},
        ),
        records=(*first.records, *second.records),
    )
    b = in_environment(run_of(CASE), version="3.0")
    found = compare_runs(a, b)
    assert found.cases == ()
    assert (len(found.only_in_a), len(found.only_in_b)) == (2, 1)
    # one of them can be chosen
    chosen = choose_environment(a, "toy-2.0")
    assert only(chosen, b, across=["environment"]).environment_a == "toy-2.0"
    with pytest.raises(UserError, match="no environment 'toy-9'"):
        choose_environment(a, "toy-9")


# --- what did not work ----------------------------------------------------------------------------------


def test_a_wrong_row_is_never_compared():
    b = make_contents([CASE], make_proof(CASE, "wrong", 0.5, reason="loss is off"), make_launch(CASE, 0.05))
    case = only(run_of(CASE), b)
    assert (case.verdict, case.broken) == ("not comparable", True)
    assert case.reason == "wrong in B: loss is off"
    assert not only(b, run_of(CASE)).broken  # a repaired row is not broken


def test_a_failure_says_on_which_side_and_why():
    failed = make_contents([CASE], make_launch(CASE, reason="killed by SIGSEGV"))
    assert only(run_of(CASE), failed).reason == "failed in B: killed by SIGSEGV"
    assert only(failed, run_of(CASE)).reason == "failed in A: killed by SIGSEGV"
    unsupported = make_contents([], left_out=[LeftOut(case=CASE, reason="needs a GPU")])
    assert only(run_of(CASE), unsupported).reason == "unsupported in B: needs a GPU"
    assert compare_runs(unsupported, unsupported).cases == ()
    assert only(make_contents([CASE]), run_of(CASE)).reason == "not measured yet in A"


def test_rows_without_proof_are_compared_and_say_so():
    a = make_contents([CASE], *(make_launch(CASE, 0.1, 0.1, round=number) for number in range(3)))
    found = compare_runs(a, run_of(CASE))
    assert found.cases[0].status_a == "unverified"
    assert "(unverified in A)" in as_text(found, NamedRun("a", a.run), NamedRun("b", a.run), [])


# --- as a regression test -------------------------------------------------------------------------------


def test_a_regression_fails_only_when_its_whole_interval_is_above():
    found = compare_runs(run_of(CASE), run_of(CASE, scale=1.08))
    (case,) = found.cases
    assert case.verdict == "slower"
    assert len(failures(found, 0.05)) == 1
    assert failures(found, case.ratio - 1) == []  # half of the interval is above, but not all of it
    assert failures(found, 0.2) == []


def test_getting_faster_never_fails_and_breaking_always_does():
    assert failures(compare_runs(run_of(CASE), run_of(CASE, scale=0.5)), 0.05) == []
    other = make_case("other")
    a = run_of(CASE, other)
    b = run_of(CASE, other)
    records = [one for one in b.records if one.case.system != other.system]
    b = msgspec.structs.replace(b, records=(*records, make_launch(other, reason="it died")))
    (failure,) = failures(compare_runs(a, b), 0.05)
    assert "failed in B: it died" in failure


def test_a_regression_test_that_compares_nothing_fails():
    assert failures(compare_runs(run_of(CASE), in_environment(run_of(CASE))), 0.05) == ["nothing could be compared"]
    assert failures(compare_runs(run_of(CASE), run_of(make_case("other"))), 0.05) == ["nothing could be compared"]


# --- output -------------------------------------------------------------------------------


def test_the_text_has_verdicts_notes_and_the_mean():
    a, b = run_of(CASE, make_case("other")), changed(run_of(CASE, scale=1.2), method=Method(seed=3))
    found = compare_runs(a, b)
    text = as_text(found, NamedRun("before", a.run), NamedRun("after", b.run), ["a failure"])
    assert "A  before: 2026-01-01T00:00:00+00:00, a processor, toy-1.0" in text
    assert "1.200×" in text
    assert "slower" in text
    assert "note: seed 0 → 3" in text
    assert "only in A, 1 cases: toy/fine/other @ toy-1.0 (ce-short train)" in text
    assert "1 cases in both runs: 1 slower, 0 faster, 0 no difference seen, 0 not comparable; geometric mean" in text
    assert text.endswith("failed: a failure")


def test_what_prevents_a_verdict_is_named_once_with_advice():
    a, b = run_of(*MANY), in_environment(run_of(*MANY))
    text = as_text(compare_runs(a, b), NamedRun("a", a.run), NamedRun("b", b.run), [])
    assert text.count("not comparable because of environment: toy 1.0 → 2.0") == 1
    assert "if that is what you compare, add --across environment" in text
    assert text.count("toy-1.0 → toy-2.0  ") == 20


def test_markdown_is_tables_and_harmless():
    case = make_case("<b>|x")
    a = run_of(case)
    text = as_markdown(compare_runs(a, a), NamedRun("a|b", a.run), NamedRun("b", a.run), [])
    assert "### ce-short · train · cpu · fp32" in text
    (line,) = [line for line in text.splitlines() if "&lt;b&gt;" in line and line.startswith("|")]
    assert line.replace(r"\|", "").count("|") == 7
    assert "<b>" not in text


def test_json_has_everything():
    a, b = run_of(CASE), run_of(CASE, scale=1.2)
    fields = msgspec.json.decode(
        msgspec.json.encode(as_fields(compare_runs(a, b), NamedRun("a", a.run), NamedRun("b", b.run), []))
    )
    assert fields["counts"] == {"slower": 1, "faster": 0, "no difference seen": 0, "not comparable": 0}
    assert fields["cases"][0]["ratio"] == pytest.approx(1.2)
    assert fields["geometric_mean"]["low"] < 1.2
    assert (fields["a"]["run"], fields["threshold"], fields["failures"]) == ("a", 0.01, [])
