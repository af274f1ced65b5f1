"""Old versions of PyTorch and TensorFlow, from the source that serves today's: right, or declared with the reason.

Run by `make test-historic`. A version whose interpreter this machine lacks is skipped with the command that provides
one; of the versions that only add to the picture, those are tested that somebody has created.
"""

import pytest

import rnnbench
from historic_helpers import environment_or_skip, why_not
from rnnbench.environments.create import create, make_all
from rnnbench.environments.registry import find
from rnnbench.environments.spec import parse_spec
from systems_helpers import LANGUAGE, SPEECH, job_for, not_verified, run_snippet, verdicts

pytestmark = [pytest.mark.historic, pytest.mark.slow]

#: Created where they are missing, a minute each.
MADE = ("pytorch==1.0.0", "pytorch==1.3.1", "tensorflow==2.0.0")
#: Larger: tested where they are.
FOUND = ("pytorch==1.8.1", "pytorch==1.12.1", "pytorch==2.0.1", "tensorflow==2.8.4")
OLD_PYTORCH = [name for name in (*MADE, *FOUND) if name.startswith("pytorch")]
OLD_TENSORFLOW = [name for name in (*MADE, *FOUND) if name.startswith("tensorflow")]


@pytest.fixture
def old(environment_of):
    """The environment of an old version, or a skipped test that says why."""

    def find_or_make(name):
        if name in FOUND and find(parse_spec(name)) is None:
            pytest.skip(f"{name} is not here, and large: `rnnbench env create {name}` makes it")
        if name in MADE:  # all at once: that is quicker
            specs = [parse_spec(one) for one in MADE]
            make_all([one for one in specs if find(one) is None and not why_not(one)], create)
        return environment_or_skip(name, environment_of)

    return find_or_make


def plan_of(name, systems, **options):
    version = name.partition("==")[2]
    return rnnbench.make_plan(systems, [LANGUAGE, SPEECH], versions=[version], device="cpu", **options)


@pytest.mark.parametrize("name", OLD_PYTORCH)
def test_every_system_of_an_old_pytorch_is_right_on_words_and_on_speech(old, name):
    old(name)
    # What takes minutes to trace or compile is for `rnnbench verify`.
    traced = ["pytorch/packed/trace"] if name in MADE else []
    plan = plan_of(name, ["pytorch/*/eager", "pytorch/*/script", *traced])
    assert {case.system for case in plan.cases} >= {
        f"pytorch/{one}/eager" for one in ("fine", "packed", "cell", "stack")
    }
    assert not_verified(verdicts(plan)) == []


@pytest.mark.parametrize("name", OLD_TENSORFLOW)
def test_every_system_of_an_old_tensorflow_is_right_on_words_and_on_speech(old, name):
    old(name)
    unrolled = ["tensorflow/*/graph"] if name in MADE else []
    plan = plan_of(name, ["tensorflow/*/eager", "tensorflow/*/graph-while", *unrolled])
    assert len(plan.cases) == (11 if unrolled else 7) * 2 * 2
    assert not_verified(verdicts(plan)) == []


def test_what_a_version_lacks_is_declared_for_it_and_for_no_later_one(pretend_processor):
    pretend_processor("x86_64")

    def lacking(*versions):
        plan = rnnbench.make_plan(["pytorch/*"], [LANGUAGE], versions=versions, phases=["train"], device="cpu")
        return {left.case.system.removeprefix("pytorch/"): left.reason for left in plan.left_out}

    first, third, today = lacking("1.0.0"), lacking("1.3.1"), lacking("2.13.0")
    assert first["fine/script"] == "torch.jit.script takes modules from 1.2 on"
    assert "fine/script" not in third
    assert first["packed/compile"] == third["packed/compile"] == "torch.compile came in 2.0"
    assert lacking("1.12.1")["fine/script"].startswith("TorchScript of 1.12 to 2.0 fails")
    captured = [f"{one}/cudagraph" for one in ("fine", "packed", "cell", "stack")]
    captured += [f"{one}/rnnfuse-cudagraph" for one in ("fine", "packed")]
    assert set(today) == set(captured)


