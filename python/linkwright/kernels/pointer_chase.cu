// Latency of a load whose address is the value of the load before, by what it passes through.
//
// One thread follows a chain of addresses that the host laid through a working set, one per line of 128 bytes, as one
// cycle in random order or with a stride; so no two loads overlap, and no line is met twice before all others were:
//
//     cycles of a sample / steps  =  latency of shared memory, L1, L2 or HBM, whichever holds the working set
//
// Several parts chase at once, each through memory of its own: what the L2 and HBM cost while others use them. The
// clock is read when the last load has arrived. Not seen: misses of the address translation by themselves; large
// working sets contain them.
//
// CPU reference: the chain followed on the host must end where the kernel ended (linkwright.executors.cuda.probes).
// Source: Saavedra and Smith, "Measuring cache and TLB performance" (1995); for GPUs Wong et al., "Demystifying GPU
// microarchitecture through microbenchmarking" (ISPASS 2010).
#include "probe.cuh"

enum Through : u64 { SHARED, L1, L2 };

struct Chase {
    Parts parts;
    u64 steps;
    u64 warm;               // steps before each sample that are not timed: waiting for others empties the L1
    u64 through;
    u64 shared_words;       // through SHARED: words of the chain, which holds offsets in block memory
    const u64 *chain;       // through SHARED: the words of one part
    const u64 *first;       // by part: where the chase begins
    u64 *last;              // by part: where it ended
};

template <u64 THROUGH> __device__ inline u64 follow(u64 at, u64 steps) {
#pragma unroll 8
    for (u64 i = 0; i < steps; ++i) {
        if (THROUGH == SHARED) at = load_shared(at);
        if (THROUGH == L1) at = load_through_l1((const u64 *)at);
        if (THROUGH == L2) at = load_past_l1((const u64 *)at);
    }
    return at;
}

__device__ inline u64 followed(u64 through, u64 at, u64 steps) {
    if (through == SHARED) return follow<SHARED>(at, steps);
    if (through == L1) return follow<L1>(at, steps);
    return follow<L2>(at, steps);
}

KERNEL(32) pointer_chase(const Chase *job) {
    const u32 part = take_part(job->parts);
    if (part == NO_PART) return;
    if (job->through == SHARED) {
        u64 *own = (u64 *)(block_memory() + HEAD);
        for (u64 i = threadIdx.x; i < job->shared_words; i += blockDim.x) own[i] = job->chain[i];
    }
    u64 at = job->first[part];
    for (u64 sample = 0; sample < job->parts.samples; ++sample) {
        if (!gather(job->parts, sample + 1)) return;
        if (threadIdx.x == 0) {
            at = followed(job->through, at, job->warm);
            arrived(at, &told()->kept);
            const u64 begin = cycles();
            at = followed(job->through, at, job->steps);
            arrived(at, &told()->kept);
            record(job->parts, sample, part, begin, cycles());
        }
    }
    if (threadIdx.x == 0) job->last[part] = at;
}
