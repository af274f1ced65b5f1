"""Keras on its three backends: one network and one program, and what Keras itself gets wrong is found wrong."""

import json
import subprocess
from pathlib import Path

import pytest

import rnnbench
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.workload import parameter_count
from rnnbench.environments.environment import child_variables
from rnnbench.manifests import manifests
from systems_helpers import SPEECH, job_for, not_verified, run_snippet, verdicts

pytestmark = pytest.mark.slow

LAST_STEP = "ce-short[batch=3,hidden=4,steps=3]"
BOTH_WAYS = "bi-ce-long[batch=3,hidden=4,layers=1,steps=3]"
WORDS = "ptb-lm[layers=1]"
MASKED = "bi-ctc-long[layers=1]"
FINDINGS = Path(__file__).parent.parent / "docs" / "findings"

#: The manifest that has the backend alone, and the execution that `fit` gives its users.
BACKENDS = {"tensorflow": ("tensorflow", "graph"), "torch": ("pytorch", "eager"), "jax": ("jax", "jit")}
USUAL = [f"keras-{backend}/layer/{execution}" for backend, (_, execution) in BACKENDS.items()]


@pytest.fixture
def keras_on(environment_of, keep_compiled, monkeypatch, tmp_path):
    """A backend's environment, beside settings of a user's own that must not reach the worker."""
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text(json.dumps({"floatx": "float16", "backend": "numpy"}))
    monkeypatch.setenv("HOME", str(tmp_path))

    def prepare(backend):
        for name, value in manifests()[f"keras-{backend}"].variables.items():
            monkeypatch.setenv(name, value.replace("{scratch}", str(tmp_path)))
        return environment_of(f"keras-{backend}")

    return prepare


def plan(systems, workloads, **options):
    return rnnbench.make_plan(systems, workloads, device="cpu", **options)


def test_what_users_get_is_verified_on_every_kind_of_network(keras_on):
    others = plan(["keras-jax/layer/jit"], [BOTH_WAYS]), plan(["keras-tensorflow/layer/graph-dense"], [SPEECH, WORDS])
    found = verdicts(rnnbench.join_plans(plan(USUAL, [SPEECH, WORDS]), *others))
    embedding = found.pop(("keras-tensorflow/layer/graph", "ptb-lm", "train"))
    assert not_verified(found) == []
    # docs/findings.md: when this fails, Keras has mended Adam's way with an embedding. Rewrite the finding.
    wrong = [figure.quantity for figure in embedding.figures if not figure.passes]
    assert wrong[:2] == ["embedding after 3 updates", "updates of embedding"]


def test_eager_unrolled_and_compiled_steps_are_verified(keras_on):
    last_step = ["keras-tensorflow/layer/eager", "keras-tensorflow/layer/xla-unrolled"]
    last_step += ["keras-torch/layer/eager-unrolled", "keras-jax/layer/eager"]
    found = verdicts(
        rnnbench.join_plans(
            plan(["keras-torch/layer/compile"], [LAST_STEP], phases=["train"]),  # the longest first
            plan(["keras-jax/layer/jit-unrolled"], [MASKED]),
            plan(last_step, [LAST_STEP]),
        )
    )
    assert not_verified(found) == []


def test_an_unrolled_and_masked_way_back_is_found_wrong_on_tensorflow(keras_on):
    """docs/findings.md says so. When this fails, Keras has mended it: rewrite the finding."""
    found = verdicts(plan(["keras-tensorflow/layer/graph-unrolled"], [MASKED], phases=["forward"]))
    assert [(one.verdict, one.worst.error > 0.1) for one in found.values()] == [("wrong", True)]


def test_mixed_precision_is_verified_and_is_not_fp32_in_disguise(keras_on):
    found = verdicts(plan(USUAL, [LAST_STEP], precisions=["bf16"]))
    assert not_verified(found) == []
    for case, one in found.items():
        assert one.worst.error > 1e-4, f"{case} has the errors of fp32"


