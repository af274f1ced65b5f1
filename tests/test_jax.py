"""JAX: it computes what the reference computes, keeps parameters to the bit, and cuDNN's weights are laid out right."""

import numpy as np
import pytest

import rnnbench
from jax_helpers import reads_the_handle_itself, round_trip
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.result import Launch, Limit
from rnnbench.domain.workload import parameter_count
from rnnbench.manifests import manifests
from rnnbench.reference.inputs import make_batches, make_parameters
from rnnbench.verify.compare import compare
from systems_helpers import LANGUAGE, SPEECH, job_for, not_verified, run_snippet, verdicts

pytestmark = pytest.mark.slow

TINY = "ce-short[batch=3,hidden=4,steps=4]"


@pytest.fixture
def jax(environment_of):
    return environment_of("jax")


def test_both_granularities_are_verified_on_whole_stacks(jax):
    plan = rnnbench.make_plan(["jax/*/jit-scan"], ["ce-short", "ptb-lm", "bi-ctc-long"], device="cpu")
    assert not_verified(verdicts(plan)) == []


def test_every_other_execution_is_verified(jax):
    # Fewer layers: unrolled over time, eight directions take XLA minutes to compile.
    systems = ["jax/packed/eager", "jax/packed/jit-unrolled", "jax/packed/jit-scan-unroll8"]
    plan = rnnbench.make_plan(systems, ["ce-short", "ptb-lm[layers=1]", "bi-ctc-long[layers=1]"], device="cpu")
    assert not_verified(verdicts(plan)) == []


@pytest.mark.parametrize("granularity", ["fine", "packed"])
def test_parameters_come_back_to_the_bit_and_a_step_is_compiled_once(jax, granularity, tmp_path):
    found = round_trip(jax, f"jax/{granularity}/jit-scan", SPEECH, tmp_path)
    assert found == {"parameters": parameter_count(parse_workload(SPEECH)), "compiled": 1}


def test_reading_a_result_leaves_nothing_to_free_on_the_clock(jax, tmp_path):
    assert not reads_the_handle_itself(jax, "jax/packed/jit-scan", TINY, tmp_path)


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
    assert limit.products
    assert limit.copies
    assert results.rows[0].limit_share > 0


RATES = """
framework.describe(job)
rates = framework.rates(job)
product, copy = rates["product"](64), rates["copy"](100)
first, second = product(), copy()
assert float(second.sum()) == -100
rates["sync"]((first, copy()))
answer = [str(first.dtype), list(first.shape), float(first.std()) > 0]
"""


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", "float32"), ("bf16", "bfloat16")])
def test_the_machines_limit_is_measured_with_products_in_the_jobs_precision(jax, tmp_path, precision, dtype):
    job = job_for("jax/packed/jit-scan", TINY, tmp_path, precision=precision, threads=1)
    assert run_snippet(jax, job, RATES) == [dtype, [64, 64], True]


# cuDNN's place is taken by JAX's own reference of it, which reads the same flat weights on any device.
CUDNN = """
import numpy as np
from jax.experimental import rnn
from rnnbench_worker.verification import forward_arrays, train_arrays

def lstm(x, h_0, c_0, weights, seq_lengths, dropout, **shape):
    assert seq_lengths.dtype == "int32" and weights.shape == (rnn.get_num_params_in_lstm(**shape),)
    by_kind = rnn.unpack_lstm_weights(weights, **shape)
    sizes = [shape[name] for name in ("input_size", "hidden_size", "num_layers")]
    return rnn.lstm_ref(x, h_0, c_0, *by_kind, seq_lengths, *sizes, dropout, shape["bidirectional"])

rnn.lstm = lstm
framework.describe(job)
given, batches = load_inputs(job["inputs"])
program = framework.build(dict(job, granularity="stack", execution="jit"), given)
staged = [program.stage(batch) for batch in batches]
arrays = dict(forward_arrays(program, staged), **train_arrays(program, staged))
np.savez(os.path.join(os.path.dirname(job["inputs"]), "arrays.npz"), **arrays)
answer = program.parameter_count()
"""


CUDNN_SYSTEM = next(system for system in manifests()["jax"].system if system.name == "jax/stack/jit")


@pytest.mark.parametrize("name", [LANGUAGE, SPEECH], ids=["language", "speech"])
def test_the_weights_of_cudnn_mean_what_the_reference_means(jax, tmp_path, name):
    workload = parse_workload(name)
    job = job_for("jax/packed/jit-scan", name, tmp_path, phase="train")
    assert run_snippet(jax, job, CUDNN) == parameter_count(workload, biases=2)
    computed = dict(np.load(tmp_path / "arrays.npz"))
    given, batches = make_parameters(workload), make_batches(workload, 3)
    figures = [
        figure
        for phase in ("forward", "train")
        for figure in compare(workload, phase, "fp32", CUDNN_SYSTEM, given, batches, computed)
    ]
    assert len(figures) > 2 * len(given)
    assert [figure for figure in figures if not figure.passes] == []


# What jax.experimental.rnn makes of the process's precision, when none is named in the call.
TF32 = """
from jax.experimental import rnn

def allowed(precision):
    framework.describe(dict(job, precision=precision))
    return rnn._lstm_cudnn_allow_tf32(None)

answer = {precision: allowed(precision) for precision in ("fp32", "tf32")}
"""


def test_cudnn_may_take_tf32_for_tf32_alone(jax, tmp_path):
    assert run_snippet(jax, job_for("jax/packed/jit-scan", TINY, tmp_path), TF32) == {"fp32": False, "tf32": True}


def test_what_a_cpu_has_not_is_declared(jax):
    plan = rnnbench.make_plan(["jax/*"], [TINY], device="cpu", precisions=["tf32"])
    assert plan.cases == ()
    assert {left.reason for left in plan.left_out} == {"TF32 is a mode of NVIDIA's tensor cores; a CPU has none"}
    plan = rnnbench.make_plan(["jax/stack/jit"], [TINY], device="cpu")
    assert {left.reason for left in plan.left_out} == {"jax.experimental.rnn calls cuDNN, which needs a CUDA device"}
