"""Systems that are not timed truly, and honest ones that look like them."""

import os
import queue
import threading
import time

from .honest import Honest


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


class Acquaintance:
    """Tells a batch that comes for the first time after others came again: one that no sample has had."""

    def __init__(self):
        self.known, self.came_again = set(), False

    def is_unseen(self, fed):
        batch = fed["inputs"].tobytes()
        is_known = batch in self.known
        self.known.add(batch)
        self.came_again |= is_known
        return self.came_again and not is_known


class RemembersLately(Remembered):
    """Has room for the results of the batches in its samples only. An unseen one pushes all of them out."""

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.acquaintance = Acquaintance()

    def look_up(self, compute, fed):
        if self.acquaintance.is_unseen(fed):
            self.known.clear()
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


class Waits(Honest):
    """Waits before a batch, if it wants to."""

    def forward(self, fed):
        self.wait(fed)
        return super().forward(fed)

    def train(self, fed):
        self.wait(fed)
        return super().train(fed)


class SlowAfterReading(Waits):
    """Reading leaves something behind, which any batch that comes next waits for."""

    waits = False

    def wait(self, fed):
        if self.waits:
            time.sleep(0.5)
        self.waits = False

    def logits(self, handle):
        self.waits = True
        return super().logits(handle)

    def loss(self, handle):
        self.waits = True
        return super().loss(handle)


class BusyMachine(Waits):
    """Something else takes the machine as the unseen batches come, and keeps it."""

    busy = False

    def __init__(self, job, parameters):
        super().__init__(job, parameters)
        self.acquaintance = Acquaintance()

    def wait(self, fed):
        self.busy |= self.acquaintance.is_unseen(fed)
        if self.busy:
            time.sleep(0.5)


class SkipsKnown(Remembered):
    """Does not even update for a batch that it knows."""

    def train(self, fed):
        if fed["inputs"].tobytes() in self.known:
            return 0.0
        return super().train(fed)


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


SYSTEMS = {
    "keeps-what-was-read": KeepsWhatWasRead,
    "remembered-and-kept": RememberedAndKept,
    "slow-after-reading": SlowAfterReading,
    "busy-machine": BusyMachine,
    "remembered": Remembered,
    "remembers-lately": RemembersLately,
    "skips-known": SkipsKnown,
    "left-to-a-thread": LeftToAThread,
    "slow-clock": SlowClock,
    "own-samples": OwnSamples,
    "looks-at-the-mode": LooksAtTheMode,
}