ROUND_TRIP = """
given, batches = load_inputs(job["inputs"])
told = framework.describe(job)
program = framework.build(job, given)

def same():
    found = program.parameters()
    return set(found) == set(given) and all(found[name].tobytes() == given[name].tobytes() for name in given)

fed = [program.feed(program.stage(batch)) for batch in batches]
answer = [same(), set(program.gradients(fed[0])) == set(given), same()]
losses = []
for one in fed[:2]:
    handle = program.train(one)
    program.sync(handle)
    losses.append(program.loss(handle))
    answer.append(not same())
# A second program that is asked for nothing between its steps: its second loss is the same, and of one batch alone.
program = framework.build(job, given)
program.train(fed[0])
answer.append(abs(program.loss(program.train(fed[1])) - losses[1]) < 1e-6 < abs(losses[0] - losses[1]))
answer += [int(program.parameter_count()), told["device"], program.device, told["versions"]["keras"]]
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_parameters_come_back_to_the_bit_and_a_loss_is_of_one_batch(keras_on, backend, tmp_path):
    environment = keras_on(backend)
    job = job_for(f"keras-{backend}/layer/{BACKENDS[backend][1]}", BOTH_WAYS, tmp_path, phase="train", threads=1)
    answer = run_snippet(environment, job, ROUND_TRIP)
    version = manifests()[f"keras-{backend}"].version
    assert answer == [True] * 6 + [parameter_count(parse_workload(BOTH_WAYS)), "cpu", "cpu", version]


COMPILATIONS = """
import jax
given, batches = load_inputs(job["inputs"])
framework.describe(job)
program = framework.build(job, given)
answer = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **more: answer.append(event) if event.endswith("backend_compile_duration") else None
)
counts = []
for batch in batches:
    fed = program.feed(program.stage(batch))
    answer.clear()
    program.sync(program.train(fed))
    counts.append(len(answer))
answer = counts
"""


def test_on_jax_a_step_is_compiled_at_the_first_call_and_never_again(keras_on, tmp_path):
    job = job_for("keras-jax/layer/jit", LAST_STEP, tmp_path, phase="train", threads=1)
    first, *later = run_snippet(keras_on("jax"), job, COMPILATIONS)
    assert first > 0
    assert later == [0, 0]


def test_the_backend_is_the_one_that_rnnbench_has_by_itself():
    for backend, (framework, _) in BACKENDS.items():
        own, alone = manifests()[f"keras-{backend}"], manifests()[framework]
        (entry,), pinned = own.requirements, alone.requirements[0]
        for mine, theirs in ((entry.cpu, pinned.cpu), (entry.cuda, pinned.cuda)):
            assert {line.format(version=alone.version) for line in theirs} <= set(mine)
        # Keras itself comes along with TensorFlow.
        assert {line for line in pinned.constraints if not line.startswith("keras")} <= set(entry.constraints)
        assert own.variables.items() >= alone.variables.items()


def test_what_keras_cannot_do_is_declared():
    asked = plan(["keras-torch/layer/*", "keras-jax/layer/jit"], [SPEECH], precisions=["fp32", "tf32"])
    reasons = {(left.case.system, left.case.precision): left.reason for left in asked.left_out}
    assert "fails to reverse" in reasons["keras-torch/layer/eager-unrolled", "fp32"]
    assert "torch.compile cannot follow" in reasons["keras-torch/layer/compile", "fp32"]
    assert "TF32" in reasons["keras-jax/layer/jit", "tf32"]


@pytest.mark.parametrize(
    ("program", "backend", "expected"),
    [
        ("keras_sparse_adam.py", "tensorflow", "velocity: row 0 0.00125, row 1 0.00025"),
        ("ctc_fp32.py", "tensorflow", "TensorFlow, dense labels: loss off by 6.0e-01"),
        ("keras_unrolled_mask.py", "torch", "unroll=True: 'tuple' object has no attribute 'shape'"),
    ],
)
def test_a_findings_program_shows_it(keras_on, program, backend, expected):
    """docs/findings.md says so. When this fails, Keras has mended it: rewrite the finding."""
    command = [keras_on(backend).python, str(FINDINGS / program)]
    assert expected in subprocess.run(command, capture_output=True, text=True, check=True, env=child_variables()).stdout
