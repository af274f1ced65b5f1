"""Triton before 3.9 compiles assembler with side effects once for each layout that its results are wanted in.

Run it with a Python that has PyTorch and Triton; it compiles for an H200 and needs no GPU. Assembler that is declared
impure reads 16 rows of words, which 256 threads share. It prints in how many operations it is found after Triton's
passes, and in how many places of the machine's code: 1 of each is expected.
"""

import os
import tempfile

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(words, sums, found, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    at = row * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    word = tl.inline_asm_elementwise(
        "ld.relaxed.gpu.global.b32 $0, [$1];",
        "=r,l",
        [(words + at).to(tl.int64)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
    total = tl.sum(word, 1, keep_dims=True)
    tl.store(sums + row, total)  # Triton wants a column in another layout than a tile
    tl.store(found + at, word - total)


for rows, columns in ((16, 8), (16, 16)):
    constants = {"ROWS": rows, "COLUMNS": columns}
    types = dict.fromkeys(("words", "sums", "found"), "*i32") | dict.fromkeys(constants, "constexpr")
    source = ASTSource(fn=kernel, signature=types, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}).asm
    counts = made["ttgir"].count("tt.elementwise_inline_asm"), made["ptx"].count("ld.relaxed")
    print(f"Triton {triton.__version__}, {rows} × {columns}: {counts[0]} operations, {counts[1]} places")
