"""Frameworks of 2018 in interpreters of their time: verified like all others, elsewhere left out with the reason."""

import sys
from pathlib import Path

import pytest

import rnnbench
from historic_helpers import HISTORIC, environment_or_skip
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.workload import parameter_count
from rnnbench.environments import interpreters
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.machine import allowed_cpus
from rnnbench.manifests import manifests
from systems_helpers import LANGUAGE, SPEECH, job_for, not_verified, run_snippet, verdicts
from test_threads import measure

BOTH_WAYS = "bi-ce-long[batch=3,hidden=4,layers=1,steps=3]"
ON_THEANO = ["keras2-theano/layer/scan-c", "lasagne/packed/scan-c"]
#: One of each pair that shares its settings.
SETTINGS = ["tensorflow1", "lasagne"]


@pytest.fixture
def historic(environment_of, keep_compiled):
    """A framework's environment, where there can be one."""
    return lambda framework: environment_or_skip(framework, environment_of)


@pytest.fixture
def answer(historic, monkeypatch, tmp_path):
    """What a snippet answers in a framework's environment, with its variables."""

    def ask(system, snippet, **options):
        environment = historic(system.partition("/")[0])
        job = job_for(system, SPEECH, tmp_path, threads=1, **options)
        for name, value in manifests()[environment.framework].variables.items():
            monkeypatch.setenv(name, value.replace("{scratch}", str(tmp_path)))
        return run_snippet(environment, job, snippet)

    return ask


def plan(systems, workloads, **options):
    return rnnbench.make_plan(systems, workloads, device="cpu", **options)


def test_they_are_these():
    assert HISTORIC == ["keras2-tensorflow", "keras2-theano", "lasagne", "tensorflow1"]


def test_keras_2_stands_on_what_rnnbench_has_by_itself():
    for upper, lower in (("keras2-tensorflow", "tensorflow1"), ("keras2-theano", "lasagne")):
        (mine,), (theirs,) = manifests()[upper].requirements, manifests()[lower].requirements
        pins = {line.format(version=manifests()[lower].version) for line in (*theirs.cpu, *theirs.constraints)}
        assert {line for line in pins if not line.startswith("lasagne")} <= {*mine.cpu, *mine.constraints}
        assert (mine.python, mine.tooling) == (theirs.python, theirs.tooling)


# --- verified ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.historic
def test_tensorflow_1_and_keras_on_it_are_verified_on_every_kind_of_network(historic):
    historic("tensorflow1"), historic("keras2-tensorflow")
    found = verdicts(
        rnnbench.join_plans(
            plan(["tensorflow1/*", "keras2-tensorflow/*"], [SPEECH, LANGUAGE]),
            plan(["tensorflow1/packed/*", "keras2-tensorflow/*"], [BOTH_WAYS]),
        )
    )
    assert not_verified(found) == []


@pytest.mark.slow
@pytest.mark.historic
def test_on_theano_one_layer_is_learnt(historic):
    """One layer, one way: Theano compiles for minutes. `rnnbench verify 'lasagne/*'` proves more."""
    historic("keras2-theano"), historic("lasagne")
    assert not_verified(verdicts(plan(ON_THEANO, ["ce-short"], phases=["train"]))) == []


# --- what is set, and what comes back -----------------------------------------------------------------

# `gradients` must leave no trace: after it and without it a second step ends in the same bits.
ROUND_TRIP = """
import numpy as np
framework.describe(job)
given, batches = load_inputs(job["inputs"])
program = framework.build(job, given)
fed = [program.feed(program.stage(batch)) for batch in batches]

def same(found, expected):
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes(), name

same(program.parameters(), given)
program.gradients(fed[0])
same(program.parameters(), given)
program.train(fed[0])
program.gradients(fed[1])
program.train(fed[1])
once = framework.build(job, given)
fed = [once.feed(once.stage(batch)) for batch in batches]
once.train(fed[0]), once.train(fed[1])
same(program.parameters(), once.parameters())
answer = [program.parameter_count(), np.__version__, sys.version.split()[0][:3]]
"""


@pytest.mark.slow
@pytest.mark.historic
@pytest.mark.parametrize("system", ["tensorflow1/layer/graph", "keras2-tensorflow/layer/graph"])
def test_parameters_come_back_to_the_bit_and_gradients_leave_no_trace(answer, system):
    count = parameter_count(parse_workload(SPEECH))
    assert answer(system, ROUND_TRIP, phase="train") == [count, "1.14.6", "3.6"]


