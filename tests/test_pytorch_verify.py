"""Every PyTorch system computes what the float64 reference computes, or is found wrong, or says why it cannot."""

import re

import msgspec
import pytest

import rnnbench
from rnnbench.domain.catalog import CATALOG
from rnnbench.verify.proofs import small_version
from systems_helpers import not_verified, verdicts

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.usefixtures("keep_compiled")]

#: All but `ce-long`, which is `ce-short` once both are small: see the first test.
WORKLOADS = ["ptb-lm", "ce-short", "bi-ce-long", "bi-ctc-long"]
#: For what takes minutes to trace or compile at two layers and does there nothing new.
ONE_LAYER_BOTH_WAYS = ["bi-ce-long[layers=1]", "bi-ctc-long[layers=1]"]
QUICKLY_COMPILED = [
    *("pytorch/fine/eager", "pytorch/fine/script"),
    *("pytorch/packed/eager", "pytorch/packed/script", "pytorch/packed/trace"),
    *("pytorch/cell/eager", "pytorch/cell/script"),
    "pytorch/stack/eager",
]


def plan(systems, workloads, **options):
    return rnnbench.make_plan(systems, workloads, device="cpu", **options)


def test_long_and_short_sequences_are_proved_on_the_same_small_network():
    long, short = (small_version(CATALOG[name]) for name in ("ce-long", "ce-short"))
    assert msgspec.structs.replace(long, name=short.name) == short


def test_every_eager_scripted_and_traced_system_is_right_on_every_workload(pytorch):
    shallow = plan(["pytorch/fine/trace"], [*ONE_LAYER_BOTH_WAYS, "ptb-lm", "ce-short"])
    found = verdicts(rnnbench.join_plans(shallow, plan(QUICKLY_COMPILED, WORKLOADS)))
    assert len(found) == 9 * 4 * 2
    assert not_verified(found) == []


def test_compiled_systems_are_right_on_one_layer_and_on_several_both_ways(pytorch):
    found = verdicts(
        rnnbench.join_plans(
            plan(["pytorch/packed/compile"], [ONE_LAYER_BOTH_WAYS[1], "ce-short"]),
            plan(["pytorch/packed/compile-cell"], ["bi-ctc-long", "ce-short"]),
            plan(["pytorch/fine/compile-cell"], ["ce-short"]),
        )
    )
    assert len(found) == 5 * 2
    assert not_verified(found) == []


def test_a_compiled_scan_is_right_and_a_chain_of_them_is_right_or_found_wrong(pytorch):
    """Known to PyTorch: behind one another, compiled scans return wrong gradients of biases."""
    scan = "pytorch/packed/compile-scan"
    found = verdicts(plan([scan], ["ptb-lm", "ce-short"]))
    chained = found.pop((scan, "ptb-lm", "train"))
    assert not_verified(found) == []
    assert chained.verdict in ("verified", "wrong"), chained.reason
    if chained.verdict == "wrong":
        assert re.match(r"gradient of layer\d\.fwd\.b: ", chained.reason), chained.reason
        right = [figure.quantity for figure in chained.figures if figure.passes]
        assert "loss of batch 0" in right  # it went forward as it should


NO_BF16_LSTM = "oneDNN has no bf16 LSTM for ARM processors without bf16 instructions"


@pytest.mark.parametrize(
    ("architecture", "features", "missing"),
    [("aarch64", [], True), ("aarch64", ["bf16"], False), ("x86_64", [], False)],
)
def test_where_the_processor_lacks_bf16_the_vendors_lstm_says_so(pretend_processor, architecture, features, missing):
    pretend_processor(architecture, *features)
    asked = plan(["pytorch/stack/eager"], ["ce-short"], precisions=["fp32", "bf16"], phases=["train"])
    reasons = {left.case.precision: left.reason for left in asked.left_out}
    assert reasons == ({"bf16": NO_BF16_LSTM} if missing else {})


def test_bf16_is_right_within_its_tolerance_and_is_not_fp32_in_disguise(pytorch):
    asked = plan(["pytorch/*/eager"], ["ce-short", "bi-ctc-long"], precisions=["bf16"])
    found = verdicts(asked)
    # Only the vendor's LSTM may be missing, and only on the processors that the manifest names.
    assert {(left.case.system, left.reason) for left in asked.left_out} <= {("pytorch/stack/eager", NO_BF16_LSTM)}
    assert len(found) + len(asked.left_out) == 4 * 2 * 2
    assert not_verified(found) == []
    for case, one in found.items():
        assert max(figure.error for figure in one.figures) > 1e-4, f"{case} has the errors of fp32"


def test_tf32_and_cuda_graphs_are_unsupported_on_a_cpu_with_their_reasons(pytorch):
    asked = plan(["pytorch/stack/*"], ["ce-short"], phases=["forward"], precisions=["fp32", "tf32"])
    session = rnnbench.verify_plan(asked)
    assert [(one.case.system, one.case.precision) for one in session.verifications] == [("pytorch/stack/eager", "fp32")]
    reasons = {(left.case.system, left.case.precision): left.reason for left in session.left_out}
    assert reasons == {
        ("pytorch/stack/eager", "tf32"): "TF32 is a mode of NVIDIA's tensor cores; a CPU has none",
        ("pytorch/stack/cudagraph", "fp32"): "a CUDA graph needs a CUDA device",
        ("pytorch/stack/cudagraph", "tf32"): "a CUDA graph needs a CUDA device",
    }
