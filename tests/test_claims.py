"""The conclusions of Carrot (2019), tested on its own tables and on runs with known times."""

import pytest

from analysis_runs import MadeUpRow, contents_of
from rnnbench.domain.system import DEVICES, PHASES
from rnnbench.manifests import manifests
from rnnbench.published.claims import published_seconds
from rnnbench.published.conclusions import CELL, CONCLUSIONS, CUDNN, EAGER, FINE, GRAPH, JIT, TORCH, Time
from rnnbench.report.document import analyse

WAYS = {
    EAGER: "tensorflow/{}/eager",
    GRAPH: "tensorflow/{}/graph",
    TORCH: "pytorch/{}/eager",
    JIT: "pytorch/{}/script",
}
GRANULARITIES = {FINE: "fine", CELL: "cell", CUDNN: "stack"}
EVERY_TIME = {
    time
    for conclusion in CONCLUSIONS
    for assertion in conclusion.assertions
    for quotient in assertion.quotients
    for time in (*quotient.over, *quotient.under)
}


def measured_row(time, *launches, workload="ptb-lm", version="1.0", **row):
    """A measured row of the same program as a published time, found by the label in its manifest."""
    system = WAYS[time.label].format(GRANULARITIES[time.table])
    label = f"{time.label} ({time.table})"
    case = {"phase": time.phase, "device": time.device, "workload": workload}
    environment = f"{system.partition('/')[0]}-{version}"
    return MadeUpRow(system, *launches, seed=label, environment=environment, **case, **row)


def claims_of(*runs):
    return analyse([contents_of(*rows) for rows in runs]).claims


def comparison_of(claims, over, under):
    """The comparison of these two times, in whichever claim it is."""
    found = [
        one
        for claim in claims
        for part in claim.parts
        for one in part.comparisons
        if [(f.label, f.phase, f.device) for f in (*one.over, *one.under)]
        == [(time.seed_label, time.phase, time.device) for time in (over, under)]
    ]
    return found[0]


GRAPH_TRAIN, TORCH_TRAIN = Time(GRAPH, FINE, "train", "cpu"), Time(TORCH, FINE, "train", "cpu")
GRAPH_GPU, TORCH_GPU = GRAPH_TRAIN._replace(device="cuda"), TORCH_TRAIN._replace(device="cuda")
EAGER_CPU = Time(EAGER, FINE, "train", "cpu")
EAGER_GPU = EAGER_CPU._replace(device="cuda")


# --- the published tables -------------------------------------------------------------------------------------


def test_every_time_of_the_conclusions_was_published():
    assert len(EVERY_TIME) == 2 * (2 * 4 * 2) + 3 * 2
    assert {time for time in EVERY_TIME if published_seconds(time) is None} == set()


def test_every_label_of_pytorch_is_in_its_manifest():
    """Measured rows are found by these labels: a mistyped one would never be found."""
    known = {system.seed.casefold() for system in manifests()["pytorch"].system}
    wanted = {time.seed_label.casefold() for time in EVERY_TIME if time.label in (TORCH, JIT)}
    assert wanted <= known


def test_a_run_with_the_published_times_has_the_published_verdicts():
    runs = [
        [measured_row(time, published_seconds(time)) for time in sorted(EVERY_TIME) if time.device == device]
        for device in DEVICES
    ]
    claims = claims_of(*runs)
    for claim in claims:
        for part in claim.parts:
            assert part.verdict == part.published_verdict
            for one in part.comparisons:
                assert one.measured.estimate == pytest.approx(one.published)
                assert one.verdict == one.published_verdict
    # Conclusions 2 and 3 go beyond the published tables: cuDNN in PyTorch is faster than in TensorFlow.
    assert [claim.verdict for claim in claims] == ["holds", "does not hold", "does not hold", "holds"]


def test_a_run_without_any_of_these_rows_still_shows_the_published_figures():
    claims = claims_of([MadeUpRow("toy/fine/eager", 1.0)])
    assert {claim.verdict for claim in claims} == {"not measured"}
    comparisons = [one for claim in claims for part in claim.parts for one in part.comparisons]
    assert all(one.measured is None and one.published is not None for one in comparisons)
    assert all(one.remark.startswith("no verified row of ") for one in comparisons)


# --- what counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "torch", "verdict", "remark"),
    [
        ([1.0], [2.0], "holds", ""),
        ([2.0], [1.0], "does not hold", "the other way round"),
        ([1.0], [1.0], "does not hold", "no difference seen"),
        ([1.0], [1.015], "does not hold", "no difference seen"),
        ([[1.0, 1.5, 0.7]], [[1.1, 1.6, 0.8]], "does not hold", "no difference seen"),
    ],
    ids=["beyond doubt", "reversed", "the same", "within the noise", "within the interval"],
)
def test_a_comparison_holds_only_beyond_the_noise(graph, torch, verdict, remark):
    claims = claims_of([measured_row(GRAPH_TRAIN, *graph), measured_row(TORCH_TRAIN, *torch)])
    one = comparison_of(claims, TORCH_TRAIN, GRAPH_TRAIN)
    assert (one.verdict, one.remark) == (verdict, remark)
    assert one.published == pytest.approx(1.9554 / 0.7869)