DENORMALS = {
    "tensorflow1/layer/graph": """
import numpy as np, tensorflow as tf
framework.describe(job)
small, least = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
with tf.Session() as session:
    answer = float(session.run(small * least, {small: np.float32(1e-38), least: np.float32(1e-3)}))
""",
    "lasagne/packed/scan-c": """
import numpy as np
framework.describe(job)
answer = float(np.float32(1e-38) * np.float32(1e-3))
""",
}


@pytest.mark.slow
@pytest.mark.historic
@pytest.mark.parametrize("system", DENORMALS)
def test_denormals_are_flushed(answer, system):
    assert answer(system, DENORMALS[system]) == 0.0


@pytest.mark.slow
@pytest.mark.historic
@pytest.mark.parametrize("framework", SETTINGS)
def test_with_one_thread_no_second_one_computes(historic, framework, tmp_path):
    # Not pinned: on one processor it would look like one thread even if there were more.
    said, (average, _) = measure(historic(framework), framework, tmp_path, threads=1, pinned=False, phases=["forward"])
    assert said == 1
    assert average < 1.5


@pytest.mark.slow
@pytest.mark.historic
@pytest.mark.skipif(len(allowed_cpus()) < 2, reason="needs two processors")
@pytest.mark.parametrize("framework", SETTINGS)
def test_with_two_threads_it_says_so_and_both_compute(historic, framework, tmp_path):
    said, (_, working) = measure(historic(framework), framework, tmp_path, threads=2, pinned=True, phases=["forward"])
    assert said == 2
    assert working >= 2


BLAS = """
hello = framework.describe(job)
import theano
answer = [hello["device_name"], theano.config.blas.ldflags]
"""


@pytest.mark.slow
@pytest.mark.historic
def test_theano_multiplies_by_the_blas_that_numpy_brought(answer, historic):
    name, flags = answer("lasagne/packed/scan-c", BLAS)
    assert name.startswith("libopenblas")
    assert flags.endswith(f"-l:{name}")
    assert historic("lasagne").distributions["pip"] == "21.3.1"  # newer than the one of Python 3.6


# --- declared -----------------------------------------------------------------------------------------


def test_what_they_cannot_do_is_declared(pretend_processor):
    pretend_processor("x86_64")
    asked = plan([f"{framework}/*" for framework in HISTORIC], ["bi-ctc-long"], precisions=["fp32", "bf16"])
    reasons = {(left.case.framework, left.case.phase, left.case.precision): left.reason for left in asked.left_out}
    assert "libwarpctc" in reasons["lasagne", "train", "fp32"]
    assert "another loss" in reasons["keras2-theano", "train", "fp32"]
    assert {case.framework for case in asked.cases} == set(HISTORIC)  # all can read what they cannot learn
    assert {case.precision for case in asked.cases} == {"fp32"}


def test_where_no_wheels_are_offered_their_rows_are_left_out_with_that_reason(pretend_processor, call):
    pretend_processor("aarch64")
    reason = "no wheels: this version is offered for x86_64 only, and this machine is aarch64"
    asked = plan([f"{framework}/*" for framework in HISTORIC], ["ce-short"])
    assert (asked.cases, {left.reason for left in asked.left_out}) == ((), {reason})
    old = plan(["pytorch/stack/eager"], ["ce-short"], versions=["1.3.1"], phases=["train"])
    assert [left.reason for left in old.left_out] == [reason]
    assert f"TensorFlow 1 is left out: {reason}" in call("env", "doctor").out
    answer = call("env", "create", "lasagne")
    assert answer.code == 2
    assert f"cannot create lasagne-0.1: {reason}" in answer.err


def test_without_an_old_interpreter_their_rows_are_left_out_and_others_are_run(
    sabotage, monkeypatch, pretend_processor
):
    """On a machine that has nothing but the Python that runs rnnbench."""
    pretend_processor("x86_64")
    running = interpreters.Interpreter(Path(sys.executable).resolve(), "3.13.0")
    monkeypatch.setattr(interpreters, "find_interpreters", lambda: [running])
    ready = prepare(plan(["sabotage/packed/honest", "lasagne/*"], ["ce-short"]), Listener())
    assert {case.framework for case in ready.cases} == {"sabotage"}
    reasons = {left.case.framework: left.reason for left in ready.left_out}
    assert set(reasons) == {"lasagne"}
    assert reasons["lasagne"].startswith("no interpreter: no Python ==3.6 ")
    assert "`pyenv install 3.6` provides one" in reasons["lasagne"]
