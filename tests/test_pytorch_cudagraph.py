"""What CUDA graphs can and cannot do, as far as a machine without a GPU can tell: the plan says it with reasons."""

import pytest

import rnnbench
from rnnbench.domain.run import Gpu

HOST_LOSS = "torch's CTC loss reads the sequence lengths on the host, which a CUDA graph cannot capture"
HOST_PACKING = "packing sequences reads their lengths on the host, which a CUDA graph cannot capture"
FUSED = ["pytorch/fine/rnnfuse-cudagraph", "pytorch/packed/rnnfuse-cudagraph"]
GRAPHS = [*(f"pytorch/{granularity}/cudagraph" for granularity in ("fine", "packed", "cell", "stack")), *FUSED]


@pytest.fixture
def gpu(private_folders, monkeypatch):
    """A machine that says it has one GPU. Nothing is run on it."""
    gpu = Gpu(name="NVIDIA H200", driver="580.1", memory_mib=143771)
    monkeypatch.setattr("rnnbench.plan.find_gpus", lambda: (gpu,))


def left_out(plan):
    return {(left.case.system, left.case.phase): left.reason for left in plan.left_out}


def test_a_graph_cannot_hold_ctc_training_nor_packed_sequences(gpu):
    plan = rnnbench.make_plan(GRAPHS, ["bi-ctc-long"])
    assert left_out(plan) == {
        ("pytorch/stack/cudagraph", "forward"): HOST_PACKING,
        **{(system, "train"): HOST_LOSS for system in GRAPHS},
    }
    loops = [system for system in GRAPHS if system != "pytorch/stack/cudagraph"]
    assert [(case.system, case.phase, case.device) for case in plan.cases] == [
        (one, "forward", "cuda") for one in loops
    ]


def test_sequences_of_one_length_need_no_packing(gpu):
    plan = rnnbench.make_plan(GRAPHS, ["bi-ctc-long[shortest=0]"], phases=["forward"])
    assert plan.left_out == ()
    assert [case.system for case in plan.cases] == GRAPHS


@pytest.mark.parametrize("workload", ["ptb-lm", "ce-short", "ce-long", "bi-ce-long"])
def test_everything_else_is_captured_in_every_precision(gpu, workload):
    plan = rnnbench.make_plan(GRAPHS, [workload], precisions=["fp32", "tf32", "bf16"])
    assert plan.left_out == ()
    assert len(plan.cases) == len(GRAPHS) * 2 * 3


def test_only_graphs_have_gaps_on_a_gpu(gpu):
    plan = rnnbench.make_plan(["pytorch/*"], precisions=["fp32", "tf32", "bf16"])
    assert {left.case.system for left in plan.left_out} == set(GRAPHS)


def test_the_gpu_is_taken_where_there_is_one_and_graphs_need_it(gpu, monkeypatch):
    assert {case.device for case in rnnbench.make_plan(GRAPHS, ["ce-short"]).cases} == {"cuda"}
    for device in ("cpu", "auto"):
        monkeypatch.setattr("rnnbench.plan.find_gpus", tuple)
        plan = rnnbench.make_plan(GRAPHS, ["ce-short"], device=device)
        assert plan.cases == ()
        assert {left.reason for left in plan.left_out} == {"a CUDA graph needs a CUDA device"}


@pytest.mark.parametrize("cell", ["gru", "peephole", "layernorm-lstm"])
def test_any_cell_is_captured_in_a_loop_and_by_rnnfuse(gpu, cell):
    rows = ["pytorch/packed/cudagraph", "pytorch/packed/rnnfuse-cudagraph"]
    plan = rnnbench.make_plan(rows, [f"ce-short[cell={cell}]"], phases=["train"])
    assert [case.system for case in plan.cases] == rows
