// Time of an atomic addition whose result is used, alone and with others at the same word.
//
// Every thread of every part adds one `rounds` times; each addition waits for the result of the previous one:
//
//     same    all add to one word: the L2 serialises the additions, and their rate is the result
//     own     each warp of each part has a line of its own: latency of an atomic without contention
//
// CPU reference: the words add up to parts x threads x rounds x samples (linkwright.executors.cuda.probes).
#include "probe.cuh"

struct Atomic {
    Parts parts;
    u64 rounds;
    u64 same;
    u64 *words;  // LINE words for each warp of each part
};

KERNEL(1024) atomic_add(const Atomic *given) {
    const Atomic job = *given;
    const u32 part = take_part(job.parts);
    if (part == NO_PART) return;
    const u64 warps = (blockDim.x + 31) / 32, warp = part * warps + threadIdx.x / 32;
    u64 *word = job.words + (job.same ? 0 : warp * LINE);
    u64 last = 0;
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        if (!gather(job.parts, part, sample + 1)) return;
        const u64 begin = cycles();
        // No old value has the highest bit: the next address depends on it all the same.
        for (u64 n = 0; n < job.rounds; ++n) last = fetch_add_alone(word + (last >> 63), 1);
        arrived(last, (u64 *)(block_memory() + HEAD) + threadIdx.x);
        __syncthreads();
        if (threadIdx.x == 0) record(job.parts, sample, part, begin, cycles());
    }
}
