// Many vectors combined into one, with all threads of a block.
//
//     many packs    each thread takes packs of its own through all vectors
//     few packs     each group of threads folds some of the vectors; one group then folds their results
//
// A pack is 16 bytes. A thread has LOADS loads in flight to hide the latency of the L2. For the same reason a group
// takes LOADS vectors; the second round, in shared memory, is cheap.
#pragma once
#include "combine.cuh"

const u32 LOADS = 8;

// One thread: pack `at` of the vectors first, first + step ...
template <ReduceOp OP, class P, class From>
__device__ inline P folded(From from, u32 at, u32 first, u32 step, u32 vectors) {
    P all = from(first)[at];
    for (u32 next = first + step; next < vectors; next += LOADS * step) {
        // Past the end the last vector is read again, so that this loop holds only loads.
        P read[LOADS];
#pragma unroll
        for (u32 i = 0; i < LOADS; ++i) read[i] = from(next + i * step < vectors ? next + i * step : vectors - 1)[at];
#pragma unroll
        for (u32 i = 0; i < LOADS; ++i) {
            if (next + i * step < vectors) all = Combine<OP>::apply(all, read[i]);
        }
    }
    return all;
}

// All threads: `packs` of `to` become those of all vectors, combined; `from` gives the first pack of a vector, and
// `found` is shared memory of one pack per thread. Who folds again meets in between.
template <ReduceOp OP, class P, class From>
__device__ inline void fold(P *to, u32 packs, u32 vectors, From from, P *found) {
    if (packs == 0) return;
    const u32 i = threadIdx.x, most = (vectors + LOADS - 1) / LOADS;
    const u32 groups = blockDim.x / packs < most ? blockDim.x / packs : most;
    if (groups <= 1) {
        for (u32 at = i; at < packs; at += blockDim.x) to[at] = folded<OP, P>(from, at, 0, 1, vectors);
        return;
    }
    if (i < packs * groups) found[i] = folded<OP, P>(from, i % packs, i / packs, groups, vectors);
    __syncthreads();
    const auto group = [=](u32 number) { return found + number * packs; };
    if (i < packs) to[i] = folded<OP, P>(group, i, 0, 1, groups);
}
