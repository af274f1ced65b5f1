"""The frameworks' own profilers on a tiny network whose number of matrix products is known."""

import gzip
import json

import pytest

import rnnbench
from rnnbench.analysis.profile_results import find_bottleneck
from rnnbench.launch.job import resolve_case
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.method import make_method
from rnnbench.profile import launch_profile

STEPS = 4
TINY = f"ptb-lm[batch=3,embedding=5,hidden=4,layers=1,steps={STEPS},vocabulary=11]"
PACKED_PRODUCTS = 2 * STEPS + 1  # one for input and one for state at each step, and the head


def profiles(systems, place, phases=("forward",)):
    plan = rnnbench.make_plan(systems, [TINY], phases=phases, device="cpu")
    ready = prepare(plan, Listener())
    found = {}
    for case in ready.cases:
        resolved = resolve_case(case, plan.workloads, plan.systems, ready.environments)
        profile = launch_profile(resolved, make_method(threads=1), place, place)
        assert profile.outcome in ("ok", "none"), (case.system, profile.reason, profile.log_tail)
        found[case.system] = profile
        if profile.outcome == "ok":
            check(profile, place)
    return found


def check(profile, place):
    """What is true of every profile."""
    assert profile.count > 0
    assert 0 < profile.busy_s <= profile.wall_s
    assert 0 <= profile.host_share < 1
    assert sum(profile.kinds.values()) == pytest.approx(profile.busy_s)
    assert str(find_bottleneck(profile))
    if profile.trace:
        content = json.loads(gzip.decompress((place / profile.trace).read_bytes()))
        assert content["traceEvents"] if isinstance(content, dict) else content


def count(profile, kind):
    return profile.counts.get(kind, 0)


def test_pytorch(pytorch, tmp_path):
    names = ("fine/eager", "packed/eager", "stack/eager", "packed/script")
    found = profiles([f"pytorch/{name}" for name in names], tmp_path)
    fine, packed, stack, script = (found[f"pytorch/{name}"] for name in names)
    assert count(packed, "product") == count(script, "product") == PACKED_PRODUCTS
    assert count(fine, "product") == 8 * STEPS + 1
    assert count(stack, "recurrent") == 1
    assert fine.operators > packed.operators > stack.operators
    assert fine.trace
    train = profiles(["pytorch/packed/eager"], tmp_path, ("train",))["pytorch/packed/eager"]
    assert count(train, "product") == 3 * PACKED_PRODUCTS - 1  # two gradients for each, but the first state has none
    assert train.operators > 2 * packed.operators


def test_tensorflow(environment_of, tmp_path):
    environment_of("tensorflow")
    found = profiles(["tensorflow/packed/eager", "tensorflow/packed/graph"], tmp_path)
    assert {name: count(one, "product") for name, one in found.items()} == dict.fromkeys(found, PACKED_PRODUCTS)


def test_jax(environment_of, tmp_path):
    environment_of("jax")
    found = profiles(["jax/packed/jit-scan", "jax/packed/eager"], tmp_path)
    assert {name: count(one, "product") for name, one in found.items()} == dict.fromkeys(found, PACKED_PRODUCTS)


def test_onnx_runtime(environment_of, tmp_path):
    environment_of("onnxruntime")
    (found,) = profiles(["onnxruntime/stack/session"], tmp_path).values()
    assert count(found, "recurrent") == 1
    assert found.trace


def test_openvino(environment_of, tmp_path):
    environment_of("openvino")
    (found,) = profiles(["openvino/stack/compiled-model"], tmp_path).values()
    assert found.trace == ""
    assert count(found, "recurrent") + count(found, "product") >= 1


def test_pytensor(environment_of, tmp_path):
    environment_of("pytensor")
    found = profiles(["pytensor/packed/scan-c", "pytensor/packed/scan-numba"], tmp_path)
    assert count(found["pytensor/packed/scan-c"], "product") == PACKED_PRODUCTS
    numba = found["pytensor/packed/scan-numba"]
    assert numba.outcome == "none"
    assert "Numba" in numba.reason
