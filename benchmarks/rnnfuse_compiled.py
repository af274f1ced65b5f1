"""What the compiler makes of a cell's kernels for a GPU that need not be here: instructions, registers, spills.

In the repository's root, with a Python that has PyTorch and Triton:

    PYTHONPATH=src:tests/rnnfuse PYTHON benchmarks/rnnfuse_compiled.py --cell LayerNormLstm --units 256
    PYTHONPATH=OTHER/src:tests/rnnfuse PYTHON benchmarks/rnnfuse_compiled.py --cell LayerNormLstm

The second is of another checkout. A line for each tile that would be tried on that GPU. It says nothing about time,
but much about what cannot be fast: weights that spill, and threads of a program that wait for each other.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.pop(0)  # this folder, where a file has the name of the library

import cells
import torch
import triton
from helpers import both
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from rnnfuse import passes
from rnnfuse.persistent import choice
from rnnfuse.persistent.memory import Role
from rnnfuse.persistent.text import Inexpressible

TYPES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int64: "i64"}
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
COLUMNS = "{:9} {:6} {:>4} {:>5} {:>5} {:>12} {:>8} {:>8} {:>9} {:>6}"
HEADER = COLUMNS.format(
    *("pass", "prec", "rows", "units", "warps", "instructions", "barriers", "waits", "registers", "spills")
)


def compiled(kernel, loop, tile, architecture):
    """The machine code of a kernel, by the compiler that Triton has with it."""
    writer, function = kernel._written(tile.warps, kernel.coming(tile))
    types = dict.fromkeys(function.arg_names, "i32") | {"counters": "*i32"}
    constants = {}
    for place in writer.places:
        memory, *_, last = place.parameters
        is_own = place.role in (Role.SCRATCH, Role.AHEAD)  # no value of the plan
        dtype = place.dtype if is_own else loop.buffers.plan.dtype(place.node)
        types[memory] = f"*{TYPES[dtype]}"
        constants[last] = int(place.columns > 0)  # as it is in a call: what has columns has them side by side
    programs = tile.grid(loop.buffers.rows, kernel.units)[1]
    names = ("BLOCK_ROWS", "BLOCK_UNITS", "PROGRAMS", "PRECISION")
    constants |= dict(zip(names, (tile.rows, tile.units, programs, tile.precision), strict=True))
    types |= dict.fromkeys(constants, "constexpr")
    source = ASTSource(fn=function, signature=types, constexprs=constants)
    options = {"num_warps": tile.warps, "num_stages": 1}
    return triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options).asm["cubin"]


def described(binary):
    """Of a step: its instructions, how often threads of a program meet, and how often one waits for other programs.
    Of the kernel: registers of a thread, and bytes of its stack, where values lie that have none."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        listing, usage = (
            subprocess.run([TOOLS / "cuobjdump", option, file.name], capture_output=True, text=True, check=True).stdout
            for option in ("-sass", "-res-usage")
        )
    lines = [(int(at, 16), text) for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(.*?);", listing)]
    # Loops go back on a condition. What goes back without one lies apart, for threads that are not together.
    ways = [(at, int(to, 16)) for at, text in lines for to in re.findall(r"^@!?U?P\d BRA .*?(0x[0-9a-f]+)", text)]
    loops = [(at - to, to, at) for at, to in ways if to < at]
    _, start, end = max(loops)
    step = [text for at, text in lines if start <= at <= end]
    waits = sum(start < to and at < end for _, to, at in loops)
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", usage).groups()
    return len(step), sum("BAR.SYNC" in text for text in step), waits, int(registers), int(stack)


def main():
    kinds = sorted(kind.__name__ for kind in cells.CELLS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cell", choices=kinds, default="FineLstm", help="of tests/rnnfuse/cells.py")
    parser.add_argument("--units", type=int, default=256)
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--architecture", type=int, default=90, help="90: Hopper")
    parser.add_argument("--processors", type=int, default=132, help="multiprocessors of the GPU; an H200 has 132")
    given = parser.parse_args()
    choice.processors = lambda device: given.processors
    torch.backends.cuda.matmul.allow_tf32 = given.tf32
    known, lines = set(), 0

    def run_range(loop, start, stop):
        nonlocal lines
        loop.run(start, stop)
        if loop.form in known:
            return
        known.add(loop.form)
        name = "backwards" if loop.form.from_the_end else "forwards"
        try:
            kernel = choice._kernel(loop)
        except Inexpressible as error:
            print(f"{name}: {error}")
            return
        for tile in choice._tiles(kernel, loop):
            found = described(compiled(kernel, loop, tile, given.architecture))
            print(COLUMNS.format(name, tile.precision, tile.rows, tile.units, tile.warps, *found), flush=True)
            lines += 1

    passes.run_range = run_range
    print(HEADER)
    cell = getattr(cells, given.cell)(8, given.units)
    both(cell, torch.randn(2, given.sequences, 8), compile=False)
    if not lines:
        sys.exit("no loop can be a kernel there")


if __name__ == "__main__":
    main()
