// Allreduce with a barrier of the whole grid: the baseline that schedules are compared with.
//
//     barrier    all vectors are ready
//     reduce     each block combines its slice of all vectors into a result, with all its threads
//     barrier    the whole result is ready
//     copy       each block copies it over its own vector
//
// There are no flags between two ranks; the two barriers alone order them. The barrier is that of cooperative groups: a
// block adds one to a counter, the first block adds enough for the last arrival to flip the highest bit, and all wait for
// that bit. Only blocks that play a rank take part. How a block combines its slice of all vectors is in fold.cuh.
//
// Ranks, their start and their times are as in schedule_walk.cu. CPU reference: all vectors combined in NumPy
// (linkwright.executors.cuda.native). Source: cooperative groups of the CUDA C++ programming guide, grid
// synchronisation, and its header for the counter.
#include "fold.cuh"
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
};
static_assert(sizeof(Mine) <= HEAD_OF_GROUPS, "what groups found begins behind it");

__device__ inline Mine *mine() { return (Mine *)block_memory(); }

// All threads: false where somebody gave up.
__device__ inline bool grid_barrier(const Reduction *job) {
    __syncthreads();
    bool flipped = true;
    if (threadIdx.x == 0) {
        const u64 before = fetch_add(job->counters, mine()->rank == 0 ? FLIPS - (job->run.ranks - 1) : 1);
        const auto differs = [=](u64 now) { return ((before ^ now) & FLIPS) != 0; };
        u64 found;
        flipped = await<Gpu>(watch_of(job->run), mine()->rank, job->counters, ~before & FLIPS, found, differs);
    }
    return !__syncthreads_or(!flipped);
}

// All threads: the slice of a rank.
__device__ inline void reduce_slice(const Reduction *job, u32 rank) {
    const u64 packs = (job->bytes + 15) / 16, first = packs * rank / job->run.ranks;
    const u64 end = packs * (rank + 1) / job->run.ranks;
    with_kind((u32)job->dtype, (u32)job->op, [=](auto kind) {
        typedef decltype(kind) K;
        typedef WholePack<typename K::T> P;
        const P *vectors = (const P *)job->memory + first;
        const u64 vector = job->stride / sizeof(P);
        const auto from = [=](u32 number) { return vectors + number * vector; };
        P *found = (P *)(block_memory() + HEAD_OF_GROUPS);
        fold<K::OP>((P *)job->result + first, (u32)(end - first), (u32)job->run.ranks, from, found);
    });
}

// All threads: whole packs, then the rest; what lies behind the vector is not the kernel's.
__device__ inline void take_result(const Reduction *job, u8 *to) {
    const u64 whole = job->bytes / 16 * 16;
    copy(whole_block(), to, job->result, whole);
    copy(whole_block(), to + whole, job->result + whole, job->bytes - whole);
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
        const bool alive = threadIdx.x != 0 || begin(job->run, rank, repetition);
        if (__syncthreads_or(!alive) || !grid_barrier(job)) return;
        reduce_slice(job, rank);
        if (!grid_barrier(job)) return;
        take_result(job, job->memory + rank * job->stride);
        __syncthreads();
        if (threadIdx.x == 0) finish(job->run, rank, repetition);
    }
}
