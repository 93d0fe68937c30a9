// Latency of a barrier among SMs: by a counter in the L2, or by the hardware of a cluster.
//
//     grid      thread 0 of every block adds one to a counter and waits until all have; with a barrier of the block
//               before and after. A grid-wide synchronisation does the same, here on the participating blocks only.
//     cluster   barrier.cluster: all threads arrive, all threads wait
//
// `rounds` barriers per sample. CPU reference: the counter ends at rounds x parts, and every block saw all others
// arrive at every round (`late` stays zero): each writes its round into a word of its own before the barrier, and
// its neighbour looks at it after (linkwright.executors.cuda.probes).
#include "probe.cuh"

struct Barrier {
    Parts parts;
    u64 rounds;
    u64 *counter;
    u64 *seen;  // by part, LINE words each: the round that it is in
    u64 *late;  // how often a neighbour was not
};

__device__ inline void look_at_neighbour(const Barrier &job, u32 part, u64 round) {
    const u32 next = part + 1 == job.parts.parts ? 0 : part + 1;
    if (load_acquire(job.seen + next * LINE) < round) fetch_add(job.late, 1);
}

KERNEL(256) block_barrier(const Barrier *given) {
    const Barrier job = *given;
    const u32 part = take_part(job.parts);
    if (part == NO_PART) return;
    u64 round = 0;
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        if (!gather(job.parts, part, sample + 1)) return;
        if (threadIdx.x == 0) store_release(job.seen + part * LINE, round + job.rounds);
        const u64 begin = cycles();
        for (u64 n = 0; n < job.rounds; ++n) {
            ++round;
            __syncthreads();
            if (threadIdx.x == 0) {
                add_release(job.counter, 1);
                while (load_acquire(job.counter) < round * job.parts.parts) look_again();
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            record(job.parts, sample, part, begin, cycles());
            look_at_neighbour(job, part, round);
        }
    }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

KERNEL(256) block_barrier_in_cluster(const Barrier *given) {
    const Barrier job = *given;
    const u32 part = block_in_cluster();
    if (threadIdx.x == 0) job.parts.sm_of_part[part] = 1 + (u64)sm_number();
    u64 round = 0;
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        cluster_barrier();
        if (threadIdx.x == 0) store_release(job.seen + part * LINE, round + job.rounds);
        const u64 begin = cycles();
        for (u64 n = 0; n < job.rounds; ++n) cluster_barrier();
        round += job.rounds;
        if (threadIdx.x == 0) {
            record(job.parts, sample, part, begin, cycles());
            look_at_neighbour(job, part, round);
        }
    }
    if (threadIdx.x == 0) fetch_add(job.counter, round);
}

#endif
