"""The sentence that names a batch's bottleneck: every verdict on made-up counts, and none where none is due."""

import pytest

from analysis_runs import make_limit
from made_up import WHEN, make_case
from rnnbench.analysis.limit import find_peaks
from rnnbench.analysis.profile_results import (
    Bottleneck,
    ProductRate,
    find_bottleneck,
    find_product_rate,
    find_remedy,
    name_bottleneck,
)
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.profile import Operator, Profile
from rnnbench.domain.workload import flops
from rnnbench.launch.events import Profiled
from rnnbench.profile import kind_of, per_batch_fields, seconds_by_kind


def test_a_cpu_on_which_no_operator_runs_is_dispatch_bound():
    found = name_bottleneck("cpu", 1.0, 0.3, 6000, {"product": 0.2, "memory": 0.1})
    assert found.name == "dispatch-bound"
    assert "no operator runs in 70 % of a batch" in found.why
    assert "6,000 operators take 300 ms of 1.00 s" in found.why


def test_a_device_that_waits_is_launch_bound():
    found = name_bottleneck("cuda", 0.333, 0.038, 14031, {"product": 0.03, "memory": 0.008})
    assert str(found) == ("launch-bound: the device waits for the host in 89 %; 14,031 kernels take 38.0 ms of 333 ms")


def test_products_make_a_batch_matrix_multiply_bound():
    found = name_bottleneck("cpu", 1.0, 0.9, 10, {"product": 0.5, "memory": 0.4})
    assert found.name == "matrix-multiply-bound"
    assert "products take 50 % of a batch; 10.0 operators" in found.why


def test_an_operator_for_a_whole_layer_counts_as_products_and_says_so():
    found = name_bottleneck("cuda", 1.0, 0.9, 3, {"product": 0.1, "recurrent": 0.7, "memory": 0.1})
    assert found.name == "matrix-multiply-bound"
    assert "products take 80 % of a batch (70 % in operators for whole layers)" in found.why


def test_element_wise_operators_and_copies_make_it_memory_bound():
    found = name_bottleneck("cpu", 1.0, 0.95, 500, {"product": 0.2, "memory": 0.75})
    assert found.name == "memory-bound"
    assert "take 75 % of a batch" in found.why


@pytest.mark.parametrize(
    ("busy", "kinds"),
    [
        (0.6, {"product": 0.3, "memory": 0.3}),  # none has half of the time
        (0.9, {"other": 0.9}),  # of unknown kind
        (0.9, {"other": 0.5, "product": 0.2, "memory": 0.2}),
    ],
)
def test_nothing_is_named_where_nothing_takes_half(busy, kinds):
    found = name_bottleneck("cpu", 1.0, busy, 100, kinds)
    assert found.name == ""
    assert str(found).startswith("no single bottleneck: ")


def test_nothing_is_named_where_nothing_was_seen():
    assert str(name_bottleneck("cuda", 1.0, 0.0, 0, {})) == "no single bottleneck: the profiler saw no kernel"


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("product", ["aten::addmm", "aten::mm", "aten::bmm", "MatMul", "_FusedMatMul", "dot", "dot_general",
                     "ampere_sgemm_128x64_tn", "cutlass_80_simt_sgemm", "Dot22", "Gemm", "aten::linear", "ynn_fusion"]),
        ("recurrent", ["aten::mkldnn_rnn_layer", "BlockLSTM", "LSTMBlockCellGrad", "LSTM", "LSTMSequence",
                       "RNN_blockPersist_fp_LSTM"]),
        ("memory", ["aten::add", "aten::sigmoid", "aten::cat", "aten::copy_", "Sigmoid", "ConcatV2", "tanh_fusion",
                    "Elemwise", "void at::native::vectorized_elementwise_kernel", "Memcpy HtoD", "aten::addcmul_",
                    "graph_0_cpp_fused_add_0", "aten::t", "aten::as_strided", "aten::unbind"]),
        ("other", ["while", "custom_call", "CTCLossV2", "aten::_ctc_loss"]),
    ],
)  # fmt: skip
def test_kinds_are_told_from_names(kind, names):
    assert {name: kind_of(name) for name in names} == dict.fromkeys(names, kind)


def test_kinds_add_up_to_the_time_in_which_anything_ran():
    operators = [Operator("matmul", 2, 0.6), Operator("copy", 1, 0.2)]  # overlapping, so 0.6 s in total
    assert seconds_by_kind(operators, 0.6) == pytest.approx({"product": 0.45, "memory": 0.15})
    assert seconds_by_kind([], 0.0) == {}


