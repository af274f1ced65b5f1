"""From a selection to cases: what is selected, what is left out and why, and which environment would run it."""

import random

import msgspec
import pytest

import rnnbench
from made_up import make_system
from rnnbench import manifests
from rnnbench import plan as planning
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.run import Gpu
from rnnbench.domain.system import Unsupported, satisfies, version_key
from rnnbench.errors import UserError
from rnnbench.plan import Selection, join_plans, make_plan, pick_device, select_systems

TOY = """
framework = "toy"
title = "Toy"
package = "toy-lib"
version = "1.5.0"

[[requirements]]
python = ">=3.11"
cpu = ["toy-lib=={version}", "numpy"]
cuda = ["toy-lib-cuda=={version}", "numpy"]

[[system]]
granularity = "fine"
execution = "eager"
description = "Offers everything."
headline = true

[[system]]
granularity = "fine"
execution = "script"
description = "Offers everything, too."

[[system]]
granularity = "packed"
execution = "eager"
description = "Offers the least."
phases = ["forward"]
devices = ["cpu"]
precisions = ["fp32", "bf16"]

[[system]]
granularity = "packed"
execution = "compile"
description = "Starts other programs."
tools = ["sh", "no-such-compiler|nor-this-one"]

[[system]]
granularity = "packed"
execution = "build"
description = "Starts one of two programs."
tools = ["no-such-compiler|sh"]

[[unsupported]]
system = "fine/script"
loss = "ctc"
reason = "no CTC in a script"

[[unsupported]]
system = "fine/script"
versions = "<1.4"
reason = "scripts came with 1.4"
"""

CPU = {"device": "cpu", "precisions": ("fp32",)}


@pytest.fixture
def toy(private_folders, monkeypatch):
    """A framework that is declared but not installed."""
    folder = private_folders / "systems" / "toy"
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(TOY)
    monkeypatch.setenv("RNNBENCH_SYSTEMS", str(private_folders / "systems"))
    return folder


def select(*systems, workloads=("ce-short",), **fields):
    chosen = tuple(CATALOG[name] for name in workloads)
    return make_plan(Selection(**{"systems": systems, "workloads": chosen, **CPU, **fields}))


def systems_of(plan):
    return sorted({case.system for case in plan.cases})


def reasons(plan):
    return {(left.case.system, left.case.phase, left.case.precision): left.reason for left in plan.left_out}


# --- names --------------------------------------------------------------------------------------------


def test_a_glob_chooses_by_the_whole_name(toy):
    assert systems_of(select("toy/*/eager")) == ["toy/fine/eager", "toy/packed/eager"]
    assert systems_of(select("toy/fine/*")) == ["toy/fine/eager", "toy/fine/script"]
    assert systems_of(select("t?y/*/[s]crip?")) == ["toy/fine/script"]
    with pytest.raises(UserError, match="no system matches 'toy'"):
        select("toy")


def test_several_patterns_select_together_and_nothing_twice(toy):
    plan = select("toy/fine/*", "toy/*/eager", phases=("forward",))
    assert [case.system for case in plan.cases] == ["toy/fine/eager", "toy/fine/script", "toy/packed/eager"]


def test_no_pattern_chooses_everything(toy):
    everything = {system.name for system in select_systems(())}
    assert {"toy/fine/eager", "toy/packed/compile", "pytorch/stack/eager"} <= everything


def test_an_unknown_name_is_answered_with_the_nearest_ones(toy):
    with pytest.raises(UserError) as caught:
        select("toy/fine/eager", "toy/fine/eagre")
    assert caught.value.what == "no system matches 'toy/fine/eagre'"
    assert caught.value.hint.startswith("nearest: toy/fine/eager")
    with pytest.raises(UserError, match=r"there are: .*pytorch/fine/eager.*toy/packed/build"):
        select("#")


def test_the_headline_is_a_few_systems_on_two_workloads(toy):
    plan = select("toy/*", workloads=(), headline=True)
    assert systems_of(plan) == ["toy/fine/eager"]
    assert list(plan.workloads) == ["ce-short", "ptb-lm[batch=32,steps=10]"]
    on_gpu = planning._default_workloads(headline=True, device="cuda")
    assert [workload.name for workload in on_gpu] == ["ce-short", "ptb-lm"]
    assert list(select("toy/*", headline=True).workloads) == ["ce-short"]  # named workloads take precedence
    with pytest.raises(UserError, match="all systems instead of the headline"):
        select("toy/packed/*", headline=True)


