"""A framework of made-up programs, each with its own answer to a new shape and to a profiler."""

import sys
from pathlib import Path

import pytest

from made_up import write_framework

WORKLOAD = "ce-short[batch=3,classes=2,features=2,hidden=2,steps=4]"

EXECUTIONS = ("kept", "growing", "late", "uncounted", "baked", "fixed", "blind", "hang")

CODE = '''
import gzip, json, os, time
import numpy as np
from rnnbench_worker.program import Program
from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Operation, Timeline


def describe(job):
    return {"versions": {"made": "up"}, "device": "cpu", "device_name": "", "threads": None}


def build(job, parameters):
    return Sum(job, parameters)


def builds(program):
    return None if program.how == "uncounted" else program.built


def profiler(job):
    return "nobody can look into it" if job["execution"] == "blind" else watch


def watch(program, block, folder):
    """A batch of 1 s: two products in a layer take 0.6 s of it, a copy on another thread overlaps with one of them."""
    block()
    operations = []
    for batch in range(BATCHES):
        operations += [
            Operation("layer", "0", batch, 0.9),
            Operation("matmul", "0", batch + 0.1, 0.3),
            Operation("matmul", "0", batch + 0.5, 0.3),
            Operation("copy", "1", batch + 0.1, 0.1),
        ]
    path = os.path.join(folder, "trace.json.gz")
    with gzip.open(path, "wt") as file:
        json.dump([], file)
    return Timeline(host=operations, device=[], batches=BATCHES, file=path)


class Sum(Program):
    def __init__(self, job, parameters):
        self.how = job["execution"]
        self.shape = (job["workload"]["batch"], job["workload"]["steps"])
        self.seen = {}
        self.built = 0
        self.weight = float(parameters.get("weight", 1.0))

    def feed(self, staged):
        return staged["inputs"]

    def forward(self, inputs):
        if self.how == "hang":
            time.sleep(3600)
        shape = inputs.shape[:2]
        self.seen[shape] = self.seen.get(shape, 0) + 1
        # One program builds when it first sees a shape, the other when it sees it for the second time.
        if self.seen[shape] == {"growing": 1, "late": 2}.get(self.how):
            self.built += 1
            time.sleep(0.05)
        if self.how == "fixed" and shape != self.shape:
            raise ValueError("made for {}\\nnot for {}".format(self.shape, shape))
        if self.how == "baked":
            inputs = inputs[:, : self.shape[1]]
        return self.weight * inputs.sum(axis=1)

    def train(self, inputs):
        loss = float((self.forward(inputs) ** 2).mean())
        self.weight *= 1.5
        return loss

    def loss(self, handle):
        return handle

    def logits(self, handle):
        return handle

    def parameters(self):
        return {"weight": np.array(self.weight)}

    def parameter_count(self):
        return 1
'''


@pytest.fixture
def shapes(private_folders, monkeypatch):

    from rnnbench.environments.external import use_interpreter

    monkeypatch.setenv("RNNBENCH_SYSTEMS", str(write_framework(private_folders / "shapes", EXECUTIONS, CODE)))
    use_interpreter("shapes", Path(sys.executable))
    return private_folders
