// Time to hand a word from one SM to another, and back.
//
// Two parts, one thread each, `rounds` round trips per sample; half a round trip is the latency:
//
//     swap     both compare-and-swap one word, 2n -> 2n + 1 -> 2n + 2 (in the L2, where atomics are done), which
//              orders nothing else
//     flags    each stores its count into a word of its own and waits for the other's, release and acquire
//     cluster  each stores into a word in the shared memory of its partner: distributed shared memory of a cluster, in
//              which one block exchanges with every other block in turn; it orders nothing else either
//
// Words lie in lines of their own. In the L2 the distance depends on the pair and on the slice that holds the line.
//
// CPU reference: the counts at the end are what the rounds say (linkwright.executors.cuda.probes).
// Source: core-to-core-latency by N. Viennot; for clusters Luo et al., "Benchmarking and dissecting the Nvidia Hopper
// GPU architecture" (2024).
#include "probe.cuh"

struct Handover {
    Parts parts;
    u64 rounds;
    u64 swap;     // one word swapped, or two flags
    u64 first;    // in a cluster: the block that talks with all others
    u64 *words;   // [0] and [LINE]; in a cluster: the count that each block ended with, from `first` on
};

__device__ inline void swapped(u64 *word, u32 part, u64 first, u64 rounds) {
    for (u64 n = first; n < first + rounds; ++n) {
        const u64 mine = 2 * n + part;
        while (compare_and_swap_alone(word, mine, mine + 1) != mine) look_again();
    }
}

__device__ inline void flagged(u64 *own, const u64 *other, u32 part, u64 first, u64 rounds) {
    for (u64 n = first + 1; n <= first + rounds; ++n) {
        if (part == 0) store_release(own, n);
        while (load_acquire(other) < n) look_again();
        if (part == 1) store_release(own, n);
    }
}

KERNEL(32) flag_handover(const Handover *given) {
    const Handover job = *given;
    const u32 part = take_part(job.parts);
    if (part == NO_PART) return;
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        if (!gather(job.parts, part, sample + 1)) return;
        if (threadIdx.x != 0) continue;
        const u64 first = sample * job.rounds, begin = cycles();
        if (job.swap)
            swapped(job.words, part, first, job.rounds);
        else
            flagged(job.words + part * LINE, job.words + (1 - part) * LINE, part, first, job.rounds);
        record(job.parts, sample, part, begin, cycles());
    }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Blocks are counted from `first` on, round the cluster: block 0 with block 1, then with block 2, ...; `cycles` by
// (sample, peer), at peer 0 the sum.
KERNEL(32) flag_handover_in_cluster(const Handover *given) {
    const Handover job = *given;
    const u32 blocks = (u32)job.parts.parts, first = (u32)job.first;
    const u32 own = (block_in_cluster() + blocks - first) % blocks;
    u64 *flag = (u64 *)(block_memory() + HEAD);
    if (threadIdx.x == 0) {
        job.parts.sm_of_part[own] = 1 + (u64)sm_number();
        *flag = 0;
    }
    u64 count = 0;
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        const u64 all = cycles();
        for (u32 peer = 1; peer < blocks; ++peer) {
            cluster_barrier();
            if (threadIdx.x != 0 || (own != 0 && own != peer)) continue;
            u64 *other = (u64 *)of_block((u8 *)flag, ((own == 0 ? peer : 0) + first) % blocks);
            const u64 begin = cycles();
            for (u64 n = 0; n < job.rounds; ++n) {
                // Block 0 counts on with every peer; a peer begins at the count that it is told.
                if (own == 0) {
                    store_in_cluster(other, ++count);
                    while (look_at_own(flag) != count) look_again();
                } else {
                    u64 told_count;
                    while ((told_count = look_at_own(flag)) == count) look_again();
                    count = told_count;
                    store_in_cluster(other, count);
                }
            }
            if (own == 0) record(job.parts, sample, peer, begin, cycles());
        }
        if (threadIdx.x == 0 && own == 0) record(job.parts, sample, 0, all, cycles());
    }
    cluster_barrier();
    if (threadIdx.x == 0) job.words[own] = count;
}

#endif
