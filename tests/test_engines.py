"""ONNX Runtime and OpenVINO, which run what PyTorch exports: forward as the reference has it, and nothing else."""

from pathlib import Path

import pytest

import rnnbench
from rnnbench.domain.catalog import CATALOG, parse_workload
from rnnbench.domain.workload import parameter_count
from rnnbench.manifests import manifests
from rnnbench.plan import why_not
from systems_helpers import LANGUAGE, SPEECH, job_for, not_verified, run_snippet, verdicts

SYSTEMS = {"onnxruntime": "onnxruntime/stack/session", "openvino": "openvino/stack/compiled-model"}

CPU_INFO = Path("/proc/cpuinfo")
HAS_BF16 = CPU_INFO.exists() and "_bf16" in CPU_INFO.read_text()


@pytest.fixture(params=SYSTEMS)
def engine(request, environment_of):
    """(its name, its environment)"""
    return request.param, environment_of(request.param)


@pytest.mark.slow
def test_what_pytorch_exports_is_verified_on_words_and_on_speech(engine):
    plan = rnnbench.make_plan([SYSTEMS[engine[0]]], [LANGUAGE, SPEECH], phases=["forward"], device="cpu")
    found = verdicts(plan)
    assert len(found) == 2
    assert not_verified(found) == []


@pytest.mark.slow
@pytest.mark.skipif(not HAS_BF16, reason="this CPU has no bf16")
def test_openvino_is_verified_in_bf16_and_is_not_fp32_in_disguise(environment_of):
    environment_of("openvino")
    plan = rnnbench.make_plan(
        [SYSTEMS["openvino"]], ["ptb-lm", "bi-ctc-long"], phases=["forward"], device="cpu", precisions=["bf16"]
    )
    found = verdicts(plan)
    assert not_verified(found) == []
    assert all(one.worst.error > 1e-4 for one in found.values())


# `describe` has made an engine of another network by then: what `build` makes is looked at.
FIRST_CALL = """
said = framework.describe(job)
parameters, batches = load_inputs(job["inputs"])
program = framework.build(job, parameters)
before = program._engine is None
handle = program.forward(program.feed(program.stage(batches[0])))
program.sync(handle)
first = program._engine
kept = program.logits(handle)
copy = kept.copy()
program.sync(program.forward(program.feed(program.stage(batches[1]))))
answer = {
    "said": said,
    "device": program.device,
    "parameters": program.parameter_count(),
    "made at the first call": before and first is not None and program._engine is first,
    "logits stay": bool((kept == copy).all()),
    "all on": sorted({cpu for task in os.listdir("/proc/self/task") for cpu in os.sched_getaffinity(int(task))}),
}
"""


@pytest.mark.slow
def test_an_engine_is_made_once_at_the_first_call_and_says_what_it_has(engine, tmp_path):
    name, environment = engine
    job = job_for(SYSTEMS[name], "ce-short[batch=3,features=5,hidden=4,steps=4]", tmp_path, threads=1)
    found = run_snippet(environment, job, FIRST_CALL)
    said = found.pop("said")
    assert (said["device"], said["threads"]) == ("cpu", 1)
    assert said["versions"][name].startswith(manifests()[name].version)
    assert found == {
        "device": "cpu",
        "parameters": parameter_count(parse_workload(job["workload"]["name"]), biases=2),
        "made at the first call": True,
        "logits stay": True,
        "all on": list(job["cpus"]),  # OpenVINO would pin its threads by itself if it were let
    }


ELSEWHERE = """
try:
    answer = framework.describe(dict(job, device="cuda"))
except RuntimeError as error:
    answer = str(error)
"""


@pytest.mark.slow
def test_a_session_that_quietly_went_to_the_cpu_is_refused(environment_of, tmp_path):
    job = job_for(SYSTEMS["onnxruntime"], LANGUAGE, tmp_path, threads=1)
    found = run_snippet(environment_of("onnxruntime"), job, ELSEWHERE)
    assert found == "ONNX Runtime has no CUDAExecutionProvider: it took CPUExecutionProvider"


TELEMETRY = """
from openvino.tools.ovc import telemetry_utils
answer = telemetry_utils.tm.__name__
"""


@pytest.mark.slow
def test_openvino_tells_nobody(environment_of, tmp_path):
    job = job_for(SYSTEMS["openvino"], LANGUAGE, tmp_path, threads=1)
    assert run_snippet(environment_of("openvino"), job, TELEMETRY) == "openvino.tools.ovc.telemetry_stub"


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("workload", [one for one in CATALOG.values() if not one.one_step], ids=lambda one: one.name)
def test_training_is_left_out_with_the_reason(name, workload):
    plan = rnnbench.make_plan([SYSTEMS[name]], [workload], device="cpu")
    assert [case.phase for case in plan.cases] == ["forward"]
    assert [left.case.phase for left in plan.left_out] == ["train"]
    assert "trained elsewhere" in plan.left_out[0].reason


def test_openvino_says_why_not_on_cuda_and_onnx_runtime_why_not_in_bf16():
    def reason(name, device, precision):
        manifest = manifests()[name]
        (system,) = manifest.system
        return why_not(manifest, system, CATALOG["ce-short"], "forward", device, precision, manifest.version)

    assert "none for CUDA" in reason("openvino", "cuda", "fp32")
    assert [reason("onnxruntime", "cuda", precision) for precision in ("fp32", "tf32")] == ["", ""]
    assert "no bf16 kernel" in reason("onnxruntime", "cuda", "bf16")
