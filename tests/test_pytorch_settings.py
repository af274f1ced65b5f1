"""What a worker sets before it measures, read back from PyTorch and from the system itself."""

import pytest

import rnnbench
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.result import Launch
from rnnbench.domain.workload import parameter_count
from rnnbench.machine import allowed_cpus
from rnnbench.manifests import manifests
from systems_helpers import LANGUAGE, SPEECH, job_for, run_snippet

pytestmark = pytest.mark.torch

TINY = "ce-short[batch=2,hidden=4,steps=3]"
EAGER = "pytorch/packed/eager"
BIASES = {"fine": 1, "packed": 1, "cell": 2, "stack": 2}
TWO_PROCESSORS = pytest.mark.skipif(len(allowed_cpus()) < 2, reason="needs two processors")


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=TWO_PROCESSORS)])
def test_a_launch_records_the_threads_asked_for_and_a_plausible_memory(pytorch, threads):
    plan = rnnbench.make_plan([EAGER], [TINY], phases=["train"], device="cpu")
    results = rnnbench.run_plan(plan, "run", threads=threads, effort="quick", protocol="2019", verify=False)
    (launch,) = (record for record in results.contents.records if isinstance(record, Launch))
    assert launch.outcome == "ok", launch.reason
    assert launch.threads == threads
    assert len(results.contents.run.method.cpus) == threads
    assert 50e6 < launch.peak_host_bytes < 5e9
    assert launch.peak_device_bytes is None
    assert launch.parameter_count == parameter_count(parse_workload(TINY))


# Work on a million numbers is shared out among all threads of the pool, so that they all exist.
AFFINITY = """
import torch
threads = framework.describe(job)["threads"]
torch.ones(1 << 20).mul(2.0)
tasks = [int(task) for task in os.listdir("/proc/self/task")]
answer = {"threads": threads, "tasks": len(tasks), "cpus": [sorted(os.sched_getaffinity(task)) for task in tasks]}
"""


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=TWO_PROCESSORS)])
def test_every_thread_of_a_worker_is_pinned_to_the_processors_chosen(pytorch, tmp_path, threads):
    job = job_for(EAGER, TINY, tmp_path, threads=threads)
    found = run_snippet(pytorch, job, AFFINITY)
    assert found["threads"] == threads
    assert found["tasks"] >= threads
    assert found["cpus"] == [list(job["cpus"])] * found["tasks"]
    assert len(job["cpus"]) == threads


# 1e-38 times 1e-3 is denormal. The bits are looked at as integers: a comparison may itself flush.
# The second product is long enough for every thread of the pool to get its share.
DENORMALS = """
import numpy as np
import torch
framework.describe(job)
def share_kept(count):
    bits = torch.full((count,), 1e-38).mul(1e-3).numpy().view(np.uint32)
    return [float((half != 0).mean()) for half in np.split(bits, 2)]
answer = {"alone": share_kept(16), "pool": share_kept(1 << 20), "threads": torch.get_num_threads()}
"""


@TWO_PROCESSORS
@pytest.mark.parametrize(("flush", "kept"), [(True, 0.0), (False, 1.0)], ids=["flushed", "kept"])
def test_denormal_numbers_are_flushed_in_every_thread_exactly_when_asked(pytorch, tmp_path, flush, kept):
    found = run_snippet(pytorch, job_for(EAGER, TINY, tmp_path, threads=2, flush_denormals=flush), DENORMALS)
    assert found == {"alone": [kept, kept], "pool": [kept, kept], "threads": 2}


# fp32 comes first: there TF32 has to be switched off, for PyTorch lets cuDNN have it unasked.
TF32 = """
import torch

def flags(precision):
    framework.describe(dict(job, precision=precision))
    return [torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32]

unasked = torch.backends.cudnn.allow_tf32
answer = {precision: flags(precision) for precision in ("fp32", "tf32", "bf16")}
answer["unasked"] = unasked
"""


def test_tf32_is_allowed_for_tf32_alone(pytorch, tmp_path):
    found = run_snippet(pytorch, job_for(EAGER, TINY, tmp_path), TF32)
    assert found == {"fp32": [False, False], "tf32": [True, True], "bf16": [False, False], "unasked": True}


COUNTS = """
parameters, _ = load_inputs(job["inputs"])
answer = {
    granularity: framework.build(dict(job, granularity=granularity), parameters).parameter_count()
    for granularity in job["granularities"]
}
"""


@pytest.mark.parametrize("workload", [LANGUAGE, SPEECH], ids=["language", "speech"])
def test_every_granularity_has_as_many_parameters_as_the_workload_says(pytorch, tmp_path, workload):
    job = job_for(EAGER, workload, tmp_path) | {"granularities": list(BIASES)}
    found = run_snippet(pytorch, job, COUNTS)
    shape = parse_workload(workload)
    assert found == {granularity: parameter_count(shape, biases) for granularity, biases in BIASES.items()}
    declared = {system.granularity: system.biases for system in manifests()["pytorch"].system}
    assert declared == BIASES


RATES = """
import torch

def made(precision):
    framework.describe(dict(job, precision=precision))
    rates = framework.rates(dict(job, precision=precision))
    product, copy = rates["product"](64), rates["copy"](100)
    results = product(), copy()
    rates["sync"](results)
    return [[str(one.dtype), list(one.shape), bool(one.float().std() > 0)] for one in results]

answer = {precision: made(precision) for precision in ("fp32", "bf16")}
"""


def test_the_machines_limit_is_measured_with_products_in_the_jobs_precision_and_copies(pytorch, tmp_path):
    found = run_snippet(pytorch, job_for(EAGER, TINY, tmp_path), RATES)
    copied = ["torch.float32", [100], True]
    assert found == {
        "fp32": [["torch.float32", [64, 64], True], copied],
        "bf16": [["torch.bfloat16", [64, 64], True], copied],
    }


TYPES = """
import torch
from rnnbench_worker.systems.pytorch.program import said_of_autocast

class InFloat16(object):
    input_size = 3

    def __call__(self, xs):
        return xs.half(), None

cpu = torch.device("cpu")
answer = [said_of_autocast(torch.nn.RNN(3, 4), cpu), said_of_autocast(InFloat16(), cpu)]
"""


def test_a_vendors_layers_say_where_autocast_gave_them_another_type(pytorch, tmp_path):
    said = run_snippet(pytorch, job_for(EAGER, TINY, tmp_path), TYPES)
    assert said == ["", "computed in float16: autocast has no other type for cuDNN's layers"]
