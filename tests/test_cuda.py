"""On a GPU: rows right in every precision, fp32 really fp32, the device's clock and the host's in agreement.

Run it where there is one: `pytest tests/test_cuda.py`. Frameworks that have no CUDA environment are skipped.
"""

import pytest

import rnnbench
import rnnbench_cells
from rnnbench.abilities import try_abilities
from rnnbench.domain.result import Launch
from rnnbench.environments.registry import resolve
from rnnbench.environments.spec import parse_spec
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener
from rnnbench.machine import find_gpus
from rnnbench.method import make_method
from rnnbench.verify.compare import TOLERANCES
from systems_helpers import SPEECH, job_for, run_snippet

pytestmark = pytest.mark.skipif(not find_gpus(), reason="no CUDA device")

LANGUAGE = "ptb-lm[batch=16,hidden=128,embedding=128]"
#: One row of each way to a matrix product: the library's, cuDNN's, a compiler's own kernels.
ROWS = {
    "pytorch": ["pytorch/fine/eager", "pytorch/packed/script", "pytorch/stack/eager", "pytorch/stack/cudagraph"],
    "jax": ["jax/fine/jit-scan", "jax/packed/jit-scan", "jax/stack/jit"],
    "flax": ["flax/cell/jit-scan"],
    "equinox": ["equinox/cell/jit-scan"],
    "keras-torch": ["keras-torch/layer/eager"],
    "keras-jax": ["keras-jax/layer/jit"],
    "tensorflow": ["tensorflow/packed/graph", "tensorflow/packed/xla-while", "tensorflow/stack/graph"],
    # Not layer/graph: its Adam is wrong on these words, with or without a GPU (docs/findings.md).
    "keras-tensorflow": ["keras-tensorflow/layer/graph-dense"],
}


def resolve_or_skip(framework):
    """The environment of a framework that this machine has for CUDA; nothing is created for it."""
    try:
        return resolve(parse_spec(framework, "cuda"), create_missing=False)
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(params=ROWS)
def rows(request):
    resolve_or_skip(request.param)
    return ROWS[request.param]


def errors(rows, precision):
    """The largest error of each row's training, and whether it was found right at that precision."""
    plan = rnnbench.make_plan(rows, ["ptb-lm"], phases=["train"], device="cuda", precisions=[precision])
    session = rnnbench.verify_plan(plan, use_cache=False)
    assert len(session.verifications) == len(rows)
    for one in session.verifications:
        assert one.verdict == "verified", f"{one.case.system} {precision}: {one.reason}"
    return {
        one.case.system: max(figure.error for figure in one.figures if figure.tolerance == TOLERANCES[precision])
        for one in session.verifications
    }


def test_fp32_is_fp32_and_would_be_found_wrong_with_tf32_on(rows):
    """TF32 leaves an error that fp32's tolerance does not let pass: a row that had it on could not be verified."""
    fp32, tf32 = errors(rows, "fp32"), errors(rows, "tf32")
    for system in rows:
        assert fp32[system] < TOLERANCES["fp32"] / 10
        assert tf32[system] > TOLERANCES["fp32"], f"{system}: TF32 left an error of only {tf32[system]:.1e}"


#: cuDNN's real operators, as TensorFlow has them: the flat weights have the size that cuDNN asks for, and come back.
FLAT_WEIGHTS = """
import numpy as np
import tensorflow as tf
given, batches = load_inputs(job["inputs"])
framework.describe(job)
program = framework.build(job, given)
workload = job["workload"]
with tf.device("/GPU:0"):
    size = tf.raw_ops.CudnnRNNParamsSize(
        num_layers=workload["layers"], num_units=workload["hidden"], input_size=workload["input_width"],
        T=tf.float32, S=tf.int32, rnn_mode="lstm", input_mode="linear_input",
        direction="bidirectional" if len(workload["directions"]) == 2 else "unidirectional",
    )
found = program.parameters()
same = all(found[name].tobytes() == given[name].tobytes() for name in given)
answer = [int(size[0]) == program._network.from_canonical(given)["stack"]["stack"][0].size, same]
"""