#: A gradient as small as epsilon: there it matters on which side of the correction epsilon is added.
ADAM = """
framework.describe(job)
import torch
from rnnbench_systems_pytorch.compat import Adam
weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
optimiser = Adam([weight], lr=1.0, betas=(0.9, 0.999), eps=1e-8)
for _ in range(2):
    weight.grad = torch.full_like(weight, 1e-8)
    optimiser.step()
answer = [float(weight), torch.__version__]
"""


@pytest.mark.parametrize("name", ["pytorch==1.0.0", "pytorch==1.3.1"])
def test_adam_is_the_published_one_in_every_version(old, name, tmp_path):
    """Two steps of 1e-8 / (1e-8 + 1e-8). Left as it was before 1.3, the first alone would be 0.03."""
    environment = old(name)
    moved, version = run_snippet(environment, job_for("pytorch/stack/eager", LANGUAGE, tmp_path), ADAM)
    assert version == name.partition("==")[2]
    assert moved == pytest.approx(-1.0, rel=1e-6)


@pytest.mark.parametrize("name", ["pytorch==1.0.0", "pytorch==1.3.1", "tensorflow==2.0.0"])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_read_back_from_the_framework(old, name, threads, tmp_path, monkeypatch):
    environment = old(name)
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # as the driver sets them for a worker
        monkeypatch.setenv(variable, str(threads))
    system = {"pytorch": "pytorch/stack/eager", "tensorflow": "tensorflow/fine/eager"}[name.partition("==")[0]]
    job = job_for(system, LANGUAGE, tmp_path, threads=threads)
    assert run_snippet(environment, job, 'answer = framework.describe(job)["threads"]') == threads


def test_one_system_over_several_versions_is_run_resumed_shown_reported_and_put_in_order(old, call, tmp_path):
    """The commands of docs/history.md, on tiny shapes."""
    for name in ("pytorch==1.0.0", "pytorch==1.3.1"):
        old(name)
    old("pytorch")
    run = str(tmp_path / "run")
    versions = "1.0.0,1.3.1,2.13.0"
    answer = call(
        "run", "pytorch/stack/eager", "-w", SPEECH, "--phase", "train", "--device", "cpu", "--versions", versions,
        "--effort", "quick", "--launches", "1", "--threads", "1", "--out", run,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    lines = (tmp_path / "run" / "launches.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not ('"launch"' in line and "pytorch-1.3.1" in line)]
    assert len(kept) == len(lines) - 1
    (tmp_path / "run" / "launches.jsonl").write_text("".join(kept))  # as if it had been killed before that one
    limits = [line for line in lines if '"kind":"limit"' in line]  # the machine's, seen from each version
    assert len(limits) == 3
    assert all('"outcome":"ok"' in line for line in limits)
    assert call("run", "--resume", run).code == 0
    for version in versions.split(","):
        assert f"pytorch/stack/eager @ pytorch-{version}" in call("show", run).out
    (line,) = call("history", run, "--json").json["lines"]
    assert [point["version"].partition("+")[0] for point in line["points"]] == versions.split(",")
    assert all(point["status"] == "verified" and point["ratio"] > 0 for point in line["points"])
    assert call("report", run, "--out", str(tmp_path / "report"), "--format", "md,svg").code == 0
    assert list((tmp_path / "report" / "charts").glob("history-*.svg"))


def test_a_version_that_was_never_offered_ends_with_2(call):
    answer = call("run", "pytorch/stack/eager", "-w", SPEECH, "--device", "cpu", "--versions", "0.4.0", "--dry-run")
    assert answer.code == 2
    assert "the requirements of PyTorch 0.4.0 are unknown" in answer.err
