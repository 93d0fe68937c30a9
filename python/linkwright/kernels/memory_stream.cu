// Bandwidth of reading, writing, copying and triad, by working set, width of one access and number of SMs.
//
// Every part passes over arrays of its own with all threads of its block, neighbouring threads on neighbouring
// accesses, four in flight per thread:
//
//     read  fold b        write  a = s        copy  a = b        triad  a = b + s c      (32-bit integers, which wrap)
//
// After the first pass, arrays that fit into the L1 of an SM stay there; arrays that together fit into the L2 stay in
// the L2; larger arrays come from HBM. A sample is `passes` passes, and the slowest part counts. Every thread handles
// the same elements in each pass, so no thread waits between passes.
//
// CPU reference: NumPy on the same arrays; what a and the fold of b must be (linkwright.executors.cuda.probes).
// Source: McCalpin, STREAM (1995).
#include "combine.cuh"
#include "probe.cuh"

enum Kind : u64 { READ, WRITE, COPIED, TRIAD };
const u32 FACTOR = 3;
const u32 FLIGHT = 4;

struct Stream {
    Parts parts;
    u64 kind;
    u64 passes;  // of a sample
    u64 warm;    // passes before each sample that are not timed: waiting for others empties the L1
    u64 width;   // bytes of one access: 4, 8 or 16
    u64 bytes;   // of one array of one part
    u32 *a, *b, *c;  // arrays of all parts, one after the other
    u32 *folds;      // by (part, thread): exclusive or of what the thread read
    u64 fold_threads;
};

template <class P, int N> __device__ inline P made(u64 kind, P b, P c) {
    for (int lane = 0; lane < N; ++lane) {
        if (kind == WRITE) b.lane[lane] = FACTOR;
        if (kind == TRIAD) b.lane[lane] += FACTOR * c.lane[lane];
    }
    return b;
}

// All threads: one pass; gives the exclusive or of what this thread read.
template <int N> __device__ inline u32 pass(u64 kind, u8 *to, const u8 *from, const u8 *other, u64 bytes) {
    typedef Pack<u32, N> P;
    P *a = (P *)to;
    const P *b = (const P *)from, *c = (const P *)other;
    const u64 count = bytes / sizeof(P), step = blockDim.x;
    u32 fold = 0;
    for (u64 first = threadIdx.x; first < count; first += FLIGHT * step) {
        P read[FLIGHT] = {}, more[FLIGHT] = {};
#pragma unroll
        for (u32 i = 0; i < FLIGHT; ++i) {
            const u64 at = first + i * step;
            if (at < count && kind != WRITE) read[i] = b[at];
            if (at < count && kind == TRIAD) more[i] = c[at];
        }
#pragma unroll
        for (u32 i = 0; i < FLIGHT; ++i) {
            const u64 at = first + i * step;
            if (kind == READ) {
                for (int lane = 0; lane < N; ++lane) fold ^= read[i].lane[lane];
            } else if (at < count) {
                a[at] = made<P, N>(kind, read[i], more[i]);
            }
        }
    }
    return fold;
}

// All threads: so many passes, each of which has arrived before the next one begins.
template <int N> __device__ inline u32 repeated(u64 count, u64 kind, u8 *a, const u8 *b, const u8 *c, u64 bytes) {
    u32 fold = 0;
    for (u64 i = 0; i < count; ++i) {
        fold = pass<N>(kind, a, b, c, bytes);
        arrived(fold, (u64 *)(block_memory() + HEAD) + threadIdx.x);
    }
    return fold;
}

template <int N> __device__ inline u32 passes_as(const Stream &job, u32 part, u64 count) {
    u8 *a = (u8 *)job.a + part * job.bytes;
    const u8 *b = (const u8 *)job.b + part * job.bytes, *c = (const u8 *)job.c + part * job.bytes;
    switch (job.kind) {  // constants, so that each kind is a loop of its own
    case READ: return repeated<N>(count, READ, a, b, c, job.bytes);
    case WRITE: return repeated<N>(count, WRITE, a, b, c, job.bytes);
    case COPIED: return repeated<N>(count, COPIED, a, b, c, job.bytes);
    default: return repeated<N>(count, TRIAD, a, b, c, job.bytes);
    }
}

__device__ inline u32 passes(const Stream &job, u32 part, u64 count) {
    if (job.width == 4) return passes_as<1>(job, part, count);
    if (job.width == 8) return passes_as<2>(job, part, count);
    return passes_as<4>(job, part, count);
}

KERNEL(1024) memory_stream(const Stream *given) {
    const Stream job = *given;
    const u32 part = take_part(job.parts);
    if (part == NO_PART) return;
    u32 fold = 0;
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        if (!gather(job.parts, part, sample + 1)) return;
        passes(job, part, job.warm);
        __syncthreads();
        const u64 begin = cycles();
        fold = passes(job, part, job.passes);
        fence();
        __syncthreads();
        if (threadIdx.x == 0) record(job.parts, sample, part, begin, cycles());
    }
    job.folds[part * job.fold_threads + threadIdx.x] = fold;
}
