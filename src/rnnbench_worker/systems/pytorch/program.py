"""A PyTorch network as a program: feeding, training steps, and reading back what was computed."""

import torch

from rnnbench_worker.canonical import batch_first, with_lengths
from rnnbench_worker.program import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Program

from .compat import Adam
from .network import ReadGradient, ReadValue, at_least_fp32, canonical, loss_of

#: Read by the host even on CUDA: packing sequences and the CTC loss need them there.
HOST_ONLY = ("lengths", "target_lengths")


class TorchProgram(Program):
    """Forward and training steps with an execution wrapped around the network."""

    def __init__(self, job, network, wrap):
        self._workload = job["workload"]
        self._exact = job["precision"] == "fp64"  # only where a user's own cell says what is right
        self._network = network.double() if self._exact else network.to(job["device"])
        self._wrap = wrap
        self._wrapped = None
        self._bf16 = job["precision"] == "bf16"
        self._cuda = job["device"] == "cuda"
        self._packs = job["granularity"] == "stack"
        self._device = torch.device(job["device"])
        self._optimiser = Adam(
            self._network.parameters(),
            lr=LEARNING_RATE,
            betas=(BETA_1, BETA_2),
            eps=EPSILON,
            **self.optimiser_options(),
        )

    def optimiser_options(self):
        return {}

    @property
    def device(self):
        return next(self._network.parameters()).device.type

    # --- data ---

    def stage(self, batch):
        """As tensors; pinned, so that the host does not wait for the copy to the device."""
        completed = with_lengths(batch, self._workload)
        tensors = {name: torch.from_numpy(value) for name, value in completed.items()}
        if self._exact:
            tensors = {name: one.double() if one.is_floating_point() else one for name, one in tensors.items()}
        if self._workload["variable_length"]:
            tensors["step_lengths"] = tensors["lengths"]
        return {name: tensor.pin_memory() for name, tensor in tensors.items()} if self._cuda else tensors

    def feed(self, staged):
        if not self._cuda:
            return staged
        return {
            name: tensor if name in HOST_ONLY else tensor.to(self._device, non_blocking=True)
            for name, tensor in staged.items()
        }

    # --- computing ---

    def forward(self, fed):
        with torch.no_grad():
            return self._logits(fed)

    def train(self, fed):
        self._optimiser.zero_grad()
        loss = self._loss(fed)
        loss.backward()
        self._optimiser.step()
        return loss.detach()

    def _loss(self, fed):
        return loss_of(self._workload, self._logits(fed), fed)

    def _logits(self, fed):
        arguments = self._arguments(fed)
        if not self._bf16:
            return self._call(arguments)
        # Mixed precision as users apply it: parameters and optimiser in fp32, products in bf16.
        with torch.autocast(self._device.type, dtype=torch.bfloat16, cache_enabled=False):
            return self._call(arguments)

    def _call(self, arguments):
        if self._wrapped is None:
            self._wrapped = self._wrap(self._network, arguments)
        return self._wrapped(*arguments)

    def _arguments(self, fed):
        if self._workload["variable_length"]:
            return fed["inputs"], fed["lengths" if self._packs else "step_lengths"]
        return (fed["inputs"],)

    def sync(self, handle):
        if self._cuda:
            torch.cuda.synchronize()

    def stopwatch(self):
        return EventClock() if self._cuda else None

    # --- reading back ---

    def loss(self, handle):
        return float(handle)

    def logits(self, handle):
        return batch_first(at_least_fp32(handle.detach()).cpu().numpy())

    def gradients(self, fed):
        self._optimiser.zero_grad()
        self._loss(fed).backward()
        return canonical(self._network, self._workload, ReadGradient())

    def parameters(self):
        return canonical(self._network, self._workload, ReadValue())

    def parameter_count(self):
        return sum(parameter.numel() for parameter in self._network.parameters() if parameter.requires_grad)

    def how_it_ran(self):
        stack = self._network.stack
        if self._bf16 and hasattr(stack, "rnn"):
            return said_of_autocast(stack.rnn, self._device)
        return getattr(stack, "how_it_ran", "")

    def peak_device_bytes(self):
        return torch.cuda.max_memory_reserved() if self._cuda else None


class EventClock(object):
    """CUDA events as a stopwatch: the device's own time of a block, as a check on the host's clock."""

    def __init__(self):
        self._first, self._last = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def start(self):
        self._first.record()

    def stop(self):
        self._last.record()

    def seconds(self):
        return self._first.elapsed_time(self._last) / 1000.0


def said_of_autocast(rnn, device):
    """Where autocast ran a vendor's layers in another type than it was told: it has cuDNN's in float16 only."""
    with torch.no_grad(), torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False):
        found = rnn(torch.zeros(1, 1, rnn.input_size, device=device))[0].dtype
    return "computed in float16: autocast has no other type for cuDNN's layers" if found is torch.float16 else ""
