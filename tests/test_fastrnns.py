"""PyTorch's own benchmark of recurrent networks (benchmarks/fastrnns): which of its rows is which of ours.

Its runner has sixteen rows of recurrent networks, and four of convolutional ones (resnet18, resnet18_jit, resnet50,
resnet50_jit), which are not a matter of ours.
"""

import subprocess

import pytest

from rnnbench.domain.catalog import parse_workload
from rnnbench.environments.environment import child_variables
from rnnbench.files import worker_package
from rnnbench.known import known_entries
from rnnbench.manifests import manifests

NAMES = (
    "cudnn", "cudnn_dropout", "cudnn_layernorm", "vl_cudnn", "vl_jit", "vl_py", "aten", "jit", "jit_premul",
    "jit_premul_bias", "jit_simple", "jit_multilayer", "jit_layernorm", "jit_layernorm_decom", "jit_dropout", "py",
)  # fmt: skip

#: name -> system, the workload or the ability in which it is that row, and what is different.
OURS = {
    "cudnn": ("pytorch/stack/eager", "ce-short", "on CUDA"),
    "aten": ("pytorch/cell/eager", "ce-short", "without cuDNN, nn.LSTM on CUDA runs the operator of nn.LSTMCell"),
    "py": ("pytorch/packed/eager", "ce-short", ""),
    "jit": ("pytorch/packed/script", "ce-short", ""),
    "jit_simple": ("pytorch/packed/script", "ce-short", "its program differs in how TorchScript passes tensors only"),
    "jit_multilayer": ("pytorch/packed/script", "ptb-lm", "three layers"),
    "jit_premul": ("pytorch/packed/rnnfuse", "ce-short", "rnnfuse takes the product of all inputs out of the loop"),
    "jit_premul_bias": ("pytorch/packed/rnnfuse", "ce-short", "and the bias"),
    "jit_layernorm": ("pytorch/packed/script", "normalisation", ""),
    "jit_layernorm_decom": ("pytorch/packed/compile-cell", "normalisation", "Inductor writes it out"),
    "cudnn_layernorm": ("pytorch/stack/eager", "normalisation", "cuDNN has none: there it is a bound, here it is a no"),
    "jit_dropout": ("pytorch/packed/script", "recurrent-dropout", "there it is between layers, here within the step"),
    "cudnn_dropout": (
        "pytorch/stack/eager",
        "recurrent-dropout",
        "it drops between layers only: here it is a no",
    ),
    "vl_cudnn": ("pytorch/stack/eager", "variable-lengths", "timed in bi-ctc-long"),
    "vl_jit": ("pytorch/packed/script", "variable-lengths", "timed in bi-ctc-long"),
    "vl_py": ("pytorch/packed/eager", "variable-lengths", "timed in bi-ctc-long"),
}


def test_every_row_of_a_recurrent_network_is_one_of_ours():
    assert set(OURS) == set(NAMES)
    assert {system for system, _, _ in OURS.values()} <= {one.name for one in manifests()["pytorch"].system}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_workload_that_can_be_timed_or_an_ability_that_was_tried(name):
    system, what, _ = OURS[name]
    entries = {one.ability: one for one in known_entries() if (one.system, one.device) == (system, "cpu")}
    if what in entries:
        expected = "no" if name in ("cudnn_layernorm", "cudnn_dropout") else "yes"
        assert entries[what].verdict == expected
        assert name != "cudnn_dropout" or "between layers" in entries[what].reason
    else:
        assert parse_workload(what).cell == "lstm"


EXPLAIN = """
import sys
import torch
from rnnfuse import Recurrent
from rnnbench_worker.systems.pytorch.stacks import PackedCell

cell = PackedCell(9, 12)
for parameter in cell.parameters():
    torch.nn.init.uniform_(parameter)
layer = Recurrent(cell, compile=False)
zeros = torch.zeros(5, 12)
layer(torch.randn(6, 5, 9), (zeros, zeros))[0].sum().backward()
print(layer.explain())
"""


@pytest.mark.torch
def test_rnnfuse_multiplies_the_inputs_of_all_steps_ahead(pytorch):
    """As `jit_premul` and `jit_premul_bias` do by hand."""
    variables = {**child_variables(external=pytorch.external), "PYTHONPATH": str(worker_package().resolve().parent)}
    ended = subprocess.run([pytorch.python, "-c", EXPLAIN], capture_output=True, text=True, check=True, env=variables)
    ahead = next(
        line for line in ended.stdout.splitlines() if line.endswith("ahead of the loop, over all steps at once")
    )
    assert "1 of them products" in ahead
