"""What a layer norm costs in a persistent kernel: a step as it is, and if programs told each other numbers for nothing.

On a GPU, in the repository's root, with a Python that has PyTorch and Triton:

    PYTHONPATH=src:tests/rnnfuse PYTHON benchmarks/rnnfuse_exchange.py [--units 256] [--batch 64]

For nothing: each program takes its own numbers for those of all. What comes out is wrong, its time is the least that a
layer norm takes, however fast an exchange may be. Then the fastest exchange that was found, alone: programs of a
cluster write into each other's shared memory and meet at the cluster's barrier. A cluster has at most 16 programs.
"""

import argparse
import ctypes
import sys
from functools import partial
from unittest import mock

sys.path.pop(0)  # this folder, where a file has the name of the library

import torch
from cells import FineLstm, LayerNormLstm

import rnnfuse
from rnnfuse import private
from rnnfuse.measuring import microseconds
from rnnfuse.persistent import reductions

STEPS, INPUT = 200, 32
EXCHANGES = 10_000
#: Each program tells all others two numbers for each of 16 rows; 256 threads.
EXCHANGE = """
extern "C" __global__ void __cluster_dims__(PROGRAMS) exchange(float* out, int times) {
    __shared__ float told[2][PROGRAMS][32];
    unsigned rank, memory = (unsigned)__cvta_generic_to_shared(&told[0][0][0]), there;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    float sum = threadIdx.x + rank;
    for (int time = 0; time < times; ++time) {
        int parity = time & 1, number = threadIdx.x % 32;
        unsigned at = memory + ((parity * PROGRAMS + rank) * 32 + number) * 4;
        for (int to = threadIdx.x / 32; to < PROGRAMS; to += 8) {
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(to));
            asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(there), "f"(sum) : "memory");
        }
        asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" : : : "memory");
        sum = 0;
        for (int from = 0; from < PROGRAMS; ++from)
            sum += ((volatile float*)told)[(parity * PROGRAMS + from) * 32 + number] / PROGRAMS;
    }
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
"""
LARGER_CLUSTERS = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: more than 8 programs


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


def tell_exchange(programs):
    source = EXCHANGE.replace("PROGRAMS", str(programs))
    kernel = torch.cuda._compile_kernel(source, "exchange")
    if programs > 8:
        assert ctypes.CDLL("libcuda.so.1").cuFuncSetAttribute(kernel.func, LARGER_CLUSTERS, 1) == 0
    out = torch.zeros(programs * 256, device="cuda")
    call = partial(kernel, (programs, 1, 1), (256, 1, 1), (out, EXCHANGES))
    took = microseconds(call) / EXCHANGES
    everywhere = torch.arange(32, device="cuda") + 112 + (programs - 1) / 2  # if each was told what the others had
    assert torch.allclose(out.view(-1, 32), everywhere.expand(programs * 8, 32)), out
    print(f"an exchange in a cluster of {programs} programs: {took:.2f} µs")


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
    for programs in (8, 16):
        tell_exchange(programs)


if __name__ == "__main__":
    main()
