// Latency of a load whose address is the value of the previous load, by the level that answers.
//
// One thread follows a chain of addresses that the host laid through a working set, one per line of 128 bytes, as one
// cycle in random order or with a stride; so no two loads overlap, and no line is met twice before all others were:
//
//     cycles of a sample / steps  =  latency of shared memory, L1, L2 or HBM, whichever holds the working set
//
// Each load returns the next address, so the chain consists of loads only. Several parts chase at once, each through
// separate memory, which shows the L2 and HBM under load. In a cluster each part chases through the shared memory of the
// next block. A chase continues where the previous kernel ended, so that lines of a working set larger than the caches
// are not revisited soon. The clock is read when the last load has arrived. Misses of the address translation are not
// separated; large working sets include them.
//
// CPU reference: the chain followed on the host must end where the kernel ended (linkwright.executors.cuda.probes).
// Source: Saavedra and Smith, "Measuring cache and TLB performance" (1995); for GPUs Wong et al., "Demystifying GPU
// microarchitecture through microbenchmarking" (ISPASS 2010); for clusters Luo et al., "Benchmarking and dissecting the
// Nvidia Hopper GPU architecture" (2024).
#include "probe.cuh"

struct Chase {
    Parts parts;
    u64 steps;
    u64 warm;          // steps before each sample that are not timed: waiting for others empties the L1
    u64 through;       // what is below, in this order; in a cluster: how many parts chase
    u64 shared_words;  // through Shared and Neighbour: words of the chain, which holds offsets in block memory
    const u64 *chain;  // through these: the words of one part
    u64 *at;           // by part: where the chase begins, and where it ended
};

struct Shared {
    typedef u32 Address;
    static __device__ u32 load(u32 at) { return load_shared(at); }
};

struct ThroughL1 {
    typedef u64 Address;
    static __device__ u64 load(u64 at) { return load_through_l1((const u64 *)at); }
};

struct PastL1 {
    typedef u64 Address;
    static __device__ u64 load(u64 at) { return load_past_l1((const u64 *)at); }
};

template <class Way> __device__ inline u64 follow(typename Way::Address at, u64 steps) {
#pragma unroll 8
    for (u64 i = 0; i < steps; ++i) at = Way::load(at);
    return at;
}

// Thread 0: one sample; gives where it ended.
template <class Way> __device__ inline u64 chased(const Chase &job, u32 part, u64 sample, u64 at) {
    at = follow<Way>(at, job.warm);
    arrived(at, &told()->kept);
    const u64 begin = cycles();
    at = follow<Way>(at, job.steps);
    arrived(at, &told()->kept);
    record(job.parts, sample, part, begin, cycles());
    return at;
}

// All threads: the chain into block memory, whose addresses begin at `base`.
__device__ inline void lay(const Chase &job, u64 base) {
    u64 *own = (u64 *)(block_memory() + HEAD);
    for (u64 i = threadIdx.x; i < job.shared_words; i += blockDim.x) own[i] = base + job.chain[i];
}

template <class Way> __device__ inline void take_samples(const Chase &job, u32 part, u64 base) {
    u64 at = base + job.at[part];
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        if (!gather(job.parts, part, sample + 1)) return;
        if (threadIdx.x == 0) at = chased<Way>(job, part, sample, at);
    }
    if (threadIdx.x == 0) job.at[part] = at - base;
}

KERNEL(32) pointer_chase(const Chase *given) {
    const Chase job = *given;
    const u32 part = take_part(job.parts);
    if (part == NO_PART) return;
    lay(job, shared_address());
    if (job.through == 0) return take_samples<Shared>(job, part, shared_address());
    if (job.through == 1) return take_samples<ThroughL1>(job, part, 0);
    take_samples<PastL1>(job, part, 0);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

struct Neighbour {
    typedef u64 Address;
    static __device__ u64 load(u64 at) { return load_in_cluster(at); }
};

KERNEL(32) pointer_chase_in_cluster(const Chase *given) {
    const Chase job = *given;
    const u32 part = block_in_cluster(), next = (part + 1) % (u32)job.parts.parts;
    if (threadIdx.x == 0) job.parts.sm_of_part[part] = 1 + (u64)sm_number();
    lay(job, (u64)of_block(block_memory(), part));
    const u64 base = (u64)of_block(block_memory(), next);
    u64 at = base + job.at[part];
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        cluster_barrier();
        if (threadIdx.x == 0 && part < job.through) at = chased<Neighbour>(job, part, sample, at);
    }
    cluster_barrier();
    if (threadIdx.x == 0) job.at[part] = at - base;
}

#endif
