"""PyTensor: three backends of one graph, a CTC loss of our own, and the threads of BLAS."""

import numpy as np
import pytest

import rnnbench
from jax_helpers import assert_same_jax
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.workload import parameter_count
from rnnbench.machine import allowed_cpus
from rnnbench.manifests import manifests
from rnnbench.reference.losses import negative_log_likelihood
from systems_helpers import SPEECH, job_for, not_verified, run_snippet, verdicts

pytestmark = pytest.mark.slow


@pytest.fixture
def pytensor(environment_of, keep_compiled):
    return environment_of("pytensor")


def test_every_backend_is_verified(pytensor):
    # C++ and Numba take minutes to compile a training step: that is left to `rnnbench verify`.
    plan = rnnbench.join_plans(
        rnnbench.make_plan(["pytensor/packed/scan-jax"], ["ptb-lm", "bi-ctc-long[layers=1]"], device="cpu"),
        rnnbench.make_plan(
            ["pytensor/packed/scan-c", "pytensor/packed/scan-numba"], ["ce-short"], device="cpu", phases=["forward"]
        ),
    )
    assert not_verified(verdicts(plan)) == []


# The same label twice, sequences that end early, one that just holds its labels and the blank between them.
CTC = """
import numpy as np
import pytensor
import pytensor.tensor as pt
from rnnbench_systems_pytensor.network import ctc

framework.describe(job)
logits = np.array(job["logits"], np.float32).swapaxes(0, 1)
labels, lengths = np.array(job["labels"], np.int32), np.array(job["lengths"], np.int32)
steps, batch, _ = logits.shape
sizes = {"batch": batch, "steps": steps, "labels": labels.shape[1]}
symbols = [pt.tensor(dtype=array.dtype, shape=array.shape) for array in (logits, lengths, labels)]
losses = ctc(sizes, *symbols)
both = pytensor.function(symbols, [losses, pytensor.grad(losses.sum(), symbols[0])], mode="JAX")
losses, gradient = [np.array(one) for one in both(logits, lengths, labels)]
answer = {"losses": losses.tolist(), "gradient": gradient.swapaxes(0, 1).tolist()}
"""


def test_our_ctc_is_that_of_the_reference(pytensor, tmp_path):
    logits = np.random.default_rng(0).uniform(-2, 2, (4, 7, 5))
    labels, lengths = np.array([[1, 1, 2], [3, 2, 1], [4, 4, 4], [2, 2, 1]]), np.array([7, 3, 5, 4])
    job = job_for("pytensor/packed/scan-jax", SPEECH, tmp_path)
    found = run_snippet(
        pytensor, {**job, "logits": logits.tolist(), "labels": labels.tolist(), "lengths": lengths.tolist()}, CTC
    )
    losses, gradient = negative_log_likelihood(logits, labels, lengths)
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-5)
    np.testing.assert_allclose(found["gradient"], gradient, atol=1e-5)


# A training step changes parameters and moments alike; `gradients` must leave both as they were.
ROUND_TRIP = """
framework.describe(job)
given, batches = load_inputs(job["inputs"])
program = framework.build(job, given)
staged = [program.stage(batch) for batch in batches]

def same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes(), name

same(program.parameters(), given)
first = program.gradients(staged[0])
same(program.parameters(), given)
program.sync(program.train(staged[0]))
trained = program.parameters()
program.gradients(staged[1])
same(program.parameters(), trained)
once = framework.build(job, given)
for batch in staged[:2]:
    once.sync(once.train(batch))
program.sync(program.train(staged[1]))
same(program.parameters(), once.parameters())
answer = program.parameter_count()
"""


def test_parameters_come_back_to_the_bit_and_gradients_leave_no_trace(pytensor, tmp_path):
    workload = "ce-short[batch=3,features=5,hidden=4,steps=4]"
    job = job_for("pytensor/packed/scan-jax", workload, tmp_path, phase="train")
    assert run_snippet(pytensor, job, ROUND_TRIP) == parameter_count(parse_workload(workload))


# The second product is large enough to be shared out: whoever worked on it has used up processor time.
THREADS = """
import numpy as np
hello = framework.describe(job)
a = np.ones((1500, 1500), np.float32)
kept = float(np.float32(1e-38) * np.float32(1e-3))

def ticks(task):
    fields = open("/proc/self/task/{}/stat".format(task)).read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])

def busy():
    return {task: ticks(task) for task in os.listdir("/proc/self/task")}

before = busy()
for _ in range(10):
    a @ a
worked = [task for task, spent in busy().items() if spent - before.get(task, 0) >= 5]
answer = {"threads": hello["threads"], "worked": len(worked), "kept": kept, "versions": hello["versions"]}
"""


@pytest.mark.parametrize("execution", ["scan-c", "scan-numba"])
def test_blas_works_with_the_threads_asked_for_and_denormals_are_flushed(pytensor, tmp_path, execution):
    job = job_for(f"pytensor/packed/{execution}", SPEECH, tmp_path, threads=1)
    found = run_snippet(pytensor, {**job, "cpus": []}, THREADS)
    assert found["threads"] == found["worked"] == 1
    assert found["kept"] == 0.0
    assert found["versions"]["pytensor"] == manifests()["pytensor"].version


@pytest.mark.skipif(len(allowed_cpus()) < 2, reason="needs two processors")
def test_blas_works_with_two_threads_and_denormals_are_kept_when_asked(pytensor, tmp_path):
    job = job_for("pytensor/packed/scan-c", SPEECH, tmp_path, threads=2, flush_denormals=False)
    found = run_snippet(pytensor, job, THREADS)
    assert found["threads"] == found["worked"] == 2
    assert found["kept"] > 0.0


def test_what_cannot_be_done_is_declared(pytensor):
    plan = rnnbench.make_plan(["pytensor/*"], [SPEECH], device="cpu", precisions=["bf16"])
    assert plan.cases == ()
    assert {left.reason for left in plan.left_out} == {"PyTensor has no bf16 type"}


def test_jax_is_the_same_one_as_everywhere():
    assert_same_jax("pytensor")
