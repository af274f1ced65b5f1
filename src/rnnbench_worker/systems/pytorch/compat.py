"""What older versions of PyTorch lack, in one home: the rest of the folder is written for 1.0 to today's.

Only what can be made up for without changing what is measured. What cannot is declared in the manifest,
by version.
"""

import ctypes
import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


class Unchanged(nn.Module):
    """nn.Identity, which came in 1.1."""

    def forward(self, x):
        return x


Identity = getattr(nn, "Identity", Unchanged)


class ScaledAdam(torch.optim.Adam):
    """Before 1.3 epsilon was added to the root before that was corrected; scaled at every step it is as published."""

    def __init__(self, parameters, eps, **options):
        super(ScaledAdam, self).__init__(parameters, eps=eps, **options)
        self._published = eps
        self._steps = 0

    def step(self):
        self._steps += 1
        for group in self.param_groups:
            group["eps"] = self._published * math.sqrt(1 - group["betas"][1] ** self._steps)
        super(ScaledAdam, self).step()


Adam = torch.optim.Adam if VERSION >= (1, 3) else ScaledAdam


def run_packed(lstm, xs, lengths):
    """All steps of padded sequences, each by its own length; zero beyond its end."""
    if VERSION >= (1, 1):
        packed = pack_padded_sequence(xs, lengths, enforce_sorted=False)
        return pad_packed_sequence(lstm(packed)[0], total_length=xs.size(0))[0]
    # As later versions do it themselves: longest first, and back again.
    descending, order = torch.sort(lengths, descending=True)
    packed = pack_padded_sequence(xs.index_select(1, order), descending)
    outputs = pad_packed_sequence(lstm(packed)[0], total_length=xs.size(0))[0]
    return outputs.index_select(1, torch.sort(order)[1])


def has_mkldnn():
    try:
        from torch.backends import mkldnn
    except ImportError:  # not before 1.1
        return False
    return mkldnn.is_available()


def threads():
    """As PyTorch has them. 1.0 answers 1 whatever is set; OpenMP, which it leaves the matter to, knows."""
    return torch.get_num_threads() if VERSION >= (1, 3) else ctypes.CDLL(None).omp_get_max_threads()


def allow_tf32(wanted):
    """A mode of 1.7 and later: before, fp32 is fp32."""
    if VERSION >= (1, 7):
        torch.backends.cuda.matmul.allow_tf32 = wanted
        torch.backends.cudnn.allow_tf32 = wanted  # on by default: fp32 would not be fp32


def allow_recompiling(times):
    """How many versions of one code object torch.compile makes before it gives up and runs eagerly."""
    import torch._dynamo  # which 2.0 does not do by itself

    config = torch._dynamo.config
    # Named otherwise until 2.6.
    setattr(config, "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit", times)
