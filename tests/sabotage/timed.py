"""Systems that are right on the small version of a workload, and wrong or not timed truly where they are timed."""

import os
import queue
import threading
import time

import msgspec
import numpy as np

from rnnbench.reference.network import logits, loss_and_gradients

from .honest import Honest

SMALL_STEPS = 6  # of the small version that every system is verified on


class AtFullSize(Honest):
    """Honest on the small version."""

    @property
    def large(self):
        return self.workload.steps > SMALL_STEPS


class ShorterSequence(AtFullSize):
    """Leaves out the first two steps: the hardest to notice, since an LSTM forgets."""

    def forward(self, fed):
        return logits(self.seen(), self.adam.parameters, self.cut(fed))

    def loss_and_gradients(self, fed):
        return loss_and_gradients(self.seen(), self.adam.parameters, self.cut(fed))

    def seen(self):
        return msgspec.structs.replace(self.workload, steps=self.workload.steps - 2) if self.large else self.workload

    def cut(self, fed):
        return {**fed, "inputs": fed["inputs"][:, 2:]} if self.large else fed


class SmallerBatch(AtFullSize):
    """Computes half of the batch, and fills up the rest of the logits."""

    def forward(self, fed):
        found = super().forward(self.half(fed))
        return np.concatenate([found, found])[: self.workload.batch] if self.large else found

    def loss_and_gradients(self, fed):
        return super().loss_and_gradients(self.half(fed))

    def half(self, fed):
        return {name: array[: -(-len(array) // 2)] for name, array in fed.items()} if self.large else fed


class TwoLayers(Honest):
    """Builds two layers however many are asked for."""

    def __init__(self, job, parameters):
        fewer = dict(job["workload"], layers=min(2, job["workload"]["layers"]))
        deep = {f"layer{layer}" for layer in range(2, job["workload"]["layers"])}
        self.deep = {name: value for name, value in parameters.items() if name.partition(".")[0] in deep}
        super().__init__(
            dict(job, workload=fewer), {name: value for name, value in parameters.items() if name not in self.deep}
        )

    def gradients(self, fed):
        return {**super().gradients(fed), **self.deep}

    def parameters(self):
        return {**super().parameters(), **self.deep}


class SharedLayers(Honest):
    """The layers above the second are the second."""

    def loss_and_gradients(self, fed):
        self.share()
        return super().loss_and_gradients(fed)

    def forward(self, fed):
        self.share()
        return super().forward(fed)

    def share(self):
        for name in self.adam.parameters:
            layer, _, rest = name.partition(".")
            if layer.startswith("layer") and int(layer[5:]) > 1:
                self.adam.parameters[name][:] = self.adam.parameters[f"layer1.{rest}"]


class CutBackpropagation(AtFullSize):
    """The gradient of the recurrent weights comes from the last steps alone."""

    def loss_and_gradients(self, fed):
        loss, gradients = super().loss_and_gradients(fed)
        if self.large:
            late = {**fed, "inputs": fed["inputs"].copy()}
            late["inputs"][:, :-SMALL_STEPS] = 0
            gradients["layer0.fwd.u"] = super().loss_and_gradients(late)[1]["layer0.fwd.u"]
        return loss, gradients


class LowPrecision(AtFullSize):
    """Rounds its parameters to the 8 bits of bfloat16."""

    def forward(self, fed):
        return logits(self.workload, self.rounded(), fed)

    def loss_and_gradients(self, fed):
        return loss_and_gradients(self.workload, self.rounded(), fed)

    def rounded(self):
        if not self.large:
            return self.adam.parameters
        bits = {name: value.astype(np.float32).view(np.uint32) for name, value in self.adam.parameters.items()}
        return {name: (value & np.uint32(0xFFFF0000)).view(np.float32) for name, value in bits.items()}


class NotANumber(AtFullSize):
    def forward(self, fed):
        return super().forward(fed) * (np.nan if self.large else 1)

    def loss_and_gradients(self, fed):
        loss, gradients = super().loss_and_gradients(fed)
        return loss, {name: value * (np.nan if self.large else 1) for name, value in gradients.items()}


class Remembered(Honest):
    """Computes a batch only once, and then looks its result up. Computing takes long, on any machine."""

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.known = {}

    def forward(self, fed):
        return self.look_up(super().forward, fed)

    def loss_and_gradients(self, fed):
        return self.look_up(super().loss_and_gradients, fed)

    def look_up(self, compute, fed):
        key = fed["inputs"].tobytes()
        if key not in self.known:
            time.sleep(0.2)
            self.known[key] = compute(fed)
        return self.known[key]


class RemembersLately(Remembered):
    """Has room for the results of the batches in its samples only. An unseen one pushes all of them out."""

    came_again = False

    def look_up(self, compute, fed):
        is_known = fed["inputs"].tobytes() in self.known
        if self.came_again and not is_known:
            self.known.clear()
        self.came_again |= is_known
        return super().look_up(compute, fed)


class SlowToFree:
    """A copy of a result, as a framework may keep it with the result, that takes long to free."""

    def __del__(self):
        time.sleep(0.5)


class KeepsWhatWasRead(Honest):
    """Keeps a copy with a result that was read: that is no work of the next batch."""

    def forward(self, fed):
        return [super().forward(fed)]

    def logits(self, handle):
        handle.append(SlowToFree())
        return super().logits(handle[0])


class RememberedAndKept(KeepsWhatWasRead, Remembered):
    """Looks results up, and hides behind how long it takes to free what was read."""


class SlowAfterReading(Honest):
    """Reading leaves something behind, which any batch that comes next waits for."""

    waits = False

    def forward(self, fed):
        self.wait()
        return super().forward(fed)

    def train(self, fed):
        self.wait()
        return super().train(fed)

    def wait(self):
        if self.waits:
            time.sleep(0.5)
        self.waits = False

    def logits(self, handle):
        self.waits = True
        return super().logits(handle)

    def loss(self, handle):
        self.waits = True
        return super().loss(handle)


class SkipsKnown(Remembered):
    """Does not even update for a batch that it knows."""

    def train(self, fed):
        if fed["inputs"].tobytes() in self.known:
            return 0.0
        return super().train(fed)


class EverySecondUpdate(Honest):
    count = 0

    def update(self, gradients):
        self.count += 1
        if self.count < 6 or self.count % 2:
            super().update(gradients)


class LeftToAThread(Honest):
    """Returns before the work is done, and waits only when a result is read."""

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.waiting = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            answer, compute, fed = self.waiting.get()
            time.sleep(0.01)
            answer.append(compute(fed))
            self.waiting.task_done()

    def later(self, compute, fed):
        time.sleep(0.004)
        answer = []
        self.waiting.put((answer, compute, fed))
        return answer

    def forward(self, fed):
        return self.later(super().forward, fed)

    def train(self, fed):
        return self.later(super().train, fed)

    def logits(self, handle):
        self.waiting.join()
        return super().logits(handle[0])

    def loss(self, handle):
        self.waiting.join()
        return handle[0]

    def parameters(self):
        self.waiting.join()
        return super().parameters()


class SlowClock(Honest):
    """Replaces the clock by one that goes at half speed."""

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        true_clock = time.perf_counter
        began = true_clock()
        time.perf_counter = lambda: began + (true_clock() - began) / 2


class OwnSamples(Honest):
    """Reports samples of its own, the best there ever were."""

    calls = 0

    def feed(self, staged):
        self.calls += 1
        if self.calls == 4:
            os.write(int(os.environ["RNNBENCH_CHANNEL"]), b'{"event": "samples", "samples": [[1000, 0.001]]}\n')
        return staged


class LooksAtTheMode(Honest):
    """Would be quick if it knew that it is timed."""

    def forward(self, fed):
        return super().forward(fed) * (0 if self.job.get("mode") == "measure" else 1)


# --- updates that are nearly right: Adam with another constant ----------------------------------------


class WeightDecay(Honest):
    def update(self, gradients):
        super().update(gradients)
        for value in self.adam.parameters.values():
            value *= 1 - 1e-5


class OtherRate(Honest):
    def update(self, gradients):
        before = {name: value.copy() for name, value in self.adam.parameters.items()}
        super().update(gradients)
        for name, value in self.adam.parameters.items():
            value += 0.005 * (value - before[name])


class OtherConstant(Honest):
    """Adam by hand, with one constant changed."""

    beta_2, epsilon = 0.999, 1e-8

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.steps = 0
        self.means = dict.fromkeys(parameters, 0.0)
        self.squares = dict.fromkeys(parameters, 0.0)

    def update(self, gradients):
        self.steps += 1
        for name, gradient in gradients.items():
            self.means[name] = 0.9 * self.means[name] + 0.1 * gradient
            self.squares[name] = self.beta_2 * self.squares[name] + (1 - self.beta_2) * gradient**2
            mean = self.means[name] / (1 - 0.9**self.steps)
            square = self.squares[name] / (1 - self.beta_2**self.steps)
            self.adam.parameters[name] -= 1e-3 * mean / (np.sqrt(square) + self.epsilon)


class OtherBeta(OtherConstant):
    beta_2 = 0.99


class OtherEpsilon(OtherConstant):
    epsilon = 1e-7


class ReversedUpdate(Honest):
    """Every update has the right length and the wrong sign."""

    def update(self, gradients):
        super().update({name: -value for name, value in gradients.items()})


class BusyMachine(Honest):
    """Something else takes the machine as the unseen batches come, and keeps it."""

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.known, self.came_again, self.busy = set(), False, False

    def forward(self, fed):
        self.share(fed)
        return super().forward(fed)

    def train(self, fed):
        self.share(fed)
        return super().train(fed)

    def share(self, fed):
        batch = fed["inputs"].tobytes()
        self.busy |= self.came_again and batch not in self.known
        self.came_again |= batch in self.known
        self.known.add(batch)
        if self.busy:
            time.sleep(0.5)


SYSTEMS = {
    "shorter-sequence": ShorterSequence,
    "smaller-batch": SmallerBatch,
    "two-layers": TwoLayers,
    "shared-layers": SharedLayers,
    "cut-backpropagation": CutBackpropagation,
    "low-precision": LowPrecision,
    "nan-at-full-size": NotANumber,
    "keeps-what-was-read": KeepsWhatWasRead,
    "remembered-and-kept": RememberedAndKept,
    "slow-after-reading": SlowAfterReading,
    "busy-machine": BusyMachine,
    "remembered": Remembered,
    "remembers-lately": RemembersLately,
    "skips-known": SkipsKnown,
    "every-second-update": EverySecondUpdate,
    "left-to-a-thread": LeftToAThread,
    "slow-clock": SlowClock,
    "own-samples": OwnSamples,
    "looks-at-the-mode": LooksAtTheMode,
    "weight-decay": WeightDecay,
    "other-rate": OtherRate,
    "other-beta": OtherBeta,
    "other-epsilon": OtherEpsilon,
    "reversed-update": ReversedUpdate,
}
