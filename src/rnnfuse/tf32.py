"""Float32 numbers for tensor cores, which multiply numbers of TF32.

A float32 number is multiplied as two: the nearest one of TF32, and the rest. Three products make one that is as exact
as one of float32; that of both rests is smaller than a float32 number can tell. Triton has such products (`tf32x3`); it
takes numbers apart in more instructions.
"""

#: It adds half of the last digit that TF32 has and cuts off the rest. Of what is infinite it is the largest number, so
#: the rest is infinite; what is no number has a rest that is none. ONCE: not in each warp again.
NEAREST = '''
@triton.jit
def nearest(x, ONCE: tl.constexpr):
    near = tl.inline_asm_elementwise(
        """{
            .reg .b32 more;
            add.s32 more, $1, 0x1000;
            min.s32 more, more, 0x7F7FFFFF;
            min.u32 more, more, 0xFF7FFFFF;
            and.b32 $0, more, 0xFFFFE000;
        }""",
        "=r,r", [x.to(tl.int32, bitcast=True)], dtype=tl.int32, is_pure=not ONCE, pack=1,
    )
    return near.to(tl.float32, bitcast=True)
'''