def test_no_workload_means_all_that_are_timed(toy):
    chosen = list(select("toy/fine/eager", workloads=()).workloads)
    assert chosen == [name for name in CATALOG if name != "elman-step"]


def test_the_single_step_is_left_to_the_systems_that_offer_it(toy):
    plan = select("toy/fine/eager", workloads=("elman-step",))
    assert plan.cases == ()
    assert {left.reason.partition(":")[0] for left in plan.left_out} == {"the single step only shows graphs"}


def test_the_plan_crosses_everything_once_workload_by_workload(toy):
    plan = select("toy/fine/*", workloads=("ce-short", "ptb-lm"), precisions=("fp32", "bf16"))
    assert len(plan.cases) == len(set(plan.cases)) == 2 * 2 * 2 * 2
    assert [case.workload for case in plan.cases] == ["ce-short"] * 8 + ["ptb-lm"] * 8
    assert {case.device for case in plan.cases} == {"cpu"}
    assert set(plan.systems) == {"toy/fine/eager", "toy/fine/script"}


def test_what_is_asked_for_twice_is_run_once(toy):
    once = select("toy/fine/*", workloads=("bi-ctc-long",))
    twice = select("toy/fine/*", workloads=("bi-ctc-long",) * 2, phases=("forward", "train", "train"))
    assert (twice.cases, twice.left_out) == (once.cases, once.left_out)


# --- what cannot be run ---------------------------------------------------------------------------------


def test_a_declared_gap_has_its_own_reason_and_touches_nothing_else(toy):
    plan = select("toy/fine/*", workloads=("bi-ctc-long", "ce-short"))
    assert set(reasons(plan).values()) == {"no CTC in a script"}
    assert {(left.case.system, left.case.workload) for left in plan.left_out} == {("toy/fine/script", "bi-ctc-long")}
    assert len(plan.cases) == 6


def test_what_a_system_does_not_offer_is_left_out_with_what_it_offers(toy):
    plan = select("toy/packed/eager", precisions=("fp32", "tf32"))
    assert reasons(plan) == {
        ("toy/packed/eager", "forward", "tf32"): "the system offers only precision fp32, bf16",
        ("toy/packed/eager", "train", "fp32"): "the system offers only phase forward",
        ("toy/packed/eager", "train", "tf32"): "the system offers only phase forward",
    }
    assert [(case.phase, case.precision) for case in plan.cases] == [("forward", "fp32")]


def test_a_device_that_is_not_offered_is_left_out(toy, monkeypatch):
    monkeypatch.setattr(planning, "find_gpus", lambda: (Gpu(name="one", driver="1", memory_mib=1),))
    plan = select("toy/packed/eager", device="cuda", phases=("forward",))
    assert set(reasons(plan).values()) == {"the system offers only device cpu"}


def test_a_program_that_is_missing_is_named_and_one_of_two_is_enough(toy):
    plan = select("toy/packed/compile", "toy/packed/build", phases=("forward",))
    assert set(reasons(plan).values()) == {"none of no-such-compiler, nor-this-one is on PATH"}
    assert systems_of(plan) == ["toy/packed/build"]


COVERED = {"phase": "train", "device": "cpu", "precision": "fp32", "version": "1.5.0", "workload": "bi-ctc-long"}

CONDITIONS = [
    ({}, True),
    ({"system": "fine/*"}, True),
    ({"system": "fine/script"}, False),
    ({"system": "toy/fine/eager"}, False),
    ({"phase": "train"}, True),
    ({"phase": "forward"}, False),
    ({"device": "cpu"}, True),
    ({"device": "cuda"}, False),
    ({"precision": "fp32"}, True),
    ({"precision": "tf32"}, False),
    ({"loss": "ctc"}, True),
    ({"loss": "cross-entropy"}, False),
    ({"bidirectional": True}, True),
    ({"bidirectional": False}, False),
    ({"variable_length": True}, True),
    ({"variable_length": False}, False),
    ({"versions": ">=1.4,<2"}, True),
    ({"versions": "<1.5"}, False),
    ({"phase": "train", "loss": "ctc", "versions": "==1.5"}, True),
    ({"phase": "train", "loss": "ctc", "versions": "==1.6"}, False),
    ({"phase": "forward", "loss": "ctc", "versions": "==1.5"}, False),
]


@pytest.mark.parametrize(("condition", "covered"), CONDITIONS)
def test_a_gap_covers_a_combination_when_every_condition_holds(condition, covered):
    workload = CATALOG[COVERED["workload"]]
    rest = {name: value for name, value in COVERED.items() if name != "workload"}
    gap = Unsupported(reason="because", **condition)
    assert gap.covers(make_system("toy/fine/eager"), workload, **rest) is covered