@pytest.mark.parametrize("verdict", ["wrong", "failed", ""])
def test_rows_that_are_not_verified_are_not_measured(verdict):
    claims = claims_of([measured_row(GRAPH_TRAIN, 1.0), measured_row(TORCH_TRAIN, 2.0, verdict=verdict)])
    one = comparison_of(claims, TORCH_TRAIN, GRAPH_TRAIN)
    assert (one.verdict, one.measured) == ("not measured", None)
    assert one.remark == "no verified row of PyTorch (fine-grained operators), train, cpu"


def test_other_precisions_and_other_workloads_do_not_count():
    rows = [measured_row(GRAPH_TRAIN, 1.0), measured_row(TORCH_TRAIN, 2.0, precision="bf16")]
    assert comparison_of(claims_of(rows), TORCH_TRAIN, GRAPH_TRAIN).verdict == "not measured"
    rows = [measured_row(time, 1.0, workload="ce-short") for time in (GRAPH_TRAIN, TORCH_TRAIN)]
    assert comparison_of(claims_of(rows), TORCH_TRAIN, GRAPH_TRAIN).verdict == "not measured"


def test_of_several_versions_the_newest_counts():
    rows = [
        measured_row(GRAPH_TRAIN, 1.0),
        measured_row(TORCH_TRAIN, 9.0, version="1.9"),
        measured_row(TORCH_TRAIN, 2.0, version="1.10"),
    ]
    one = comparison_of(claims_of(rows), TORCH_TRAIN, GRAPH_TRAIN)
    assert one.measured.estimate == 2.0
    assert one.over[0].row.environment == "pytorch-1.10"


# --- several runs ---------------------------------------------------------------------------------------------


def test_rows_of_one_device_come_from_one_machine():
    one = comparison_of(
        claims_of([measured_row(GRAPH_TRAIN, 1.0)], [measured_row(TORCH_TRAIN, 2.0)]), TORCH_TRAIN, GRAPH_TRAIN
    )
    assert one.verdict == "not measured"


def test_a_cpu_and_a_gpu_may_be_two_runs():
    claims = claims_of([measured_row(EAGER_CPU, 1.0)], [measured_row(EAGER_GPU, 3.0)])
    one = comparison_of(claims, EAGER_GPU, EAGER_CPU)
    assert (one.verdict, one.measured.estimate) == ("holds", pytest.approx(3.0))
    assert [one.over[0].group.run, one.under[0].group.run] == [1, 0]
    assert claims[0].parts[0].verdict == "holds"  # `could be`: one case is enough
    assert claims[0].verdict == "not measured"  # its other parts


def test_a_reduced_workload_counts_but_sizes_are_not_mixed_and_the_published_size_is_preferred():
    small = "ptb-lm[batch=16]"
    mixed = claims_of([measured_row(EAGER_CPU, 1.0, workload=small)], [measured_row(EAGER_GPU, 3.0)])
    assert comparison_of(mixed, EAGER_GPU, EAGER_CPU).verdict == "not measured"
    reduced = claims_of([measured_row(EAGER_CPU, 1.0, workload=small)], [measured_row(EAGER_GPU, 3.0, workload=small)])
    assert comparison_of(reduced, EAGER_GPU, EAGER_CPU).over[0].group.workload == small
    rows = [
        measured_row(time, wall, workload=name)
        for name, wall in ((small, 5.0), ("ptb-lm", 1.0))
        for time in (EAGER_CPU, EAGER_GPU)
    ]
    both = comparison_of(claims_of(rows), EAGER_GPU, EAGER_CPU)
    assert (both.over[0].group.workload, both.over[0].wall_s.estimate) == ("ptb-lm", 1.0)


def test_a_quotient_of_quotients_has_an_interval_of_all_four():
    walls = {EAGER_CPU: 8.0, TORCH_TRAIN: 1.0, EAGER_GPU: 4.0, TORCH_GPU: 2.0}
    rows = [measured_row(time, [0.97 * wall], [wall], [1.03 * wall]) for time, wall in walls.items()]
    part = claims_of(rows)[1].parts[2]
    one = part.comparisons[0]
    assert one.measured.estimate == pytest.approx((8 / 1) / (4 / 2))
    assert one.measured.low < 4.0 < one.measured.high
    assert one.verdict == "holds"
    assert part.verdict == "not measured"  # of the static cell there is nothing


def test_a_decisive_verdict_counts_even_if_others_were_not_measured():
    claims = claims_of([measured_row(GRAPH_TRAIN, 2.0), measured_row(TORCH_TRAIN, 1.0)])
    part = claims[1].parts[0]
    assert part.rule == "all"
    assert [one.verdict for one in part.comparisons].count("not measured") == 5
    assert (part.verdict, claims[1].verdict) == ("does not hold", "does not hold")


def test_phases_are_not_confused():
    walls = {(GRAPH, "forward"): 2.0, (GRAPH, "train"): 3.0, (TORCH, "forward"): 1.0, (TORCH, "train"): 6.0}
    rows = [measured_row(Time(label, FINE, phase, "cpu"), wall) for (label, phase), wall in walls.items()]
    claims = claims_of(rows)
    verdicts = [part.comparisons[0].measured.estimate for part in claims[2].parts[:3]]
    assert verdicts == [pytest.approx(value) for value in (2.0, 2.0, (6 / 1) / (3 / 2))]
    assert {time.phase for time in EVERY_TIME} == set(PHASES)
