"""Every way of being wrong, each by the smallest possible change to the honest program."""

import os
import signal
import sys
import time

import msgspec
import numpy as np

from rnnbench.reference.network import logits, loss_and_gradients

from .honest import Honest


class StaleState(Honest):
    """Without recurrent weights every step sees the zero state: the bug of a published JIT model."""

    def __init__(self, job, parameters):
        kept = {name: value for name, value in parameters.items() if name.endswith(".u")}
        stale = {name: np.zeros_like(value) if name in kept else value for name, value in parameters.items()}
        super().__init__(job, stale)
        self.kept = kept

    def parameters(self):
        return {**super().parameters(), **self.kept}


class GateOrder(Honest):
    def __init__(self, job, parameters):
        super().__init__(job, {name: self.swap(name, value) for name, value in parameters.items()})

    @staticmethod
    def swap(name, value):
        if not name.startswith("layer"):
            return value
        i, f, g, o = np.split(value, 4, axis=-1)
        return np.concatenate([i, g, f, o], axis=-1)


class MissingGradient(Honest):
    def gradients(self, fed):
        found = super().gradients(fed)
        del found["layer0.fwd.u"]
        return found


class ScaledGradient(Honest):
    def loss_and_gradients(self, fed):
        loss, gradients = super().loss_and_gradients(fed)
        return loss, {name: 1.01 * value for name, value in gradients.items()}


class SkippedUpdate(Honest):
    def update(self, gradients):
        pass


class WrongReduction(Honest):
    def loss_and_gradients(self, fed):
        loss, gradients = super().loss_and_gradients(fed)
        return loss * self.workload.batch, gradients


class IgnoredLengths(Honest):
    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.full = msgspec.structs.replace(self.workload, shortest=0)

    def forward(self, fed):
        return logits(self.full, self.adam.parameters, fed)

    def loss_and_gradients(self, fed):
        everywhere = np.full(self.workload.batch, self.workload.steps)
        return loss_and_gradients(self.full, self.adam.parameters, {**fed, "lengths": everywhere})


class CachedOutput(Honest):
    kept = None

    def forward(self, fed):
        if self.kept is None:
            self.kept = super().forward(fed)
        return self.kept

    def loss_and_gradients(self, fed):
        if self.kept is None:
            self.kept = super().loss_and_gradients(fed)
        return self.kept


class NotANumber(Honest):
    def forward(self, fed):
        return super().forward(fed) * np.nan

    def loss_and_gradients(self, fed):
        return float("nan"), super().loss_and_gradients(fed)[1]


class Crash(Honest):
    def feed(self, staged):
        os.kill(os.getpid(), signal.SIGSEGV)


class Hang(Honest):
    def feed(self, staged):
        time.sleep(3600)


class Memory(Honest):
    def feed(self, staged):
        self.hoard = []
        while True:
            self.hoard.append(np.ones(1 << 24))


class Noise(Honest):
    def feed(self, staged):
        os.write(1, b'{"event": "done"}\n' + b"\xff\xfe noise \n" * 200_000)
        print("and some more", flush=True)
        print("on both", file=sys.stderr, flush=True)
        return staged


class SilentExit(Honest):
    def feed(self, staged):
        os._exit(0)


class Malformed(Honest):
    def feed(self, staged):
        os.write(int(os.environ["RNNBENCH_CHANNEL"]), b"this is not an event\n")
        time.sleep(3600)


class ImpossibleSamples(Honest):
    def feed(self, staged):
        os.write(int(os.environ["RNNBENCH_CHANNEL"]), b'{"event": "samples", "samples": [[5, -1.0]]}\n')
        time.sleep(3600)


class Elsewhere(Honest):
    device = "cuda"


class Raise(Honest):
    def feed(self, staged):
        raise ValueError("a message of its own\nwith a second line")


SYSTEMS = {
    "honest": Honest,
    "no-ctc": Honest,
    "stale-state": StaleState,
    "gate-order": GateOrder,
    "missing-gradient": MissingGradient,
    "scaled-gradient": ScaledGradient,
    "skipped-update": SkippedUpdate,
    "wrong-reduction": WrongReduction,
    "ignored-lengths": IgnoredLengths,
    "cached-output": CachedOutput,
    "nan": NotANumber,
    "crash": Crash,
    "hang": Hang,
    "memory": Memory,
    "noise": Noise,
    "silent-exit": SilentExit,
    "malformed": Malformed,
    "impossible-samples": ImpossibleSamples,
    "elsewhere": Elsewhere,
    "more-threads": Honest,
    "raise": Raise,
    "limit-crash": Honest,
    "limit-raise": Honest,
}


def crashing_product(size):
    os.kill(os.getpid(), signal.SIGSEGV)


def raising_product(size):
    raise RuntimeError("no product here")


#: These systems are honest, but the machine's limit cannot be measured with them.
RATES = {"limit-crash": {"product": crashing_product}, "limit-raise": {"product": raising_product}}