# --- versions -------------------------------------------------------------------------------------------


def test_several_versions_are_several_environments(toy):
    plan = select("toy/fine/*", phases=("forward",), versions=("1.3", "1.6"))
    assert {case.environment for case in plan.cases} == {"toy-1.3", "toy-1.6"}
    assert plan.specs["toy-1.3"].requirements == ("toy-lib==1.3", "numpy")
    # the gap is declared for the older version only
    assert [(left.case.environment, left.reason) for left in plan.left_out] == [("toy-1.3", "scripts came with 1.4")]


def test_two_spellings_of_a_version_are_one_environment(toy):
    plan = select("toy/fine/eager", phases=("forward",), versions=("1.5", "1.5.0"))
    assert [case.environment for case in plan.cases] == ["toy-1.5.0"]


def test_what_is_not_a_version_is_refused(toy):
    with pytest.raises(UserError, match="'latest' in 'toy==latest' is not a version"):
        select("toy/fine/eager", versions=("latest",))


def test_a_version_that_no_requirement_covers_is_refused_with_those_that_are(toy):
    text = (toy / "manifest.toml").read_text()
    (toy / "manifest.toml").write_text(text.replace('python = ">=3.11"', 'versions = ">=1.2"\npython = ">=3.11"'))
    manifests._read_all.cache_clear()
    with pytest.raises(UserError, match=r"requirements of Toy 0\.4\.0 are unknown") as caught:
        select("toy/fine/eager", versions=("0.4.0",))
    assert ">=1.2" in caught.value.hint


def test_a_version_may_be_for_one_framework_of_several(toy):
    plan = select("toy/fine/eager", "pytorch/stack/eager", versions=("toy==1.3", "toy==1.6"))
    assert {case.environment.partition("-")[0] for case in plan.cases} == {"toy", "pytorch"}
    assert {case.environment for case in plan.cases if case.framework == "toy"} == {"toy-1.3", "toy-1.6"}
    with pytest.raises(UserError, match="none of its systems is selected"):
        select("toy/fine/eager", versions=("pytorch==1.0.0",))


def test_without_an_interpreter_cases_are_left_out_with_a_command_that_installs_one(toy):
    text = (toy / "manifest.toml").read_text()
    old = '[[requirements]]\nversions = "<1.4"\npython = "==3.97"\ncpu = ["toy-lib=={version}", "numpy"]\n\n'
    (toy / "manifest.toml").write_text(text.replace("[[requirements]]", old + "[[requirements]]", 1))
    manifests._read_all.cache_clear()
    plan = select("toy/fine/*", phases=("forward",), versions=("1.3", "1.6"))
    assert {case.environment for case in plan.cases} == {"toy-1.6"}
    found = {left.case.system: left.reason for left in plan.left_out}
    assert found["toy/fine/script"] == "scripts came with 1.4"  # a declared gap is reported first
    assert found["toy/fine/eager"].startswith("no interpreter: no Python ==3.97")
    assert "pyenv install" in found["toy/fine/eager"]


def test_versions_are_ordered_as_releases_are():
    ordered = ["nightly", "1.8.0rc1", "1.8.0", "2.0.0.dev20240101", "2.11.0-used", "2.11.0+cu130", "2.13", "10.0"]
    shuffled = random.Random(0).sample(ordered, len(ordered))
    assert sorted(shuffled, key=version_key) == ordered
    assert version_key("2.13") == version_key("2.13.0")


@pytest.mark.parametrize(
    ("version", "requirement", "met"),
    [
        ("3.10.4", ">=3.10,<3.14", True),
        ("3.9.18", ">=3.10,<3.14", False),
        ("3.14.0", ">=3.10,<3.14", False),
        ("3.10", ">=3.10.0", True),
        ("3.10", ">3.10.0", False),
        ("3.10.1", ">3.10", True),
        ("3.10.1", "<=3.10", False),
        ("3.9", "<3.10", True),  # as numbers, not as text
        ("3.6.15", "==3.6", True),
        ("3.7.0", "==3.6", False),
        ("3.60", "==3.6", False),
        ("3.6.15", "!=3.6", False),
        ("3.7.0", "!=3.6", True),
        ("2.11.0+cu130", "==2.11.0", True),
        ("2.11.0", " >= 2.0 , < 3 ", True),
        ("2.11.0", "", True),
        ("2.11.0", ",", True),
        ("3.11.2", "~=3.10", True),
        ("2.0.0a0", ">=2.0.0", False),  # a pre-release is older than its release
        ("2.0.0a0", ">=1.9", True),
    ],
)
def test_a_version_meets_its_requirement_or_not(version, requirement, met):
    assert satisfies(version, requirement) is met