@pytest.mark.parametrize("workload", [LANGUAGE, SPEECH])
def test_cudnns_flat_weights_have_its_own_size_and_come_back(workload, tmp_path):
    environment = resolve_or_skip("tensorflow")
    job = {**job_for("tensorflow/packed/graph", workload, tmp_path, phase="train"), "device": "cuda"}
    assert run_snippet(environment, {**job, "granularity": "stack"}, FLAT_WEIGHTS) == [True, True]


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_tensorflows_cudnn_rows_are_right_in_both_directions_with_lengths_of_their_own(precision):
    """But for training in bf16 (docs/findings.md): when this fails, TensorFlow has mended it. Rewrite the finding."""
    resolve_or_skip("tensorflow")
    options = {"device": "cuda", "precisions": [precision]}
    plan = rnnbench.make_plan(["tensorflow/stack/*"], ["bi-ctc-long", "ptb-lm", "ce-short"], **options)
    session = rnnbench.verify_plan(plan, use_cache=False)
    assert len(session.verifications) == 12
    for one in session.verifications:
        is_wrong = precision == "bf16" and one.case.phase == "train"
        assert one.verdict == ("wrong" if is_wrong else "verified"), f"{one.case.key}: {one.reason}"


def test_a_launch_of_rnnfuse_says_how_its_loops_ran(tmp_path):
    rows = ["pytorch/fine/rnnfuse", "pytorch/fine/rnnfuse-cudagraph"]
    plan = rnnbench.make_plan(rows, ["ce-short"], phases=["train"], device="cuda")
    results = rnnbench.run_plan(plan, tmp_path / "run", effort="quick", verify=False)
    launches = [record for record in results.contents.records if isinstance(record, Launch)]
    assert [launch.outcome for launch in launches] == ["ok", "ok"]
    for launch in launches:
        assert launch.how_it_ran.count("one kernel: ") == 2, launch.how_it_ran


def test_cudnn_under_autocast_says_that_it_is_in_float16(tmp_path):
    plan = rnnbench.make_plan(["pytorch/stack/*"], ["ce-short"], phases=["forward"], device="cuda", precisions=["bf16"])
    results = rnnbench.run_plan(plan, tmp_path / "run", effort="quick", verify=False)
    launches = [record for record in results.contents.records if isinstance(record, Launch)]
    assert launches
    for launch in launches:
        assert launch.how_it_ran.startswith("computed in float16"), launch.case.key


def test_events_and_the_hosts_clock_agree_and_the_gpu_tells_its_state(tmp_path):
    plan = rnnbench.make_plan(ROWS["pytorch"], [LANGUAGE], phases=["train"], device="cuda")
    results = rnnbench.run_plan(plan, tmp_path / "run", effort="quick", verify=False, ahead=2)
    launches = [record for record in results.contents.records if isinstance(record, Launch)]
    assert len(launches) == len(ROWS["pytorch"])
    for launch in launches:
        assert launch.outcome == "ok", launch.reason
        assert launch.device_seconds == pytest.approx(launch.seconds, rel=0.01)
        assert launch.gpu_before.sm_mhz > 0
        assert launch.gpu_after.temperature_c > 0
        assert launch.peak_device_bytes > 0


def test_every_cell_is_right_in_a_loop_in_a_graph_and_by_rnnfuse():
    rows = [f"pytorch/packed/{one}" for one in ("eager", "cudagraph", "rnnfuse", "rnnfuse-cudagraph")]
    workloads = [f"ce-short[cell={cell}]" for cell in rnnbench_cells.NAMES]
    plan = rnnbench.make_plan(rows, workloads, phases=["train"], device="cuda")
    session = rnnbench.verify_plan(plan, use_cache=False)
    assert len(session.verifications) == len(rows) * len(workloads)
    for one in session.verifications:
        assert one.verdict == "verified", f"{one.case.key}: {one.reason}"


def test_captured_rows_have_the_abilities_of_their_loops():
    plan = rnnbench.make_plan(["pytorch/packed/cudagraph", "pytorch/packed/rnnfuse-cudagraph"], device="cuda")
    found = try_abilities(plan, make_method(threads=1), Listener(), use_cache=False)
    verdicts = {(one.system.rpartition("/")[2], one.ability): one.verdict for one in found}
    assert set(verdicts.values()) <= {"yes", "no"}, found
    for execution in ("cudagraph", "rnnfuse-cudagraph"):
        assert verdicts[execution, "other-steps"] == "no"  # captured again
        assert verdicts[execution, "attention"] == "yes"
