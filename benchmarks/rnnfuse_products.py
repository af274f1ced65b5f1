"""How long rnnfuse's large products take on a GPU, by cuBLAS and on tensor cores with each tile, and how exact it is.

In the repository's root, with a Python that has PyTorch and Triton:

    PYTHONPATH=src PYTHON benchmarks/rnnfuse_products.py [--sizes 6400,256,1024 …] [--tiles 128,128,32,8 …]

Microseconds of a product, without the host's part; the largest error against float64, as a part of the largest value.
A gradient of weights is a product with its left side turned, one of inputs a product with its right side turned.
"""

import argparse
import sys
from functools import partial

sys.path.pop(0)  # this folder, where a file has the name of the library

import torch

from rnnfuse.large_products import TILES, Tile, run_kernel
from rnnfuse.measuring import microseconds_captured
from rnnfuse.streams import OwnStream

#: Rows, inner dimension and columns of `ptb-lm`'s products (50 × 128 rows, 256 units) and of a layer of 320 units over
#: 64 × 1,000 steps: of the inputs, of their gradients, and of the weights' gradients.
SIZES = [(6400, 256, 1024), (6400, 1024, 256), (256, 6400, 1024), (64000, 320, 1280), (320, 64000, 1280)]
CALLS = 10


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, nargs="+", default=SIZES, help="rows,inner,columns")
    parser.add_argument("--tiles", type=numbers, nargs="*", default=[], help="others: rows,columns,inner,warps")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here")
    torch.backends.cuda.matmul.allow_tf32 = False
    tiles = [*TILES, *[Tile(*one) for one in given.tiles]]
    print("rows × inner × columns (turned)", "cuBLAS", *["×".join(map(str, tile)) for tile in tiles], sep=" | ")
    for rows, inner, columns in given.sizes:
        for turned in ("", "left") if inner > rows else ("", "right"):
            left = torch.randn(inner, rows, device="cuda").t() if turned == "left" else _normal(rows, inner)
            right = torch.randn(columns, inner, device="cuda").t() if turned == "right" else _normal(inner, columns)
            shown = [_measured(partial(torch.mm, left, right), left, right)]
            shown += [_measured(partial(run_kernel, left, right, tile), left, right) for tile in tiles]
            print(f"{rows} × {inner} × {columns} ({turned or 'none'})", *shown, sep=" | ", flush=True)


def _normal(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, device="cuda")


def _measured(call: "partial[torch.Tensor]", left: torch.Tensor, right: torch.Tensor) -> str:
    try:
        took = microseconds_captured(lambda: [call() for _ in range(CALLS)], OwnStream(left.device)) / CALLS
        exact = left.double() @ right.double()
        error = float((call() - exact).abs().max() / exact.abs().max())
    except Exception as failed:  # a tile may ask for too much
        return f"{type(failed).__name__}"
    return f"{took:.1f} µs, {error:.1e}"


if __name__ == "__main__":
    main()
