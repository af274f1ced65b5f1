"""TensorFlow: every granularity and execution computes what the reference computes, in kernels' own layouts."""

from pathlib import Path

import pytest

import rnnbench
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.workload import parameter_count
from systems_helpers import LANGUAGE, SPEECH, job_for, not_verified, run_snippet, verdicts

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parent.parent / "docs"
ON_CPU = ["tensorflow/fine/*", "tensorflow/packed/*", "tensorflow/cell/*", "tensorflow/layer/*"]

#: What the first gradients leave behind, and whether the parameters are what they were.
ROUND_TRIP = """
import numpy as np
given, batches = load_inputs(job["inputs"])
told = framework.describe(job)
program = framework.build(job, given)

def same():
    found = program.parameters()
    return set(found) == set(given) and all(found[name].tobytes() == given[name].tobytes() for name in given)

answer = [same()]
fed = program.feed(program.stage(batches[0]))
first = program.gradients(fed)
answer.append(set(first) == set(given))
answer.append(same())
program.train(fed)
answer.append(not same())
answer += [int(program.parameter_count()), told["threads"], told["device"], program.device]
"""


@pytest.fixture
def tensorflow(environment_of):
    return environment_of("tensorflow")


def test_every_system_is_verified_on_words_and_each_way_of_looping_on_speech(tensorflow):
    loops = ["packed/eager", "packed/graph", "packed/xla-while", "cell/graph-while", "layer/graph"]
    plan = rnnbench.join_plans(
        rnnbench.make_plan(ON_CPU, [LANGUAGE], device="cpu"),
        rnnbench.make_plan([f"tensorflow/{system}" for system in loops], [SPEECH], device="cpu"),
    )
    assert not_verified(verdicts(plan)) == []


def test_products_in_bf16_are_verified(tensorflow):
    plan = rnnbench.make_plan(["tensorflow/packed/graph"], [LANGUAGE], device="cpu", precisions=["bf16"])
    found = verdicts(plan)
    assert not_verified(found) == []
    # Were they in fp32 after all, the error would be a thousand times smaller.
    assert max(one.worst.error for one in found.values()) > 1e-4


@pytest.mark.parametrize("system", ["fine/eager", "packed/graph", "cell/graph-while", "layer/graph"])
def test_parameters_come_back_to_the_bit(tensorflow, system, tmp_path):
    job = job_for(f"tensorflow/{system}", SPEECH, tmp_path, phase="train", threads=1)
    answer = run_snippet(tensorflow, job, ROUND_TRIP)
    assert answer == [True, True, True, True, parameter_count(parse_workload(SPEECH)), 1, "cpu", "cpu"]


RATES = """
framework.describe(job)
rates = framework.rates(job)
product, copy = rates["product"](64), rates["copy"](100)
written = copy().numpy()
negative = bool((written <= 0).all() and written.any())
answer = [product().dtype.name, list(product().shape), list(written.shape), negative]
rates["sync"](copy())
"""


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16")])
def test_the_machines_limit_is_measured_with_products_in_the_jobs_precision(tensorflow, tmp_path, precision, dtype):
    job = job_for("tensorflow/packed/graph", LANGUAGE, tmp_path, precision=precision, threads=1)
    # Only what was written anew has another sign: sharing memory would be no copy.
    assert run_snippet(tensorflow, job, RATES) == [dtype, [64, 64], [100], True]


def test_cudnn_and_tf32_are_declared_for_a_cpu():
    plan = rnnbench.make_plan(["tensorflow/*"], [LANGUAGE], device="cpu", precisions=["fp32", "tf32"])
    reasons = {(left.case.system, left.case.precision): left.reason for left in plan.left_out}
    assert reasons["tensorflow/stack/graph", "fp32"] == "cuDNN needs a CUDA device"
    assert "TF32" in reasons["tensorflow/packed/graph", "tf32"]


def test_the_published_gradient_of_the_second_block_kernel_is_still_wrong(tensorflow, tmp_path):
    """docs/findings.md says so. When this fails, TensorFlow has mended it: rewrite the finding."""
    job = job_for("tensorflow/layer/eager", LANGUAGE, tmp_path)
    program = (DOCS / "findings" / "block_lstm_v2.py").read_text(encoding="utf-8")
    snippet = f"exec({program!r})\nanswer = [float(error(registered_gradient(loss).numpy(), finite_differences(loss)))"
    first, second = run_snippet(tensorflow, job, f"{snippet} for loss in (loss_v1, loss_v2)]")
    assert first < 1e-3
    assert second > 0.1
