"""Systems that are right on the small version of a workload, and wrong at full size."""

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


SYSTEMS = {
    "shorter-sequence": ShorterSequence,
    "smaller-batch": SmallerBatch,
    "two-layers": TwoLayers,
    "shared-layers": SharedLayers,
    "cut-backpropagation": CutBackpropagation,
    "low-precision": LowPrecision,
    "nan-at-full-size": NotANumber,
}