def sent(**fields):
    plain = {
        "batches": 2, "wall_s": 1.0, "host_s": 0.4, "profiled_s": 1.5, "operators": (Operator("aten::mm", 20, 1.0),),
        "operators_s": 0.5, "kernels": (Operator("sgemm", 10, 0.2), Operator("copy", 10, 0.2)), "kernels_s": 0.2,
    }  # fmt: skip
    return Profiled(**{**plain, **fields})


def profile_of(found, device):
    case = make_case(device=device)
    return Profile(case=case, started=WHEN, outcome="ok", **per_batch_fields(found, device == "cuda"))


def test_on_a_device_its_kernels_count_and_on_a_cpu_the_operators():
    on_device, on_cpu = profile_of(sent(), "cuda"), profile_of(sent(), "cpu")
    assert (on_device.count, on_device.busy_s, on_device.host_share) == (10, 0.2, 0.8)
    assert (on_device.operators, on_device.host_s) == (10, 0.4)
    assert (on_cpu.count, on_cpu.busy_s, on_cpu.host_share) == (10, 0.5, 0.5)
    assert on_cpu.kernels is None
    assert find_bottleneck(on_device).name == "launch-bound"
    assert find_bottleneck(on_cpu).name == "dispatch-bound"
    assert [one.name for one in on_device.top] == ["sgemm", "copy"]
    assert on_device.counts == {"product": 5, "memory": 5}
    assert on_device.kinds == pytest.approx({"product": 0.1, "memory": 0.1})


def test_the_profilers_own_time_does_not_make_operators_longer_than_the_batch():
    slow = profile_of(sent(operators_s=1.3), "cpu")
    assert slow.busy_s == 1.0
    assert slow.host_share == 0.0
    assert sum(slow.kinds.values()) == pytest.approx(1.0)


# --- one denominator, the products' rate, advice ----------------------------------------------------------


def test_operators_share_the_batch_as_it_is_timed_not_as_it_is_profiled():
    """The profiler tripled the time of every operator: the sum of their shares was 162 %."""
    found = sent(
        wall_s=1.0,
        operators_s=1.0,
        operators=(Operator("aten::mm", 20, 2.0), Operator("aten::add", 20, 1.24)),
    )
    profile = profile_of(found, "cpu")
    assert sum(profile.top_shares) == pytest.approx(1.0)
    assert profile.top_shares[0] == pytest.approx(profile.kinds["product"] / profile.wall_s)


def test_profiles_stored_by_earlier_versions_are_scaled_when_they_are_shown():
    old = Profile(
        case=make_case(), started=WHEN, outcome="ok", wall_s=1.0, operators=40.0, operators_s=1.5,
        top=(Operator("aten::mm", 20, 1.0), Operator("aten::add", 20, 0.62)),
    )  # fmt: skip
    assert sum(old.top_shares) == pytest.approx(1.0)


def rated(products_s, peak=None):
    profile = Profile(
        case=make_case(), started=WHEN, outcome="ok", wall_s=1.0, operators=1.0, operators_s=1.0,
        kinds={"product": products_s},
    )  # fmt: skip
    return find_product_rate(profile, CATALOG["ce-short"], peak)


def peak_of(flops_per_s):
    return find_peaks([make_limit(flops_per_s=flops_per_s)])["", "cpu", "fp32"]


def test_the_rate_of_the_products_is_their_work_over_their_time_against_the_limit():
    work = flops(CATALOG["ce-short"], "train")
    assert rated(0.5) == ProductRate(work / 0.5, None)
    assert rated(0.5, peak_of(4 * work)).of_limit == pytest.approx(0.5)


def test_a_rate_above_the_limit_is_not_printed_because_products_were_not_recognised():
    work = flops(CATALOG["ce-short"], "train")
    assert rated(0.01, peak_of(work)) is None
    assert rated(0.0) is None


@pytest.mark.parametrize(
    ("bottleneck", "of_limit", "granularity", "said"),
    [
        ("launch-bound", None, "fine", "one CUDA graph"),
        ("dispatch-bound", None, "fine", "pack the gates"),
        ("memory-bound", None, "fine", "fuse the element-wise operators"),
        ("matrix-multiply-bound", 0.9, "fine", "near the machine's limit"),
        ("matrix-multiply-bound", 0.3, "fine", "pack the gates into one product, or use a larger batch"),
        ("matrix-multiply-bound", None, "stack", "larger batch"),
        ("", None, "fine", "no single change"),
    ],
)
def test_every_bottleneck_has_a_line_of_advice(bottleneck, of_limit, granularity, said):
    advice = find_remedy(Bottleneck(bottleneck, ""), ProductRate(1e9, of_limit), granularity)
    assert said in advice
    assert "\n" not in advice


def test_only_a_loop_of_separate_gates_is_told_to_pack_them():
    for name in ("launch-bound", "dispatch-bound", "matrix-multiply-bound"):
        assert "pack" not in find_remedy(Bottleneck(name, ""), None, "stack")
