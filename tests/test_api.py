"""rnnbench as a library: the documented example, typed results, and plain dicts for a data frame."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rnnbench
from rnnbench.analysis.row import Row
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.result import Launch
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener

TINY = "ce-short[batch=3,hidden=4,steps=4]"
HONEST = "sabotage/packed/honest"
DOCUMENTED = Path(__file__).parent.parent / "docs" / "api.md"


def test_the_documented_example_runs_as_it_is_written(sabotage):
    """The example, with the honest sabotage system on a tiny workload instead."""
    example = DOCUMENTED.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    for written, here in (
        ('"pytorch/stack/eager"', f'"{HONEST}"'),
        ('"pytorch/packed/*"', f'"{HONEST}*"'),
        ("ce-short[batch=8,steps=20]", TINY),
        ('effort="quick"', 'effort="quick", protocol="2019"'),
    ):
        assert written in example
        example = example.replace(written, here)
    names = {}
    exec(example, names)
    assert names["best"].system == HONEST
    assert [row["system"] for row in names["rows"]] == [HONEST]


def test_a_speed_that_tests_pretend_is_not_remembered_of_the_machine(sabotage):
    plan = rnnbench.make_plan([HONEST], [TINY], phases=["forward"], device="cpu")
    rnnbench.run_plan(plan, "run", effort="quick", verify=False)
    assert not list(sabotage.glob("cache/rnnbench/probes/*"))


def test_the_functions_are_there_whatever_else_was_imported():
    """Importing a submodule sets its name in the package: none may hide a function."""
    code = """
import importlib, json, pkgutil, rnnbench
for module in pkgutil.walk_packages(rnnbench.__path__, "rnnbench."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps({name: callable(getattr(rnnbench, name)) for name in rnnbench.__all__}))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == dict.fromkeys(
        [
            *("Results", "analyse_runs", "check_run", "compare_runs", "join_plans", "load_run", "make_plan"),
            *("plan_cell", "run_plan", "try_abilities", "verify_plan", "version_history"),
        ],
        True,
    )


def test_a_name_that_is_not_there_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="no attribute 'run_everything'"):
        _ = rnnbench.run_everything


def test_a_plan_takes_workloads_by_name_or_as_objects(sabotage):
    by_name = rnnbench.make_plan([HONEST], [TINY], device="cpu")
    assert by_name == rnnbench.make_plan([HONEST], [parse_workload(TINY)], device="cpu")
    assert [(case.workload, case.phase) for case in by_name.cases] == [(TINY, "forward"), (TINY, "train")]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"systems": ["sabotage/packed/honst"]}, "nearest: sabotage/packed/honest"),
        ({"workloads": ["ce-shrt"]}, "nearest: ce-short"),
        ({"phases": ["backward"]}, "allowed: forward, train"),
        ({"precisions": ["fp64"]}, "allowed: fp32, tf32, bf16"),
        ({"device": "tpu"}, "allowed: cpu, cuda, auto"),
        ({"versions": ["latest"]}, "is not a version"),
    ],
)
def test_bad_input_is_a_user_error_that_says_what_is_allowed(sabotage, bad, said):
    good = {"systems": [HONEST], "workloads": [TINY], "device": "cpu"}
    with pytest.raises(UserError) as caught:
        rnnbench.make_plan(**{**good, **bad})
    assert said in str(caught.value)


def test_a_run_is_typed_is_the_same_when_loaded_and_fits_a_data_frame(sabotage):
    heard = []

    class Ear(Listener):
        def launched(self, launch):
            heard.append(launch)

    plan = rnnbench.make_plan([HONEST, "sabotage/packed/crash"], [TINY], phases=["forward"], device="cpu")
    results = rnnbench.run_plan(plan, "run", listener=Ear(), effort="quick", protocol="2019", verify=False)
    assert all(isinstance(row, Row) for row in results.rows)
    assert {row.execution: row.status for row in results.rows} == {"honest": "unverified", "crash": "failed"}
    assert [record for record in results.contents.records if isinstance(record, Launch)] == heard
    loaded = rnnbench.load_run(sabotage / "run")
    assert loaded.rows == results.rows
    dicts = loaded.to_dicts()
    assert len({tuple(one) for one in dicts}) == 1  # the same columns for every row
    assert all(isinstance(value, str | int | float | bool | None) for one in dicts for value in one.values())
    json.dumps(dicts)


def test_a_folder_is_not_run_into_twice(sabotage):
    plan = rnnbench.make_plan([HONEST], [TINY], phases=["forward"], device="cpu")
    (sabotage / "run").mkdir()
    (sabotage / "run" / "something").touch()
    with pytest.raises(UserError, match="not an empty folder"):
        rnnbench.run_plan(plan, "run")


def test_verification_gives_every_figure(sabotage):
    plan = rnnbench.make_plan([HONEST], [TINY], device="cpu")
    forward, train = rnnbench.verify_plan(plan).verifications
    assert (forward.verdict, train.verdict) == ("verified", "verified")
    assert {figure.quantity for figure in forward.figures} == {"logits of batch 0", "logits of batch 1"}
    quantities = {figure.quantity for figure in train.figures}
    assert {"loss of batch 2", "gradient of layer0.fwd.u", "head.w after 3 updates"} <= quantities


def test_a_run_can_be_compared_and_checked(sabotage):
    plan = rnnbench.make_plan([HONEST], [TINY], phases=["train"], device="cpu")
    results = rnnbench.run_plan(plan, "run", effort="quick", protocol="2019")
    comparison = rnnbench.compare_runs(results, rnnbench.load_run("run"), across=["environment"])
    assert [case.verdict for case in comparison.cases] == ["no difference seen"]
    assert "problem" in {finding.level for finding in rnnbench.check_run(results)}  # one launch is too few
    with pytest.raises(UserError, match="across cannot contain 'weather'"):
        rnnbench.compare_runs(results, results, across=["weather"])


# --- errors speak of arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"phases": ["backward"]}, "phases cannot contain 'backward'"),
        ({"precisions": ["fp64"]}, "precisions cannot contain 'fp64'"),
        ({"device": "tpu"}, "'tpu' is not a device"),
        ({"device": "cuda"}, "choose the device cpu"),
    ],
)
def test_a_wrong_argument_is_named(private_folders, monkeypatch, arguments, said):
    monkeypatch.setattr("rnnbench.plan.find_gpus", lambda: ())
    with pytest.raises(UserError) as caught:
        rnnbench.make_plan(["pytorch/stack/eager"], ["ce-short"], **arguments)
    assert said in str(caught.value)
    assert "--" not in str(caught.value)  # options are the command line's


def test_a_folder_that_is_taken_is_refused_in_words_that_fit_a_function(private_folders):
    (private_folders / "taken" / "something").mkdir(parents=True)
    plan = rnnbench.make_plan(
        "pytorch/stack/eager", "ce-short[batch=1,steps=1]", device="cpu"
    )  # one name is a list of one
    with pytest.raises(UserError) as caught:
        rnnbench.run_plan(plan, "taken")
    assert caught.value.what == "taken is not an empty folder"
    assert "--out" not in str(caught.value)
