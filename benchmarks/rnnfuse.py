"""How fast rnnfuse runs cells of users: beside the plain loop, and beside nn.LSTM. All in one run, interleaved.

Run it with a Python that has PyTorch (`rnnbench env create pytorch` prints the path of one), in the repository's root:

    PYTHONPATH=src:tests/rnnfuse PYTHON benchmarks/rnnfuse.py [--device cuda] [--workload ptb] [--seconds 20]

On CUDA every program is also captured as a CUDA graph, whole training steps with Adam.
"""

import argparse
import statistics
import sys
import time

sys.path.pop(0)  # this folder, where this file has the name of the library

import torch
from cells import FineLstm, GruBefore, LayerNormLstm, Peephole, SLstm
from torch import nn
from torch.nn import functional as F

import rnnfuse

#: steps, batch, input width, hidden, layers, classes; words are embedded
WORKLOADS = {
    "ce-short": (100, 64, 123, 320, 1, 10),
    "ce-long": (1000, 32, 123, 320, 1, 10),
    "long-64": (1000, 64, 123, 320, 1, 10),
    "ptb": (50, 128, 128, 256, 3, 10001),
}
CELLS = {
    "fine LSTM": FineLstm,
    "peephole": Peephole,
    "layer norm": LayerNormLstm,
    "GRU, reset before": GruBefore,
    "sLSTM": SLstm,
}


class PlainLoop(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, xs):
        state, outputs = self.cell.initial_state(xs[0]), []
        for x in xs.unbind(0):
            state = self.cell(x, state)
            first = (
                state
                if isinstance(state, torch.Tensor)
                else next(iter(state.values() if isinstance(state, dict) else state))
            )
            outputs.append(first)
        return torch.stack(outputs), state


class Model(nn.Module):
    def __init__(self, make_stack, shape):
        super().__init__()
        _, _, width, hidden, _, classes = shape
        self.embedding = nn.Embedding(classes, width) if classes > 1000 else None
        self.stack = make_stack(shape)
        self.head = nn.Linear(hidden, classes)

    def forward(self, inputs):
        xs = inputs if self.embedding is None else self.embedding(inputs)
        for layer in self.stack:
            xs = layer(xs)[0]
        return self.head(xs if self.embedding is not None else xs[-1])


def stack_of(kind, wrap):
    def make(shape):
        _, _, width, hidden, layers, _ = shape
        return nn.ModuleList(wrap(kind(hidden if k else width, hidden)) for k in range(layers))

    return make


def vendor(shape):
    _, _, width, hidden, layers, _ = shape
    return nn.ModuleList([nn.LSTM(width, hidden, layers)])


def training_step(model, shape, device):
    steps, batch, width, _, _, classes = shape
    words = model.embedding is not None
    inputs = torch.randint(classes, (steps, batch)) if words else torch.randn(steps, batch, width)
    targets = torch.randint(classes, (steps, batch) if words else (batch,))
    inputs, targets = inputs.to(device), targets.to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=device == "cuda")

    def step():
        optimiser.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
        loss.backward()
        optimiser.step()

    return step


def captured(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def seconds_of(call, device):
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--workload", default="ce-short", choices=WORKLOADS)
    parser.add_argument("--cells", nargs="*", default=list(CELLS), choices=CELLS)
    parser.add_argument("--seconds", type=float, default=30.0, help="of timing, for all programs together")
    parser.add_argument("--tf32", action="store_true")
    chosen = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = chosen.tf32
    torch.set_flush_denormal(True)
    shape, device = WORKLOADS[chosen.workload], chosen.device
    builders = {"nn.LSTM": vendor}
    for name in chosen.cells:
        builders[f"{name}, loop"] = stack_of(CELLS[name], PlainLoop)
        builders[f"{name}, rnnfuse"] = stack_of(CELLS[name], rnnfuse.Recurrent)
    programs = {}
    for name, build in builders.items():
        torch.manual_seed(0)
        step = training_step(Model(build, shape).to(device), shape, device)
        print(f"{name}: first step {seconds_of(step, device):.1f} s", flush=True)
        programs[name] = step
        if device == "cuda":
            programs[f"{name}, CUDA graph"] = captured(step)
    times = {name: [] for name in programs}
    end = time.perf_counter() + chosen.seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name, step in programs.items():
            times[name].append(seconds_of(step, device))
    standard = statistics.median(times["nn.LSTM, CUDA graph" if device == "cuda" else "nn.LSTM"])
    print(f"\n{chosen.workload}, training, {device}{', tf32' if chosen.tf32 else ''}; over nn.LSTM")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"{name:40} {1e3 * middle:9.2f} ms  {middle / standard:6.2f}  ({len(found)} steps)")


if __name__ == "__main__":
    main()
