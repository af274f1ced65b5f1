"""Runs inside the PyTorch environment: rnnbench's clock and a plain loop, alternating block by block.

Prints one JSON line: the median seconds per batch of each. The bare loop shares no code with rnnbench: it is a plain
module, Adam, and time.perf_counter.
"""

import json
import statistics
import sys
import time

import torch
from torch import nn

from rnnbench_worker.clock import Runner
from rnnbench_worker.loading import load_framework, load_inputs


class PlainLSTM(nn.Module):
    """As in a tutorial: nn.LSTM, or gates written out."""

    def __init__(self, by_hand, features=123, hidden=320, classes=10):
        super().__init__()
        self.by_hand, self.hidden = by_hand, hidden
        if by_hand:
            self.w = nn.Parameter(torch.empty(features, 4 * hidden).uniform_(-0.05, 0.05))
            self.u = nn.Parameter(torch.empty(hidden, 4 * hidden).uniform_(-0.05, 0.05))
            self.b = nn.Parameter(torch.zeros(4 * hidden))
        else:
            self.lstm = nn.LSTM(features, hidden)
        self.out = nn.Linear(hidden, classes, bias=False)

    def forward(self, x):
        x = x.transpose(0, 1)
        if not self.by_hand:
            return self.out(self.lstm(x)[0][-1])
        h = torch.zeros(x.size(1), self.hidden)
        c = torch.zeros(x.size(1), self.hidden)
        hs = []
        for x_t in x.unbind(0):
            i, f, g, o = (x_t @ self.w + h @ self.u + self.b).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            hs.append(h)
        return self.out(torch.stack(hs)[-1])


def main():
    job = json.loads(sys.stdin.read())
    framework = load_framework(job["folder"], "pytorch")
    framework.describe(job)
    parameters, batches = load_inputs(job["inputs"])
    program = framework.build(job, parameters)
    runner = Runner(program, job["phase"], [program.stage(batch) for batch in batches])

    model = PlainLSTM(job["granularity"] == "packed")
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = [(torch.from_numpy(batch["inputs"]), torch.from_numpy(batch["targets"])) for batch in batches]
    criterion = nn.CrossEntropyLoss()

    def bare(count):
        start = time.perf_counter()
        for index in range(count):
            x, y = data[index % len(data)]
            optimiser.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimiser.step()
        return time.perf_counter() - start

    times = {"rnnbench": [], "bare": []}
    for index in range(job["rounds"] + 3):
        # The first of the two alternates, so that neither drift nor the state of the caches favours one of them.
        order = [("rnnbench", runner.block), ("bare", bare)]
        for name, block in order if index % 2 else reversed(order):
            seconds = block(job["block"]) / job["block"]
            if index >= 3:
                times[name].append(seconds)
    print(json.dumps({name: statistics.median(values) for name, values in times.items()}))


main()
