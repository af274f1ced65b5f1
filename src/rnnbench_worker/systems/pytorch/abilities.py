"""The abilities of PyTorch's systems: the program of each, run by the row's execution, or by the vendor's layer."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rnnbench_worker.abilities import CELLS as OWN_CELLS
from rnnbench_worker.abilities import (
    Cannot,
    arguments_of,
    probes_of,
    run_ability,
    sequences_of,
    weight_arrays,
)

from .ability_steps import AROUND, LOOPS, OWN, Around, FusedLoop, Loop
from .executions import EXECUTIONS, WARM_UP_STEPS, compile_cells, compiled_graph_count
from .network import ReadGradient
from .stacks import CELLS, VendorStack

# --- the vendor's layer -------------------------------------------------------------------------------


class VendorLayer(nn.Module):
    """torch.nn.LSTM, with lengths if it is given some. Of the cell states it has no more than zeros."""

    def __init__(self, workload, lengths):
        super(VendorLayer, self).__init__()
        self.cell = VendorStack(workload)
        self.lengths = lengths

    def forward(self, xs, flags, extra):
        if self.lengths is None:
            hs = self.cell.rnn(xs)[0]
        else:
            packed = pack_padded_sequence(xs, self.lengths, enforce_sorted=False)
            outputs, (last, _) = self.cell.rnn(packed)
            hs = torch.cat([pad_packed_sequence(outputs, total_length=xs.size(0))[0][:-1], last])
        return hs, torch.zeros_like(hs)


def vendor_layer(job, ability, arrays):
    """torch.nn.LSTM for what it may do; what it cannot, it is asked for, or its arguments say so."""
    stack = VendorStack(job["workload"])
    xs = torch.from_numpy(arrays["xs"])
    if ability in OWN_CELLS:
        offered = arguments_of(nn.RNNBase.__init__)
        raise Cannot("torch.nn.LSTM has one step; none of its arguments is for another: {}".format(offered))
    if ability == "recurrent-dropout":
        dropping = nn.LSTM(xs.size(2), job["workload"]["hidden"], dropout=0.5)
        dropping.load_state_dict(stack.rnn.state_dict())
        if torch.equal(dropping(xs)[0], stack.rnn(xs)[0]):
            raise Cannot(
                "torch.nn.LSTM drops between layers only: with dropout=0.5 one layer gives the same as without"
            )
    if ability == "all-states":
        found = list(stack.rnn(xs)[1][1].shape)
        raise Cannot("torch.nn.LSTM returns cell states {} for {} steps: the last ones".format(found, xs.size(0)))
    if ability in ("reset", "feedback", "attention", "recurrent-dropout"):
        offered = arguments_of(nn.LSTM.forward)
        raise Cannot("torch.nn.LSTM lets nothing into its steps: it is called with {}".format(offered))
    lengths = torch.from_numpy(arrays["lengths"]).long() if ability == "variable-lengths" else None
    return VendorLayer(job["workload"], lengths)


# --- running ------------------------------------------------------------------------------------------


def prove(job, ability, arrays):
    network = make_network(job, ability, arrays).to(job["device"])
    program = (CapturedProgram if job["execution"].endswith("cudagraph") else AbilityProgram)(job, network)
    return run_ability(ability, lambda steps: program.compute(ability, arrays, steps), program.builds)


def make_network(job, ability, arrays):
    """The ability's loop with its weights set; `cell` of it is what has them."""
    weights = {name: torch.from_numpy(array) for name, array in weight_arrays(ability, arrays).items()}
    width, hidden = weights["w"].size(0), weights["u"].size(0)
    if job["granularity"] == "stack":
        network = vendor_layer(job, ability, arrays)
        network.cell.assign(0, 0, *weights.values())
        return network
    if job["granularity"] == "cell" and ability in OWN_CELLS:
        offered = arguments_of(nn.LSTMCell.__init__)
        raise Cannot("torch.nn.LSTMCell is one operator; none of its arguments is for another: {}".format(offered))
    cell = OWN.get(ability, CELLS[job["granularity"]])(width, hidden)
    step = AROUND.get(ability, Around)(cell)
    if ability == "feedback":
        step.head = nn.Parameter(weights.pop("head").clone())
    with torch.no_grad():
        cell.assign(*list(weights.values())[:3])
        for name in list(weights)[3:]:
            getattr(cell, name).copy_(weights[name])
    return LOOPS.get(job["execution"].replace("-cudagraph", ""), Loop)(step, hidden)


