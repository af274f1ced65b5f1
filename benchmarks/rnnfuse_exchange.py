"""What a layer norm costs in a persistent kernel: a step as it is, and if programs told each other numbers for nothing.

On a GPU, in the repository's root, with a Python that has PyTorch and Triton:

    PYTHONPATH=src:tests/rnnfuse PYTHON benchmarks/rnnfuse_exchange.py [--units 256] [--batch 64]

For nothing: each program takes its own numbers for those of all. What comes out is wrong, its time is the least that a
layer norm takes, however fast an exchange may be; `rnnfuse_exchange_alone.py` measures how fast one can be.
"""

import argparse
import sys
from unittest import mock

sys.path.pop(0)  # this folder, where a file has the name of the library

import torch
from cells import FineLstm, LayerNormLstm

import rnnfuse
from rnnfuse import private
from rnnfuse.persistent import reductions

STEPS, INPUT = 200, 32


def for_nothing(self, node, level, own, neutral="0.0"):
    """In place of Reductions._loaded: no memory, no barrier, as many operations on what would have come."""
    width = reductions.WIDTH
    tiles = [f"({first} + tl.arange(0, {width})[None, :])" for first in range(0, self._most, width)]
    there = [f"in_rows & ({programs} < PROGRAMS)" for programs in tiles]
    return [
        [self._text.assign(level + 1, "numbers", f"tl.where({mask}, {name}, {neutral})") for mask in there]
        for name in own
    ]


def tell_steps(title, kind, units, batch):
    layer = rnnfuse.Recurrent(kind(INPUT, units).cuda(), persistent=True, replay=False)
    outputs, _ = layer(torch.randn(STEPS, batch, INPUT, device="cuda"))
    outputs.sum().backward()
    print(f"{title}:", *(line.strip() for line in layer.explain().splitlines() if "one kernel" in line), sep="\n  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here")
    shape = given.units, given.batch
    tell_steps("LSTM", FineLstm, *shape)
    tell_steps("layer norm", LayerNormLstm, *shape)
    for width in (8, 16):  # of tiles with programs' numbers: threads meet least often if it is that of the units
        with (
            mock.patch.object(reductions.Reductions, "_loaded", for_nothing),
            mock.patch.object(reductions, "WIDTH", width),
            mock.patch.object(private, "remember"),  # such times are for nobody else
            mock.patch.object(private, "remembered", return_value=None),
        ):
            tell_steps(f"layer norm, numbers told for nothing, in tiles of {width}", LayerNormLstm, *shape)


if __name__ == "__main__":
    main()
