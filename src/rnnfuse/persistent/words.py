"""Numbers that programs tell each other without a barrier: each in one word of 64 bits with the tag of its step.

A word is written and read as a whole. So whoever finds the step's tag in it has the step's number, and whoever finds
another reads again.
"""

from __future__ import annotations

from collections.abc import Iterable

#: What follows in another layout must not be computed again in it from the beginning: Triton 3.6 would even wait for
#: the same words again, once for each of their layouts. It does not look behind such a loop, which runs once.
_COMPUTED_ONCE = """
@triton.jit
def computed_once(value, steps):
    found = tl.zeros(value.shape, value.dtype)
    left = steps
    while left > 0:
        found = value
        left = 0
    return found

"""

#: Threads that have the same number write the same word.
_TELL = """
@triton.jit
def tell(address, number, tag, mask):
    tl.inline_asm_elementwise(
        '''{
            .reg .pred writes;
            .reg .b64 word;
            setp.ne.s32 writes, $4, 0;
            mov.b64 word, {$2, $3};
            @writes st.relaxed.gpu.global.b64 [$1], word;
            mov.s32 $0, 0;
        }''',
        "=r,l,r,r,r", [address.to(tl.int64), number.to(tl.int32, bitcast=True), tag, mask.to(tl.int32)],
        dtype=tl.int32, is_pure=False, pack=1,
    )

"""


def functions(counts: Iterable[int]) -> str:
    """`tell`, and for each count the function that waits for so many words, all of them under way at once."""
    wanted = sorted(set(counts))
    return _COMPUTED_ONCE + _TELL + "".join(map(_told, wanted)) if wanted else ""


def _told(count: int) -> str:
    numbers = range(count)
    tag = f"${2 * count}"
    waits = [f"setp.ne.s32 waits, tag0, {tag};"]
    waits += [f"setp.ne.or.s32 waits, tag{n}, {tag}, waits;" for n in numbers[1:]]
    lines = [
        ".reg .pred waits;",
        *(f".reg .b64 word{n}; .reg .b32 number{n}, tag{n};" for n in numbers),
        "again:",
        *(f"ld.relaxed.gpu.global.b64 word{n}, [${count + n}];" for n in numbers),
        *(f"mov.b64 {{number{n}, tag{n}}}, word{n};" for n in numbers),
        *waits,
        "@waits bra again;",
        *(f"mov.b32 ${n}, number{n};" for n in numbers),
    ]
    addresses = [f"address{n}" for n in numbers]
    results = [f"word{n}" for n in numbers]
    constraints = ",".join(["=r"] * count + ["l"] * count + ["r"])
    given = ", ".join([*(f"{one}.to(tl.int64)" for one in addresses), "tag"])
    found = ", ".join(f"computed_once({one}.to(tl.float32, bitcast=True), steps)" for one in results)
    dtypes = "tl.int32" if count == 1 else f"({'tl.int32, ' * count})"
    assembler = "\n            ".join(lines)
    return f"""
@triton.jit
def told{count}({", ".join([*addresses, "tag", "steps"])}):
    {", ".join(results)} = tl.inline_asm_elementwise(
        '''{{
            {assembler}
        }}''',
        "{constraints}", [{given}],
        dtype={dtypes}, is_pure=False, pack=1,
    )
    return {found}

"""