class AbilityProgram(object):
    """A network under an execution, and how often that has built something."""

    def __init__(self, job, network):
        self._job = job
        self._network = network
        self._wrapped = None
        self.parameters = list(network.parameters())

    def compute(self, ability, arrays, steps):
        given = self.given(ability, arrays, steps)
        # TorchScript compiles in its second and third call only.
        for _ in range(3 if self._job["execution"] in ("script", "trace") else 1):
            outputs = self.step(ability, *given)
        return self.read(ability, arrays, outputs)

    def given(self, ability, arrays, steps):
        """The sequences and the probes, on the device."""
        every = sequences_of(ability, arrays, steps), probes_of(ability, arrays, steps)
        return [[torch.from_numpy(one.copy()).to(self._job["device"]) for one in some] for some in every]

    def step(self, ability, sequences, probes):
        """Forward and backward pass: the gradients are left in place."""
        for parameter in self.parameters:
            parameter.grad = None
        xs = sequences[0].requires_grad_(ability == "double-backward")
        outputs = self._call(sequences)
        if outputs[0].shape != probes[0].shape:  # traced for another number of steps: the driver shall see it
            return outputs
        loss = sum((one * probe).sum() for one, probe in zip(outputs, probes))
        if ability == "double-backward":
            (gradient,) = torch.autograd.grad(loss, xs, create_graph=True)
            loss = (gradient * gradient).sum()
        loss.backward()
        return outputs

    def _call(self, sequences):
        if self._wrapped is None:
            self._wrapped = self._wrap(tuple(sequences))
        return self._wrapped(*sequences)

    def _wrap(self, example):
        execution = self._job["execution"]
        if execution == "compile-cell":
            compile_cells([self._network])
            return self._network
        return EXECUTIONS.get(execution, EXECUTIONS["eager"])(self._network, example)

    def read(self, ability, arrays, outputs):
        found = {name: one.detach().cpu().numpy() for name, one in zip("hc", outputs)}
        names = list(weight_arrays(ability, arrays))
        network, read = self._network, ReadGradient()
        step = network.layer.cell.step if isinstance(network, FusedLoop) else network.cell
        step = getattr(step, "_orig_mod", step)  # torch.compile's module around it
        if isinstance(step, VendorStack):
            gradients = step.canonical(0, 0, read)
        else:
            gradients = step.cell.canonical(read) + [
                read(step.head if name == "head" else getattr(step.cell, name)) for name in names[3:]
            ]
        found.update(("gradient/" + name, one.contiguous().numpy()) for name, one in zip(names, gradients))
        if isinstance(network, FusedLoop) and "plain loop" in network.layer.explain():
            found["note"] = "rnnfuse " + network.layer.explain()
        return found

    def builds(self):
        """None: TorchScript does not count."""
        if self._job["execution"] in ("script", "trace"):
            return None
        fused = self._network.layer.compilations if isinstance(self._network, FusedLoop) else 0
        return compiled_graph_count() + fused


class CapturedProgram(AbilityProgram):
    """Forward and backward pass captured as a CUDA graph, one for each number of steps."""

    captures = 0

    def compute(self, ability, arrays, steps):
        given = self.given(ability, arrays, steps)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self.step(ability, *given)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = self.step(ability, *given)
        self.captures += 1
        graph.replay()
        torch.cuda.synchronize()
        return self.read(ability, arrays, outputs)

    def builds(self):
        return self.captures
