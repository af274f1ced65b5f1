"""The whole network: embedding or features, recurrent stack, head; its loss; its canonical parameters."""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rnnbench_worker.canonical import join_bias_gradients, join_bias_values, weight_names

from .compat import Identity


class Network(nn.Module):
    """`network(inputs, lengths)` gives logits `[steps, batch, classes]`, or `[batch, classes]`."""

    def __init__(self, workload, stack):
        super(Network, self).__init__()
        embeds = bool(workload["vocabulary"])
        self.embedding = nn.Embedding(workload["vocabulary"], workload["embedding"]) if embeds else Identity()
        self.stack = stack
        self.head = nn.Linear(workload["output_width"], workload["classes"], bias=workload["head_bias"])
        self.last_step = workload["head_on"] == "last-step"

    def forward(self, inputs: Tensor, lengths: Optional[Tensor] = None) -> Tensor:
        xs = self.embedding(inputs.transpose(0, 1))
        hs = self.stack(xs, lengths)
        if self.last_step:
            hs = hs[-1]
        return self.head(hs)


def at_least_fp32(tensor):
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def loss_of(workload, logits, batch):
    """The workload's loss in fp32 or better: mean cross-entropy, or CTC as a mean over sequences."""
    logits = at_least_fp32(logits)
    if workload["loss"] == "ctc":
        total = F.ctc_loss(
            F.log_softmax(logits, dim=2),
            batch["targets"],
            batch["lengths"],
            batch["target_lengths"],
            blank=0,
            reduction="sum",
        )
        return total / logits.size(1)
    targets = batch["targets"]
    if logits.dim() == 3:
        return F.cross_entropy(logits.reshape(-1, logits.size(2)), targets.t().reshape(-1))
    return F.cross_entropy(logits, targets)


def assign(network, workload, parameters):
    """Set all parameters from canonical arrays."""
    values = {name: torch.from_numpy(value) for name, value in parameters.items()}
    with torch.no_grad():
        if workload["vocabulary"]:
            network.embedding.weight.copy_(values["embedding"])
        for layer in range(workload["layers"]):
            for index, direction in enumerate(workload["directions"]):
                names = weight_names(layer, direction, workload["weights"])
                network.stack.assign(layer, index, *[values[name] for name in names])
        network.head.weight.copy_(values["head.w"].t())
        if workload["head_bias"]:
            network.head.bias.copy_(values["head.b"])


def canonical(network, workload, read):
    """What `read` reads of each parameter, as canonical arrays."""
    tensors = {}
    if workload["vocabulary"]:
        tensors["embedding"] = read(network.embedding.weight)
    for layer in range(workload["layers"]):
        for index, direction in enumerate(workload["directions"]):
            names = weight_names(layer, direction, workload["weights"])
            tensors.update(zip(names, network.stack.canonical(layer, index, read)))
    tensors["head.w"] = read(network.head.weight).t()
    if workload["head_bias"]:
        tensors["head.b"] = read(network.head.bias)
    return {name: tensor.contiguous().numpy() for name, tensor in tensors.items()}


class ReadValue(object):
    """Reads the value of a parameter; two added biases count as their sum."""

    def __call__(self, parameter):
        return at_least_fp32(parameter.detach()).cpu().clone()

    join = staticmethod(join_bias_values)


class ReadGradient(object):
    """Reads the gradient of a parameter; each of two added biases has the gradient of their sum."""

    def __call__(self, parameter):
        if parameter.grad is None:
            return torch.full(parameter.shape, float("nan"))
        return at_least_fp32(parameter.grad.detach()).cpu().clone()

    join = staticmethod(join_bias_gradients)
