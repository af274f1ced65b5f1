"""Canonical parameters go into every granularity's own layout and come back unchanged, gate by gate."""

from itertools import combinations

import numpy as np
import pytest

from rnnbench.domain.catalog import parse_workload
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs
from rnnbench.reference.network import logits
from rnnbench.verify.compare import TOLERANCES, relative_error
from systems_helpers import LANGUAGE, SPEECH, job_for, run_snippet

pytestmark = pytest.mark.torch

GRANULARITIES = ["fine", "packed", "cell", "stack"]
GATES = "ifgo"
PACKED = "pytorch/packed/eager"


def arrays(path):
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def exchanging_gates(parameters, first, second):
    """The same network with two of its gates taking each other's weights and biases."""
    order = [second if gate == first else first if gate == second else gate for gate in range(len(GATES))]

    def exchanged(array):
        gates = np.split(array, len(GATES), axis=-1)
        return np.concatenate([gates[gate] for gate in order], axis=-1)

    return {name: exchanged(array) if name.startswith("layer") else array for name, array in parameters.items()}


ROUND_TRIP = """
import numpy as np
parameters, _ = load_inputs(job["inputs"])
answer = job["granularities"]
for granularity in answer:
    np.savez(granularity + ".npz", **framework.build(dict(job, granularity=granularity), parameters).parameters())
"""


@pytest.mark.parametrize("workload", [LANGUAGE, SPEECH], ids=["language", "speech"])
def test_parameters_come_back_from_every_granularity_to_the_bit(pytorch, tmp_path, workload):
    run_snippet(pytorch, job_for(PACKED, workload, tmp_path) | {"granularities": GRANULARITIES}, ROUND_TRIP)
    given = make_parameters(parse_workload(workload))
    for granularity in GRANULARITIES:
        back = arrays(tmp_path / f"{granularity}.npz")
        assert list(back) == list(given)
        for name, array in given.items():
            assert back[name].dtype == np.float32
            assert back[name].tobytes() == array.tobytes(), f"{granularity} gives back another {name}"


# Every gate's numbers are its place in the canonical order, and so is the answer.
PLACES = """
import torch
from rnnbench_systems_pytorch.stacks import FineCell, FusedCell, PackedCell, VendorStack

def marked(rows):
    return torch.arange(4.0).repeat_interleave(2).expand(rows, 8)

fine, packed, fused = (cell(3, 2) for cell in (FineCell, PackedCell, FusedCell))
stack = VendorStack({"cell": "lstm", "input_width": 3, "hidden": 2, "layers": 1, "directions": ["fwd", "bwd"]})
for cell in (fine, packed, fused):
    cell.assign(marked(3), marked(2), marked(1)[0])
for direction in (0, 1):
    stack.assign(0, direction, marked(3), marked(2), marked(1)[0])
own = [fused, stack.rnn, stack.rnn]
suffixes = ["", "_l0", "_l0_reverse"]
kinds = [kind + gate for gate in "ifgo" for kind in ("w_", "u_", "b_")]
answer = {
    "fine": [sorted(set(getattr(fine, kind).flatten().tolist())) for kind in kinds],
    "packed": [packed.w[0].tolist(), packed.u[0].tolist(), packed.b.tolist()],
    "torch": [
        [getattr(one, name + suffix).reshape(8, -1)[:, 0].tolist() for name in ("weight_ih", "weight_hh", "bias_ih")]
        for one, suffix in zip(own, suffixes)
    ],
    "second": [getattr(one, "bias_hh" + suffix).tolist() for one, suffix in zip(own, suffixes)],
}
"""


def test_each_gate_lies_where_its_cell_says_and_the_second_bias_is_zero(pytorch, tmp_path):
    found = run_snippet(pytorch, job_for(PACKED, SPEECH, tmp_path), PLACES)
    canonical = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert found["fine"] == [[gate] for gate in range(4) for _ in "wub"]
    assert found["packed"] == [canonical] * 3
    assert found["torch"] == [[canonical] * 3] * 3  # nn.LSTMCell, nn.LSTM forward and in reverse
    assert found["second"] == [[0.0] * 8] * 3


LOGITS = """
import numpy as np
answer = job["files"]
for name in answer:
    parameters, batches = load_inputs(name + ".npz")
    found = {}
    for granularity in job["granularities"]:
        program = framework.build(dict(job, granularity=granularity), parameters)
        found[granularity] = program.logits(program.forward(program.feed(program.stage(batches[0]))))
    np.savez(name + "-logits.npz", **found)
"""


def test_two_gates_exchanged_are_seen_in_every_granularity(pytorch, tmp_path):
    workload = parse_workload(LANGUAGE)
    given, batches = make_parameters(workload), make_batches(workload, 1)
    files = {"straight": given}
    for first, second in combinations(range(len(GATES)), 2):
        files[f"{GATES[first]}-{GATES[second]}"] = exchanging_gates(given, first, second)
    for name, parameters in files.items():
        write_inputs(tmp_path / f"{name}.npz", parameters, batches)
    job = job_for(PACKED, LANGUAGE, tmp_path) | {"granularities": GRANULARITIES, "files": list(files)}
    run_snippet(pytorch, job, LOGITS)

    expected = logits(workload, given, batches[0])
    for name in files:
        for granularity, found in arrays(tmp_path / f"{name}-logits.npz").items():
            error = relative_error(found, expected)
            seen = error > 10 * TOLERANCES["fp32"]
            assert seen == (name != "straight"), f"{granularity} with {name}: {error:.1g}"


GRADIENTS = """
import torch
from rnnbench_systems_pytorch.network import ReadGradient, ReadValue
from rnnbench_systems_pytorch.stacks import FusedCell, PackedCell, VendorStack

fused = FusedCell(3, 2)
stack = VendorStack({"cell": "lstm", "input_width": 3, "hidden": 2, "layers": 1, "directions": ["fwd"]})
pairs = [(fused.bias_ih, fused.bias_hh), (stack.rnn.bias_ih_l0, stack.rnn.bias_hh_l0)]
for first, second in pairs:
    first.data.fill_(1.0), second.data.fill_(4.0)
    first.grad, second.grad = torch.full((8,), 1.0), torch.full((8,), 4.0)
bare = PackedCell(3, 2)
bare.w.grad = torch.ones(3, 8)
answer = {
    "values": [fused.canonical(ReadValue())[2].tolist(), stack.canonical(0, 0, ReadValue())[2].tolist()],
    "gradients": [fused.canonical(ReadGradient())[2].tolist(), stack.canonical(0, 0, ReadGradient())[2].tolist()],
    "missing": [bool(tensor.isnan().all()) for tensor in bare.canonical(ReadGradient())],
}
"""


def test_two_biases_read_as_the_sum_of_their_values_and_the_mean_of_their_gradients(pytorch, tmp_path):
    found = run_snippet(pytorch, job_for(PACKED, SPEECH, tmp_path), GRADIENTS)
    assert found["values"] == [[5.0] * 8] * 2
    assert found["gradients"] == [[2.5] * 8] * 2
    assert found["missing"] == [False, True, True]  # never computed is not a number, so that it cannot pass for zero