@pytest.mark.parametrize("requirement", ["3.10", ">=", "=>3.10", "latest", ">=3.10,latest", "<9,>=3,old"])
def test_a_requirement_that_cannot_be_read_is_refused_whatever_the_version(requirement):
    for version in ("0", "5", "99"):
        with pytest.raises(ValueError, match="cannot read the version requirement"):
            satisfies(version, requirement)


# --- devices --------------------------------------------------------------------------------------------


def test_auto_is_the_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setattr(planning, "find_gpus", lambda: (Gpu(name="one", driver="1", memory_mib=1),))
    assert (pick_device("auto"), pick_device("cuda"), pick_device("cpu")) == ("cuda", "cuda", "cpu")


def test_without_a_gpu_auto_is_the_cpu_and_cuda_is_refused(monkeypatch):
    monkeypatch.setattr(planning, "find_gpus", lambda: ())
    assert (pick_device("auto"), pick_device("cpu")) == ("cpu", "cpu")
    with pytest.raises(UserError, match="no CUDA device was found") as caught:
        pick_device("cuda")
    assert caught.value.hint == "choose the device cpu"
    with pytest.raises(UserError, match="allowed: cpu, cuda, auto"):
        pick_device("tpu")


def test_the_builds_for_cuda_have_separate_environments(toy, monkeypatch):
    monkeypatch.setattr(planning, "find_gpus", lambda: (Gpu(name="one", driver="1", memory_mib=1),))
    plan = select("toy/fine/eager", device="auto")
    assert {(case.device, case.environment) for case in plan.cases} == {("cuda", "toy-1.5.0-cuda")}
    assert plan.specs["toy-1.5.0-cuda"].requirements == ("toy-lib-cuda==1.5.0", "numpy")


# --- cost -----------------------------------------------------------------------------------------------


def test_an_interpreter_is_started_once_for_a_plan_not_once_for_every_case(sabotage, monkeypatch):
    from rnnbench.environments import external

    starts = []
    inspect = external.inspect_python
    counted = lambda *given, **more: starts.append(given) or inspect(*given, **more)  # noqa: E731
    monkeypatch.setattr(external, "inspect_python", counted)
    plan = rnnbench.make_plan(["sabotage/*"], ["ce-short", "ce-long"], device="cpu")
    assert len(plan.cases) > 50
    assert len(starts) == 1


def test_a_plan_can_be_stored_and_read_back(toy):
    plan = select("toy/*", workloads=("ce-short", "bi-ctc-long"))
    assert msgspec.json.decode(msgspec.json.encode(plan), type=planning.Plan) == plan


def test_plans_are_joined_without_repeating_what_they_share(toy):
    one = make_plan(Selection(systems=("toy/packed/*",), workloads=(CATALOG["ce-short"],), device="cpu"))
    other = make_plan(Selection(workloads=(CATALOG["ce-short"], CATALOG["ptb-lm"]), phases=("train",), device="cpu"))
    joined = join_plans(one, other, one)
    assert len(set(joined.cases)) == len(joined.cases)
    assert set(joined.cases) == {*one.cases, *other.cases}
    assert set(joined.workloads) == {"ce-short", "ptb-lm"}
    assert joined.systems == one.systems | other.systems


def test_a_headline_may_be_of_one_device_only():
    """On 2 cores, more rows would cost `make bench` its two minutes of reserve."""
    on_cpu, on_gpu = ({system.name for system in planning.select_systems((), device)} for device in ("cpu", "cuda"))
    assert on_cpu - on_gpu == {"pytorch/fine/rnnfuse", "tensorflow/fine/graph-while"}
    captured = {f"pytorch/{one}" for one in ("packed/cudagraph", "cell/cudagraph", "stack/cudagraph")}
    compiled = {"pytorch/fine/script", "pytorch/packed/compile-cell", "tensorflow/fine/graph", "tensorflow/layer/graph"}
    assert on_gpu - on_cpu == captured | compiled | {"pytorch/fine/rnnfuse-cudagraph"}
    assert {"pytorch/fine/eager", "pytorch/stack/eager", "tensorflow/fine/eager"} <= on_cpu & on_gpu
