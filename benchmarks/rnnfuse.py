"""How fast rnnfuse runs cells of users: beside the plain loop, and beside nn.LSTM. All in one run, interleaved.

Run it with a Python that has PyTorch (`rnnbench env create pytorch` prints the path of one), in the repository's root:

    PYTHONPATH=src:tests/rnnfuse PYTHON benchmarks/rnnfuse.py [--device cuda] [--workload ptb] [--phase forward]

A training step is whole, with Adam. On CUDA every program is also captured as a CUDA graph, and the most memory that
one step takes is told. With `--kernels` also which kernels each program is, after all times: profiling slows it down.
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
    "long-64-256": (1000, 64, 123, 256, 1, 10),
    "ptb": (50, 128, 128, 256, 3, 10001),
}
CELLS = {
    "fine LSTM": FineLstm,
    "peephole": Peephole,
    "layer norm": LayerNormLstm,
    "GRU, reset before": GruBefore,
    "sLSTM": SLstm,
}


#: What may be done with a cell that stays in a loop. TorchScript traces it: it cannot script what has no annotations.
MODES = {
    "loop": lambda cell, *_: cell,
    "trace": lambda cell, *given: torch.jit.trace(cell, given, check_trace=False, strict=False),
    "compile": lambda cell, *_: torch.compile(cell),
}
PROFILED = 5  # steps
VENDORS = {"nn.LSTM": nn.LSTM, "nn.GRU": nn.GRU}


class PlainLoop(nn.Module):
    def __init__(self, cell, mode):
        super().__init__()
        self.cell, self._mode, self._step = cell, mode, None

    def forward(self, xs):
        state, outputs = self.cell.initial_state(xs[0]), []
        if self._step is None:
            self._step = MODES[self._mode](self.cell, xs[0], state)
        for x in xs.unbind(0):
            state = self._step(x, state)
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


def loops_of(kind, mode):
    def make(shape):
        _, _, width, hidden, layers, _ = shape
        return nn.ModuleList(PlainLoop(kind(hidden if k else width, hidden), mode) for k in range(layers))

    return make


def fused_of(kind, persistent=False):
    def make(shape):
        _, _, width, hidden, layers, _ = shape
        cells = [kind(hidden if k else width, hidden) for k in range(layers)]
        return nn.ModuleList([rnnfuse.Stack(cells, persistent=persistent)])

    return make


def vendor(kind=nn.LSTM):
    def make(shape):
        _, _, width, hidden, layers, _ = shape
        return nn.ModuleList([kind(width, hidden, layers)])

    return make


def step_of(model, shape, chosen):
    """A function that runs one batch."""
    device, (steps, batch, width, _, _, classes) = chosen.device, shape
    words = model.embedding is not None
    inputs = torch.randint(classes, (steps, batch)) if words else torch.randn(steps, batch, width)
    targets = torch.randint(classes, (steps, batch) if words else (batch,))
    inputs, targets = inputs.to(device), targets.to(device)
    how = {"fused": chosen.fused_adam or None, "capturable": device == "cuda"}
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, **how)

    def loss():
        with torch.autocast(device, torch.bfloat16, enabled=chosen.precision == "bf16"):
            return F.cross_entropy(model(inputs).flatten(0, -2).float(), targets.flatten())

    def forward():
        with torch.no_grad():
            loss()

    def train():
        optimiser.zero_grad(set_to_none=True)
        loss().backward()
        optimiser.step()

    return train if chosen.phase == "train" else forward


def captured(step):
    for _ in range(3):
        step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        step()
    return graph.replay


def peak_megabytes(step):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def print_kernels(name, step, longest=24):
    """Where the GPU's time goes within a step, most first."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(PROFILED):
            step()
        torch.cuda.synchronize()
    kernels = sorted(profiler.key_averages(), key=lambda one: -one.self_device_time_total)
    total = sum(one.self_device_time_total for one in kernels) / PROFILED
    print(f"\n{name}: {total / 1e3:.2f} ms in {sum(one.count for one in kernels) / PROFILED:.0f} kernels a step")
    for one in kernels[:longest]:
        print(f"{one.self_device_time_total / PROFILED:9.1f} us in {one.count / PROFILED:4.0f}  {one.key[:100]}")


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
    parser.add_argument("--phase", default="train", choices=["train", "forward"])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16"])
    parser.add_argument("--persistent", action="store_true", help="also with loops as one kernel, where that is faster")
    parser.add_argument("--kernels-only", action="store_true", help="rnnfuse only with loops as one kernel")
    parser.add_argument("--kernels", action="store_true", help="also where the GPU's time goes within a step")
    parser.add_argument("--fused-adam", action="store_true", help="by one kernel, which is not PyTorch's default")
    parser.add_argument("--modes", nargs="*", default=["loop"], choices=MODES, help="of cells in a loop, if any")
    chosen = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = chosen.precision == "tf32"
    torch.set_flush_denormal(True)
    shape, device = WORKLOADS[chosen.workload], chosen.device
    if device == "cuda":  # what is captured later must not have run on the default stream
        torch.cuda.set_stream(torch.cuda.Stream())
    builders = {name: vendor(kind) for name, kind in VENDORS.items()}
    for name in chosen.cells:
        for mode in chosen.modes:
            builders[f"{name}, {mode}"] = loops_of(CELLS[name], mode)
        if not chosen.kernels_only:
            builders[f"{name}, rnnfuse"] = fused_of(CELLS[name])
        if chosen.persistent or chosen.kernels_only:
            builders[f"{name}, persistent"] = fused_of(CELLS[name], None)
    programs, steps = {}, []
    for name, build in builders.items():
        torch.manual_seed(0)
        model = Model(build, shape).to(device)
        step = step_of(model, shape, chosen)
        first = seconds_of(step, device)
        memory = f", {peak_megabytes(step):.0f} MB" if device == "cuda" else ""
        print(f"{name}: first step {first:.1f} s{memory}", flush=True)
        if name.endswith("persistent"):
            print("\n".join(sorted({line for line in model.stack[0].explain().splitlines() if "one kernel" in line})))
        steps.append(step)  # a graph does not keep its inputs alive
        programs[name] = step
        if device == "cuda":
            programs[f"{name}, CUDA graph"] = captured(step)
    times = {name: [] for name in programs}
    end = time.perf_counter() + chosen.seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name, step in programs.items():
            times[name].append(seconds_of(step, device))
    standard = statistics.median(times["nn.LSTM, CUDA graph" if device == "cuda" else "nn.LSTM"])
    fused = ", fused Adam" if chosen.fused_adam else ""
    print(f"\n{chosen.workload}, {chosen.phase}, {device}, {chosen.precision}{fused}; over nn.LSTM")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"{name:40} {1e3 * middle:9.2f} ms  {middle / standard:6.2f}  ({len(found)} steps)")
    for name, step in programs.items() if chosen.kernels and device == "cuda" else ():
        if name.endswith("CUDA graph"):
            print_kernels(name, step)


if __name__ == "__main__":
    main()
