"""How long programs take to tell each other two sums of each of 16 rows, in several ways, with nothing beside it.

On a GPU, with a Python that has PyTorch 2.9 or newer: PYTHON benchmarks/rnnfuse_exchange_alone.py [--programs 16]

Four groups of programs, each on a multiprocessor of its own, as rnnfuse has them for 64 sequences. In each round a
program adds up over its threads, tells all of its group, and has the sums of all; the next round needs them.

    barrier           numbers are stored; a counter; they are loaded: what rnnfuse does
    words             each number with the tag of its round in 64 bits: whoever reads waits for the tag
    whole numbers     added up by the memory itself, in fixed point, with how many have been added in the lowest bits
    vectors           the same of floats, and a count beside them, of which no one promises that it does not come first
    cluster           into each other's shared memory, whose barriers count bytes; at most 16 programs
"""

import argparse
import ctypes
import sys

sys.path.pop(0)  # this folder, where a file has the name of a library

import torch

ROUNDS, GROUPS, THREADS = 5000, 4, (128, 256)
LARGER_CLUSTERS = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: more than 8 programs

KERNEL = r"""
typedef unsigned long long u64;
typedef unsigned u32;
#define WAYS
__device__ void store(u64* at, u64 a, u64 b) {
    asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" : : "l"(at), "l"(a), "l"(b) : "memory");
}
__device__ void load(const u64* at, u64& a, u64& b) {
    asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(at) : "memory");
}
__device__ u32 shared(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ u32 of_program(u32 at, int rank) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}
#define MEET_IN_CLUSTER \
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" : : : "memory");

// Threads have rows as tensor cores leave them: each four threads of a warp have two, and all warps have the same.
extern "C" __global__ void CLUSTER exchange(float* out, char* memory, int* counters, int rounds) {
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, group = blockIdx.x / P, me = blockIdx.x % P;
    int row = lane / 4, tells = warp == 0 && lane % 4 == 0, met = 0;
    float sum[2] = {(float)(row + me), (float)(row + 8 + me)}, other[2] = {(float)me, (float)me};
    __shared__ float told[2][16][2], parts[T / 32][16];
    BEGIN
    for (int round = 0; round < rounds; ++round) {
        int parity = round & 1;
        if (lane % 4 == 0) { parts[warp][row] = sum[0]; parts[warp][row + 8] = sum[1]; }
        __syncthreads();
        for (int half = 0; half < 2; ++half) {
            float total = 0;
            for (int one = 0; one < T / 32; ++one) total += parts[one][row + 8 * half];
            sum[half] = total / (T / 32);
        }
        BODY
        for (int half = 0; half < 2; ++half) {
            sum[half] = told[parity][row + 8 * half][0] / P;
            other[half] = told[parity][row + 8 * half][1] / P;
        }
    }
    out[blockIdx.x * T + thread] = sum[0] + sum[1] + other[0] + other[1];
    END
}
"""

