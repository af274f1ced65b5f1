"""A training step of three cells whose loops are kernels, for compute-sanitizer, NVIDIA's tool that finds mistakes in
memory and races. In the repository's root, with a Python that has PyTorch:

    PYTHONPATH=src:tests/rnnfuse compute-sanitizer --tool memcheck PYTHON benchmarks/rnnfuse_sanitizer.py

and once more with `--tool racecheck`. It prints which loops were kernels, and ends with 1 if one was not.
"""

import sys

sys.path.pop(0)  # this folder, where a file has the name of the library

import torch
from cells import FineLstm, GruBefore, LayerNormLstm

import rnnfuse
from rnnfuse import measuring, private
from rnnfuse.persistent import choice

STEPS, BATCH, WIDTH, HIDDEN = 5, 40, 48, 64  # several programs for units and for sequences, of which some have a part


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here")
    # Of one tile, for as short as possible: under the tool each instruction takes a hundred times as long.
    choice.GRIDS, choice.STEPS, measuring.ROUNDS = 1, 2, 1
    private.remember = lambda key, text: None  # such times are for nobody else
    kernels = 0
    for kind in (FineLstm, GruBefore, LayerNormLstm):
        layer = rnnfuse.Recurrent(kind(WIDTH, HIDDEN).cuda(), persistent=True, replay=False)
        outputs, _ = layer(torch.randn(STEPS, BATCH, WIDTH, device="cuda"))
        outputs.sum().backward()
        torch.cuda.synchronize()
        said = [line.strip() for line in layer.explain().splitlines() if "is one kernel" in line]
        print(f"{kind.__name__}:", *said, sep="\n  ")
        kernels += len(said)
    sys.exit(kernels != 6)


if __name__ == "__main__":
    main()
