"""TensorFlow on CUDA, as far as it can be proved without a GPU: the stack around cuDNN, placement, settings.

What a GPU must still show is in test_cuda.py.
"""

from pathlib import Path

import pytest

import rnnbench
from rnnbench.environments.external import use_interpreter
from systems_helpers import LANGUAGE, SPEECH, job_for, not_verified, run_snippet, verdicts

pytestmark = pytest.mark.slow

STAND_IN = Path(__file__).parent / "cudnn_stand_in"


@pytest.fixture
def tensorflow(environment_of):
    return environment_of("tensorflow")


@pytest.fixture
def cudnn(tensorflow, monkeypatch):
    """A framework of TensorFlow's cuDNN rows, with operators of a CPU in the place of cuDNN's."""
    monkeypatch.setenv("RNNBENCH_SYSTEMS", str(STAND_IN))
    use_interpreter("cudnn-stand-in", Path(tensorflow.python))


def cuda_job(system, workload, place, **fields):
    """The job of a row that a CPU has too, for CUDA."""
    return {**job_for(f"tensorflow/{system}", workload, place, threads=1, **fields), "device": "cuda"}


def test_all_around_cudnn_is_right_and_would_be_found_wrong(cudnn):
    systems = [f"cudnn-stand-in/stack/{name}" for name in ("eager", "graph")]
    assert not_verified(verdicts(rnnbench.make_plan(systems, [LANGUAGE, SPEECH], device="cpu"))) == []
    faults = [f"cudnn-stand-in/stack/{name}" for name in ("other-gates", "other-directions", "other-layout")]
    found = verdicts(rnnbench.make_plan(faults, [SPEECH], device="cpu"))
    assert {one.verdict for one in found.values()} == {"wrong"}


#: A second device of the CPU in the place of the GPU: whatever is not put there expressly stays on the first.
PLACED = """
import os, re, tempfile
import tensorflow as tf
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
tf.debugging.set_log_device_placement(True)
sys.modules[framework.__name__ + ".settings"].GPU = "/CPU:1"
given, batches = load_inputs(job["inputs"])
program = framework.build(job, given)
staged = program.stage(batches[0])
kept, log = os.dup(2), tempfile.TemporaryFile()
os.dup2(log.fileno(), 2)
fed = program.feed(staged)
program.sync(program.train(fed))
program.sync(program.forward(fed))
os.dup2(kept, 2)
log.seek(0)
placed = re.findall(r"(\\w+)(?: in device |\\): )\\S*CPU:(\\d)", log.read().decode())
answer = [sorted(set(name for name, where in placed if where == which)) for which in "01"]
"""


#: Where nothing is computed: arguments that come from the host, and waiting for every device.
NO_COMPUTING = {"SyncDevice", "_Arg", "_DeviceArg"}


@pytest.mark.parametrize("execution", ["eager", "graph", "xla-while"])
def test_everything_is_computed_where_the_job_asks(tensorflow, tmp_path, execution):
    job = cuda_job(f"packed/{execution}", LANGUAGE, tmp_path, phase="train")
    first, second = run_snippet(tensorflow, job, PLACED)
    assert set(first) <= NO_COMPUTING
    assert "ResourceApplyAdam" in second or any("_step_" in name for name in second)


#: A training step traced and never run: the real operators, their shapes and their gradients.
TRACED = """
import tensorflow as tf
given, batches = load_inputs(job["inputs"])
program = framework.build(job, given)
graph = program._train.get_concrete_function(program.feed(program.stage(batches[0]))).graph
operations = graph.get_operations()
shapes = [
    tf.get_static_value(operation.inputs[0]).tolist() for operation in operations
    if operation.type == "TensorListReserve"
]
answer = [[operation.type for operation in operations], shapes]
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("workload", [LANGUAGE, SPEECH])
def test_cudnns_operator_takes_what_it_is_given_and_has_a_gradient(tensorflow, tmp_path, workload, precision):
    job = cuda_job("packed/graph", workload, tmp_path, phase="train", precision=precision)
    types, _ = run_snippet(tensorflow, {**job, "granularity": "stack"}, TRACED)
    assert types.count("CudnnRNNV3") == types.count("CudnnRNNBackpropV3") == 1
    assert "Tanh" not in types  # no cell beside it


def test_loops_for_xla_know_the_shape_of_every_element(tensorflow, tmp_path):
    """XLA on CUDA refuses a list whose elements may have any shape."""
    job = cuda_job("packed/xla-while", SPEECH, tmp_path, phase="train")
    _, shapes = run_snippet(tensorflow, job, TRACED)
    assert shapes
    assert all(size >= 0 for shape in shapes for size in (shape if isinstance(shape, list) else [shape]))


SETTINGS = """
import tensorflow as tf
told = []
settings = sys.modules[framework.__name__ + ".settings"]
settings.devices.list_physical_devices = lambda kind: ["one", "two"] if kind == "GPU" else []
tf.config.experimental.set_memory_growth = lambda gpu, wanted: told.append([gpu, wanted])
settings.apply_settings(job)
answer = [told, tf.config.experimental.tensor_float_32_execution_enabled()]
"""


@pytest.mark.parametrize(("precision", "tf32"), [("fp32", False), ("tf32", True), ("bf16", False)])
def test_memory_is_taken_as_needed_and_tf32_only_where_it_is_asked_for(tensorflow, tmp_path, precision, tf32):
    job = cuda_job("packed/graph", LANGUAGE, tmp_path, precision=precision)
    assert run_snippet(tensorflow, job, SETTINGS) == [[["one", True], ["two", True]], tf32]


NO_GPU = """
try:
    answer = framework.describe(job)
except RuntimeError as error:
    answer = str(error)
"""


def test_without_a_gpu_a_job_for_one_says_so(tensorflow, tmp_path):
    job = cuda_job("packed/graph", LANGUAGE, tmp_path)
    assert run_snippet(tensorflow, job, NO_GPU) == f"TensorFlow {tensorflow.version} sees no CUDA device"
