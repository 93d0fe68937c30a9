// Latency of single lines of the L2 from an SM; then bandwidth of the near or the far lines.
//
// The slice of the L2 that holds a line follows from a hash of its address, and a large L2 is built in two partitions:
// half of all slices lie on the far side. Each line holds its own address, so a thread that follows it returns to the
// same line, past the L1, and waits for one line at a time:
//
//     load      at = *at            a partition may keep copies of lines of the other; then all lines are near
//     atomic    at = *at, adding 0  executed where the line has its home
//     stream    all threads read the lines that the host chose after it saw the latencies, 4 loads in flight each
//
// An untimed access first brings each line into the L2. The host splits the latencies into two groups if there are two.
//
// CPU reference: every line leads back to itself (`lost` stays zero); the exclusive or of the lines chosen
// (linkwright.executors.cuda.probes). Source: Jin et al., "Uncovering real GPU NoC characteristics" (MICRO 2024).
#include "probe.cuh"

const u32 FLIGHT = 4;

struct Lines {
    Parts parts;
    u64 lines;
    u64 rounds;  // accesses of a line that are timed together
    u64 atomic;
    u64 stream;  // read `chosen` with all threads; otherwise thread 0 takes latencies
    u64 count;   // lines chosen for each part
    u64 *memory;        // LINE words each; the first one holds the line's address
    u32 *took;          // cycles by (part, sample, line)
    const u32 *chosen;  // by part
    u64 *folds;         // by (part, thread): exclusive or of what the thread read
    u64 fold_threads;
    u64 *lost;          // lines that did not lead back to themselves
};

template <bool ATOMIC> __device__ inline u64 follow(u64 at, u64 rounds) {
#pragma unroll 4
    for (u64 n = 0; n < rounds; ++n) at = ATOMIC ? fetch_add_alone((u64 *)at, 0) : load_past_l1((const u64 *)at);
    return at;
}

// Thread 0: the latency of every line.
template <bool ATOMIC> __device__ inline void take_latencies(const Lines &job, u32 part, u64 sample) {
    u32 *took = job.took + (part * job.parts.samples + sample) * job.lines;
    u64 all = 0;
    for (u64 line = 0; line < job.lines; ++line) {
        const u64 home = (u64)(job.memory + line * LINE);
        arrived(follow<ATOMIC>(home, 1), &told()->kept);
        const u64 begin = cycles();
        const u64 at = follow<ATOMIC>(home, job.rounds);
        arrived(at, &told()->kept);
        const u64 cycles_taken = cycles() - begin;
        took[line] = (u32)cycles_taken;
        all += cycles_taken;
        if (at != home) fetch_add(job.lost, 1);
    }
    record(job.parts, sample, part, 0, all);
}

// All threads: neighbouring threads read neighbouring words of the lines whose numbers lie in block memory.
__device__ inline u64 read_chosen(const Lines &job) {
    const u32 *chosen = (const u32 *)(block_memory() + HEAD);
    const u64 words = job.count * LINE, step = blockDim.x;
    u64 fold = 0;
    for (u64 first = threadIdx.x; first < words; first += FLIGHT * step) {
        u64 read[FLIGHT] = {};
#pragma unroll
        for (u32 i = 0; i < FLIGHT; ++i) {
            const u64 at = first + i * step;
            if (at < words) read[i] = load_past_l1(job.memory + chosen[at / LINE] * LINE + at % LINE);
        }
#pragma unroll
        for (u32 i = 0; i < FLIGHT; ++i) fold ^= read[i];
    }
    return fold;
}

KERNEL(1024) l2_lines(const Lines *given) {
    const Lines job = *given;
    const u32 part = take_part(job.parts);
    if (part == NO_PART) return;
    u32 *chosen = (u32 *)(block_memory() + HEAD);
    for (u64 i = threadIdx.x; i < job.count; i += blockDim.x) chosen[i] = job.chosen[part * job.count + i];
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        if (!gather(job.parts, part, sample + 1)) return;
        if (job.stream) {
            const u64 begin = cycles();
            job.folds[part * job.fold_threads + threadIdx.x] = read_chosen(job);
            __syncthreads();
            if (threadIdx.x == 0) record(job.parts, sample, part, begin, cycles());
        } else if (threadIdx.x == 0 && job.atomic) {
            take_latencies<true>(job, part, sample);
        } else if (threadIdx.x == 0) {
            take_latencies<false>(job, part, sample);
        }
    }
}
