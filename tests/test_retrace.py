"""What a new batch size and a new length cost: builds are counted where possible, and programs rebuilt where needed."""

from pathlib import Path

import pytest

import rnnbench
from profile_world import WORKLOAD, shapes  # noqa: F401  a fixture
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.profile import Reshape
from rnnbench.launch.job import resolve_case
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.method import make_method
from rnnbench.profile import launch_retrace, with_new_shape


def retraces(systems, workload, place, phases=("forward",), **method):
    """(system, phase) -> what a new batch size and a new length did."""
    plan = rnnbench.make_plan(systems, [workload], phases=phases, device="cpu")
    ready = prepare(plan, Listener())
    found = {}
    for case in ready.cases:
        resolved = resolve_case(case, plan.workloads, plan.systems, ready.environments)
        retrace = launch_retrace(resolved, make_method(threads=1, **method), Path(place))
        assert retrace.outcome == "ok", (case.system, retrace.reason, retrace.log_tail)
        found[case.system, case.phase] = (retrace.of("batch"), retrace.of("steps"))
    return found


def outcomes(found):
    return {system: (batch.outcome, steps.outcome) for (system, _), (batch, steps) in found.items()}


# --- the arithmetic -------------------------------------------------------------------------------------------


def new(*calls, **fields):
    return Reshape(**{"change": "batch", "outcome": "rebuilt", "calls": calls, **fields})


def test_the_cost_is_what_the_first_call_took_beyond_a_warm_one():
    assert new(5.0, 1.2, 1.0, 1.1, built=(1, 1, 1, 1)).cost_s == pytest.approx(4.0)
    assert new(0.9, 1.0, built=(0, 0)).cost_s == 0.0


def test_calls_count_up_to_the_last_in_which_something_was_built():
    assert new(5.0, 3.0, 1.0, built=(1, 2, 2)).cost_s == pytest.approx(4.0 + 2.0)
    assert new(5.0, 3.0, 1.0, built=(1, 1, 1)).cost_s == pytest.approx(4.0)


def test_where_nobody_counts_a_call_twice_as_long_was_not_warm():
    assert new(2.0, 8.0, 1.1, 1.0).cost_s == pytest.approx(1.0 + 7.0)


def test_a_new_program_costs_its_building_too():
    assert new(2.0, 1.0, build_s=3.0).cost_s == pytest.approx(4.0)


@pytest.mark.parametrize("fields", [{"calls": (1.0,)}, {"calls": (1.0, -1.0)}, {"calls": (1.0, 1.0), "built": (1,)}])
def test_impossible_calls_are_refused(fields):
    with pytest.raises(ValueError, match=r"a new shape|must be counted"):
        new(**fields)


def test_a_new_shape_is_one_sequence_or_one_step_more():
    workload = parse_workload("ptb-lm")
    assert (with_new_shape(workload, "batch").batch, with_new_shape(workload, "batch").steps) == (129, 50)
    assert (with_new_shape(workload, "steps").batch, with_new_shape(workload, "steps").steps) == (128, 51)


# --- programs that are made up --------------------------------------------------------------------------------


def test_every_answer_to_a_new_shape_is_distinguished(shapes):  # noqa: F811
    names = ("kept", "growing", "late", "uncounted", "baked", "fixed")
    found = retraces([f"shapes/packed/{name}" for name in names], WORKLOAD, shapes, ("forward", "train"))
    for phase in ("forward", "train"):
        told = {name: [one.outcome for one in found[f"shapes/packed/{name}", phase]] for name in names}
        assert told == {
            "kept": ["kept", "kept"],
            "growing": ["rebuilt", "rebuilt"],
            "late": ["rebuilt", "rebuilt"],
            "uncounted": ["uncounted", "uncounted"],
            # Its counter shows no build. Only its wrong numbers show that the length is baked in.
            "baked": ["kept", "anew"],
            "fixed": ["anew", "anew"],
        }, phase
    batch, _ = found["shapes/packed/late", "train"]
    assert batch.built == (0, 1, 1, 1)
    batch, _ = found["shapes/packed/fixed", "forward"]
    assert batch.reason == "ValueError: made for (3, 4) … not for (4, 4)"
    assert "loss off by" in found["shapes/packed/baked", "train"][1].reason


# --- real frameworks ------------------------------------------------------------------------------------------

TINY = "ptb-lm[batch=3,embedding=5,hidden=4,layers=1,steps=4,vocabulary=11]"


def test_pytorch(pytorch, tmp_path):
    found = retraces(["pytorch/packed/eager", "pytorch/packed/script", "pytorch/packed/trace"], TINY, tmp_path)
    assert outcomes(found) == {
        "pytorch/packed/eager": ("kept", "kept"),
        "pytorch/packed/script": ("uncounted", "uncounted"),
        # Tracing bakes the number of steps in.
        "pytorch/packed/trace": ("uncounted", "anew"),
    }


@pytest.mark.slow
def test_compiled_pytorch_is_compiled_again(pytorch, tmp_path):
    found = retraces(["pytorch/packed/compile"], TINY, tmp_path)
    batch, steps = found["pytorch/packed/compile", "forward"]
    assert (batch.outcome, steps.outcome) == ("rebuilt", "rebuilt")
    assert (batch.builds, steps.builds) == (1, 1)


def test_tensorflow(environment_of, tmp_path):
    environment_of("tensorflow")
    found = retraces(["tensorflow/packed/eager", "tensorflow/packed/graph-while"], TINY, tmp_path)
    assert outcomes(found) == {
        "tensorflow/packed/eager": ("kept", "kept"),
        "tensorflow/packed/graph-while": ("rebuilt", "rebuilt"),
    }
    assert [one.builds for one in found["tensorflow/packed/graph-while", "forward"]] == [1, 1]


def test_jax(environment_of, tmp_path):
    environment_of("jax")
    found = retraces(["jax/packed/jit-scan"], TINY, tmp_path, ("train",))
    batch, steps = found["jax/packed/jit-scan", "train"]
    assert (batch.outcome, steps.outcome) == ("rebuilt", "rebuilt")
    assert batch.built[0] == batch.built[-1] >= 1  # at the first call, and not later


def test_engines_take_the_shape_they_were_exported_with(environment_of, tmp_path):
    environment_of("onnxruntime")
    found = retraces(["onnxruntime/stack/session"], TINY, tmp_path)
    assert outcomes(found) == {"onnxruntime/stack/session": ("anew", "anew")}
