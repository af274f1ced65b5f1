"""JAX, the framework that is nothing but a folder: it computes what the reference computes, and says what it is."""

import json
import os
import subprocess

import pytest

import rnnbench
from conftest import REAL_CACHE
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.result import Launch, Limit
from rnnbench.domain.workload import parameter_count
from rnnbench.launch.job import workload_fields
from rnnbench.manifests import manifests
from rnnbench.paths import worker_package
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs

pytestmark = pytest.mark.slow

TINY = "ce-short[batch=3,hidden=4,steps=4]"
TINY_CTC = "bi-ctc-long[batch=3,hidden=4,labels=2,layers=2,shortest=5,steps=6]"

#: Run by the environment's interpreter. A training step gives its parameters' memory away, `gradients` must not.
ROUND_TRIP = """
import json, sys
from rnnbench_worker.loading import load_framework, load_inputs

job = json.load(sys.stdin)
framework = load_framework(job["folder"], "jax")
framework.describe(job)
given, batches = load_inputs(job["inputs"])

def same(found):
    assert set(found) == set(given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name

program = framework.build(job, given)
same(program.parameters())
assert set(program.gradients(program.feed(program.stage(batches[0])))) == set(given)
same(program.parameters())
print(program.parameter_count())
for _ in range(2):
    program.sync(program.train(program.feed(program.stage(batches[0]))))
# Results that are placed otherwise than what came in would have the second call compile again.
assert program._train._cache_size() == 1
"""


@pytest.fixture
def jax(private_folders, monkeypatch):
    """The JAX environment from the shared cache, created there when it is missing."""
    from rnnbench.environments.registry import resolve
    from rnnbench.environments.spec import parse_spec

    monkeypatch.setenv("XDG_CACHE_HOME", str(REAL_CACHE))
    return resolve(parse_spec("jax"), create_missing=True)


def verify(systems, workloads):
    plan = rnnbench.make_plan(systems, workloads, device="cpu")
    found = rnnbench.verify_plan(plan, use_cache=False).verifications
    assert len(found) == len(plan.cases)
    assert {one.case.phase for one in found} == {"forward", "train"}
    assert [f"{one.case.key}: {one.reason}" for one in found if one.verdict != "verified"] == []


def test_both_granularities_are_verified_on_whole_stacks(jax):
    verify(["jax/*/jit-scan"], ["ce-short", "ptb-lm", "bi-ctc-long"])


def test_every_other_execution_is_verified(jax):
    # Fewer layers: unrolled over time, eight directions take XLA minutes to compile.
    systems = ["jax/packed/eager", "jax/packed/jit-unrolled", "jax/packed/jit-scan-unroll8"]
    verify(systems, ["ce-short", "ptb-lm[layers=1]", "bi-ctc-long[layers=1]"])


@pytest.mark.parametrize("granularity", ["fine", "packed"])
def test_parameters_come_back_to_the_bit_and_a_step_is_compiled_once(jax, granularity, tmp_path):
    workload = parse_workload(TINY_CTC)
    write_inputs(tmp_path / "inputs.npz", make_parameters(workload), make_batches(workload, 1))
    job = {
        "folder": str(manifests()["jax"].path),
        "inputs": str(tmp_path / "inputs.npz"),
        "workload": workload_fields(workload),
        "granularity": granularity,
        "execution": "jit-scan",
        "phase": "train",
        "device": "cpu",
        "precision": "fp32",
        "threads": 1,
        "cpus": [],
    }
    done = subprocess.run(
        [jax.python, "-c", ROUND_TRIP],
        input=json.dumps(job),
        env={**os.environ, "PYTHONPATH": str(worker_package().parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == parameter_count(workload)


def test_a_run_records_versions_and_threads(jax):
    plan = rnnbench.make_plan(["jax/packed/jit-scan"], [TINY], device="cpu", phases=["train"])
    results = rnnbench.run_plan(plan, "run", effort="quick", sample_seconds=0.05, warm_seconds=0.05, threads=1)
    assert [row.status for row in results.rows] == ["verified"]
    (launch,) = [record for record in results.contents.records if isinstance(record, Launch)]
    assert launch.threads == 1
    assert launch.versions["jax"] == manifests()["jax"].version
    assert set(launch.versions) == {"jax", "jaxlib", "optax", "python"}
    (limit,) = [record for record in results.contents.records if isinstance(record, Limit)]
    assert (limit.outcome, limit.reason, limit.threads) == ("ok", "", 1)
    assert limit.flops_per_s > limit.bytes_per_s > 1e8
    assert results.rows[0].limit_share > 0


RATES = """
import json, sys
from rnnbench_worker.loading import load_framework

job = json.load(sys.stdin)
framework = load_framework(job["folder"], "jax")
framework.describe(job)
rates = framework.rates(job)
product, copy = rates["product"](64), rates["copy"](100)
first, second = product(), copy()
assert float(second.sum()) == -100
rates["sync"]((first, copy()))
print(first.dtype, *first.shape, float(first.std()) > 0)
"""


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16")])
def test_the_machines_limit_is_measured_with_products_in_the_jobs_precision_and_copies(jax, precision, dtype):
    job = {"folder": str(manifests()["jax"].path), "device": "cpu", "precision": precision, "threads": 1, "cpus": []}
    done = subprocess.run(
        [jax.python, "-c", RATES],
        input=json.dumps(job),
        env={**os.environ, "PYTHONPATH": str(worker_package().parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [dtype, "64", "64", "True"]


def test_a_cpu_has_no_tf32(jax):
    plan = rnnbench.make_plan(["jax/*"], [TINY], device="cpu", precisions=["tf32"])
    assert plan.cases == ()
    assert {left.reason for left in plan.left_out} == {"TF32 is a mode of NVIDIA's tensor cores; a CPU has none"}