#: All threads add up what was told: a few of a row, which are neighbours.
ADDED_UP = r"""
    for (int way = T / 32; way; way /= 2) {
        a += __shfl_xor_sync(~0u, a, way, T / 16); b += __shfl_xor_sync(~0u, b, way, T / 16);
    }
    if (thread % (T / 16) == 0) { told[parity][mine][0] = a; told[parity][mine][1] = b; }
    __syncthreads();
"""
BARRIER = (
    r"""
    float* numbers = (float*)memory + (group * 2 + parity) * 16 * 2 * P;
    int* counter = counters + group * 32;
    for (int half = 0; tells && half < 2; ++half) {
        numbers[(row + 8 * half) * 2 * P + me] = sum[half]; numbers[((row + 8 * half) * 2 + 1) * P + me] = other[half];
    }
    __syncthreads();
    met += P;
    if (thread == 0) asm volatile("red.release.gpu.global.add.s32 [%0], 1;" : : "l"(counter) : "memory");
    int there;
    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(there) : "l"(counter) : "memory"); while (there < met);
    int mine = thread / (T / 16);
    float a = 0, b = 0;
    for (int from = thread % (T / 16); from < P; from += T / 16) {
        a += __ldcg(numbers + mine * 2 * P + from); b += __ldcg(numbers + (mine * 2 + 1) * P + from);
    }
"""
    + ADDED_UP
)
WORDS = (
    r"""
    u64* words = (u64*)memory + (group * 2 + parity) * 16 * 2 * P;
    u64 tag = (u64)(round + 1) << 32;
    for (int half = 0; tells && half < 2; ++half)
        store(words + ((row + 8 * half) * P + me) * 2,
              tag | __float_as_uint(sum[half]), tag | __float_as_uint(other[half]));
    const int N = (P * 16 + T - 1) / T;
    int mine = thread / (T / 16), from = thread % (T / 16);
    u64 firsts[N], seconds[N];
    bool waits;
    do {  // all of them are under way at once
        waits = false;
        #pragma unroll
        for (int n = 0; n < N; ++n)
            load(words + (mine * P + min(from + n * (T / 16), P - 1)) * 2, firsts[n], seconds[n]);
        #pragma unroll
        for (int n = 0; n < N; ++n) waits |= firsts[n] >> 32 != round + 1 || seconds[n] >> 32 != round + 1;
    } while (waits);
    float a = 0, b = 0;
    #pragma unroll
    for (int n = 0; n < N; ++n)
        if (from + n * (T / 16) < P) {
            a += __uint_as_float((u32)firsts[n]); b += __uint_as_float((u32)seconds[n]);
        }
"""
    + ADDED_UP
)
WHOLE = r"""
    u64* sums = (u64*)memory + ((u64)round * GROUPS + group) * 32, first = 0, second = 0;
    if (warp == 0) {
        for (int half = 0; tells && half < 2; ++half)
            for (int which = 0; which < 2; ++which) {
                u64 more = ((u64)(long long)((which ? other : sum)[half] * 1048576.f) << 8) + 1;
                asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;"
                             : : "l"(sums + (row + 8 * half) * 2 + which), "l"(more) : "memory");
            }
        if (lane < 16) {
            do load(sums + lane * 2, first, second); while ((first & 255) != P || (second & 255) != P);
            told[parity][lane][0] = (float)((long long)first >> 8) / 1048576.f;
            told[parity][lane][1] = (float)((long long)second >> 8) / 1048576.f;
        }
    }
    __syncthreads();
"""
VECTORS = r"""
    float* sums = (float*)memory + ((u64)round * GROUPS + group) * 64, a, b, count, none;
    if (warp == 0) {
        for (int half = 0; tells && half < 2; ++half)
            asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                         : : "l"(sums + (row + 8 * half) * 4), "f"(sum[half]), "f"(other[half]), "f"(1.f), "f"(0.f)
                         : "memory");
        if (lane < 16) {
            do asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                            : "=f"(a), "=f"(b), "=f"(count), "=f"(none) : "l"(sums + lane * 4) : "memory");
            while (count != (float)P);
            told[parity][lane][0] = a; told[parity][lane][1] = b;
        }
    }
    __syncthreads();
"""
CLUSTER_BEGIN = r"""
    __shared__ __align__(16) float numbers[2][16][P][2];
    __shared__ __align__(8) u64 barriers[2];
    if (thread == 0) {
        for (int one = 0; one < 2; ++one)
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(shared(barriers + one)));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    MEET_IN_CLUSTER
"""
CLUSTER = (
    r"""
    u32 barrier = shared(barriers + parity);
    if (thread == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(barrier), "r"(P * 16 * 8) : "memory");
    for (int to = warp; lane % 4 == 0 && to < P; to += T / 32)
        for (int half = 0; half < 2; ++half)
            asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                         : : "r"(of_program(shared(&numbers[parity][row + 8 * half][me][0]), to)),
                             "r"(__float_as_uint(sum[half])), "r"(__float_as_uint(other[half])),
                             "r"(of_program(barrier, to)) : "memory");
    asm volatile("{.reg .pred over; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;"
                 "@!over bra again;}" : : "r"(barrier), "r"(round >> 1 & 1) : "memory");
    int mine = thread / (T / 16);
    float a = 0, b = 0;
    for (int from = thread % (T / 16); from < P; from += T / 16) {
        a += numbers[parity][mine][from][0]; b += numbers[parity][mine][from][1];
    }
"""
    + ADDED_UP
)
MEET = "MEET_IN_CLUSTER"
#: By the name: how it begins, a round, and how it ends.
WAYS = {
    "barrier": ("", BARRIER, ""),
    "words": ("", WORDS, ""),
    "whole numbers": ("", WHOLE, ""),
    "vectors": ("", VECTORS, ""),
    "cluster": (CLUSTER_BEGIN, CLUSTER, MEET),
}


def microseconds(name, programs, threads):
    """Of a round; the least of four times, since other programs only make it longer."""
    begin, body, end = WAYS[name]
    is_cluster = name == "cluster"
    source = KERNEL.replace("BEGIN", begin).replace("BODY", body).replace("    END\n", f"    {end}\n")
    source = source.replace("CLUSTER exchange", f"{'__cluster_dims__(P)' if is_cluster else ''} exchange")
    source = source.replace("#define WAYS", f"#define P {programs}\n#define T {threads}\n#define GROUPS {GROUPS}")
    kernel = torch.cuda._compile_kernel(source, "exchange")
    if is_cluster and programs > 8:
        assert ctypes.CDLL("libcuda.so.1").cuFuncSetAttribute(kernel.func, LARGER_CLUSTERS, 1) == 0
    times = []
    for _ in range(4):
        out = torch.zeros(GROUPS * programs * threads, device="cuda")
        memory = torch.zeros(ROUNDS * GROUPS * 256, dtype=torch.uint8, device="cuda")
        counters = torch.zeros(GROUPS * 32, dtype=torch.int32, device="cuda")
        begins, ends = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begins.record()
        kernel((GROUPS * programs, 1, 1), (threads, 1, 1), (out, memory, counters, ROUNDS))
        ends.record()
        torch.cuda.synchronize()
        times.append(begins.elapsed_time(ends) * 1e3 / ROUNDS)
        rows = torch.arange(threads, device="cuda") % 32 // 4
        expected = 2 * rows + 8 + 4 * (programs - 1) / 2  # the mean of what all were told, in each round anew
        torch.testing.assert_close(out.view(-1, threads), expected.expand(GROUPS * programs, -1), rtol=1e-3, atol=0)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, nargs="*", default=[8, 16, 20], help="of a group")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device here")
    print(
        f"{'µs':14}", *(f"{programs} programs, {threads} threads" for programs in given.programs for threads in THREADS)
    )
    for name in WAYS:
        found = []
        for programs in given.programs:
            is_possible = name != "cluster" or programs <= 16
            found += [f"{microseconds(name, programs, one):.2f}" if is_possible else "-" for one in THREADS]
        print(f"{name:14}", *(f"{one:>24}" for one in found), flush=True)


if __name__ == "__main__":
    main()
