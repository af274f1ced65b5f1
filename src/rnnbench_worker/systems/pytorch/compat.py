"""What older versions of PyTorch lack, in one place: the rest of the folder is written for 1.0 to the latest.

Only what can be added without changing what is measured. What cannot is declared in the manifest, by version.
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
    """Before 1.3 epsilon was added before the bias correction; scaled at every step it is the published one."""

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
    """All steps of padded sequences, each by its own length; zero after its end."""
    if VERSION >= (1, 1):
        packed = pack_padded_sequence(xs, lengths, enforce_sorted=False)
        return pad_packed_sequence(lstm(packed)[0], total_length=xs.size(0))[0]
    # As later versions do themselves: sort the longest first, and restore the order afterwards.
    descending, order = torch.sort(lengths, descending=True)
    packed = pack_padded_sequence(xs.index_select(1, order), descending)
    outputs = pad_packed_sequence(lstm(packed)[0], total_length=xs.size(0))[0]
    return outputs.index_select(1, torch.sort(order)[1])


def has_mkldnn():
    try:
        from torch.backends import mkldnn
    except ImportError:  # it came in 1.1
        return False
    return mkldnn.is_available()


def threads():
    """The number of threads. 1.0 always answers 1, so OpenMP is asked, which runs its threads."""
    return torch.get_num_threads() if VERSION >= (1, 3) else ctypes.CDLL(None).omp_get_max_threads()


def allow_tf32(wanted):
    """TF32 came in 1.7; before, fp32 is always fp32."""
    if VERSION >= (1, 7):
        torch.backends.cuda.matmul.allow_tf32 = wanted
        torch.backends.cudnn.allow_tf32 = wanted  # on by default, so that fp32 would not be fp32


def allow_recompiling(times):
    """How many versions of one code object torch.compile may make before it gives up and runs eagerly."""
    import torch._dynamo  # 2.0 does not import it by itself

    config = torch._dynamo.config
    # Older versions have another name for it.
    setattr(config, "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit", times)
