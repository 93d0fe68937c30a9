// Allreduce as one writes it with a barrier of the whole grid: what schedules are held against.
//
//     barrier    all vectors are there
//     reduce     each block combines its slice of all vectors into a result, with all its threads
//     barrier    the whole result is there
//     copy       each block copies it over its own vector
//
// No flag is between two ranks; all order is the two barriers. The barrier is that of cooperative groups: a block
// adds one to a counter, the first block adds so much that the highest bit flips with the last to come, and all look at that
// bit. Only blocks that play a rank take part. Where a slice has fewer packs of 16 bytes than the block has threads,
// groups of threads combine some of the vectors each, and their results are combined in shared memory, by halves.
//
// Ranks, their start and their times are as in schedule_walk.cu. CPU reference: all vectors combined in NumPy
// (linkwright.executors.cuda.native). Source: cooperative groups of the CUDA C++ programming guide, grid
// synchronisation, and its header for the counter.
#include "combine.cuh"
#include "ranks.cuh"

const u64 FLIPS = 1ull << 63;
const u32 HEAD_OF_GROUPS = 256;  // bytes of block memory in front of what groups found: Mine

struct Reduction {
    Ranks run;
    u64 bytes;   // of a vector
    u64 stride;  // from vector to vector, whole packs
    u8 *memory;
    u8 *result;
    u64 *counters;  // the barrier's
    u64 dtype, op;
};

// What all threads of a block know: the launch, read once, and what thread 0 tells the others.
struct Mine {
    Reduction job;
    u32 rank;
    u32 alive;
};

__device__ inline Mine *mine() { return (Mine *)block_memory(); }

__device__ inline void grid_barrier(const Reduction *job) {
    __syncthreads();
    if (threadIdx.x == 0) {
        const u64 before = fetch_add(job->counters, mine()->rank == 0 ? FLIPS - (job->run.ranks - 1) : 1);
        while (((before ^ load_acquire(job->counters)) & FLIPS) == 0) look_again();
    }
    __syncthreads();
}

// All threads: packs first..end of the vectors, combined.
template <ReduceOp OP, class T> __device__ inline void reduce(const Reduction *job, u64 first, u64 end) {
    typedef Pack<T, 16 / sizeof(T)> P;
    const u64 vector = job->stride / sizeof(P), ranks = job->run.ranks;
    const P *from = (const P *)job->memory;
    P *to = (P *)job->result, *found = (P *)(block_memory() + HEAD_OF_GROUPS);
    const u64 packs = end - first, threads = blockDim.x;
    if (packs == 0) return;
    u64 groups = packs < threads ? threads / packs : 1;
    if (groups > ranks) groups = ranks;
    for (u64 i = threadIdx.x; i < packs * groups; i += threads) {
        const u64 at = first + i % packs, group = i / packs;
        P all = from[group * vector + at];
#pragma unroll 8
        for (u64 rank = group + groups; rank < ranks; rank += groups) {
            all = Combine<OP>::apply(&all, from[rank * vector + at]);
        }
        if (groups == 1)
            to[at] = all;
        else
            found[i] = all;
    }
    if (groups == 1) return;
    // Halves onto halves, until one is left.
    for (u64 width = groups; width > 1;) {
        const u64 half = (width + 1) / 2;
        __syncthreads();
        for (u64 i = threadIdx.x; i < packs * (width - half); i += threads) {
            found[i] = Combine<OP>::apply(&found[i], found[i + packs * half]);
        }
        width = half;
    }
    __syncthreads();
    for (u64 i = threadIdx.x; i < packs; i += threads) to[first + i] = found[i];
}

template <class T> __device__ inline void reduce_as(const Reduction *job, u64 first, u64 end) {
    switch (job->op) {
    case SUM: return reduce<SUM, T>(job, first, end);
    case MAX: return reduce<MAX, T>(job, first, end);
    case MIN: return reduce<MIN, T>(job, first, end);
    default: return reduce<PROD, T>(job, first, end);
    }
}

// All threads: the slice of a rank.
__device__ inline void reduce_slice(const Reduction *job, u32 rank) {
    const u64 packs = (job->bytes + 15) / 16, first = packs * rank / job->run.ranks;
    const u64 end = packs * (rank + 1) / job->run.ranks;
    switch (job->dtype) {
    case F32: return reduce_as<float>(job, first, end);
    case F64: return reduce_as<double>(job, first, end);
    case I32: return reduce_as<i32>(job, first, end);
    case I64: return reduce_as<i64>(job, first, end);
    case U8: return reduce_as<u8>(job, first, end);
    default: return reduce_as<Bf16>(job, first, end);
    }
}

// All threads: whole packs, then the rest; what lies behind the vector is not the kernel's.
__device__ inline void take_result(const Reduction *job, u8 *to) {
    const u64 whole = job->bytes / 16 * 16;
    copy(to, job->result, whole);
    copy(to + whole, job->result + whole, job->bytes - whole);
}

KERNEL(256) grid_reduce(const Reduction *given) {
    if (threadIdx.x == 0) {
        mine()->job = *given;
        mine()->rank = claim_rank(given->run);
    }
    __syncthreads();
    const Reduction *job = &mine()->job;
    const u32 rank = mine()->rank;
    if (rank == NO_RANK) return;
    for (u64 repetition = 0; repetition < job->run.repetitions; ++repetition) {
        __syncthreads();
        if (threadIdx.x == 0) mine()->alive = begin<Gpu>(job->run, rank, repetition);
        __syncthreads();
        if (!mine()->alive) return;
        grid_barrier(job);
        reduce_slice(job, rank);
        grid_barrier(job);
        take_result(job, job->memory + rank * job->stride);
        __syncthreads();
        if (threadIdx.x == 0) finish(job->run, rank, repetition);
    }
}
