// Pairs of SMs that exchange messages: bandwidth, and the latency of a word under that load.
//
//     part 2k    waits for a free slot, writes a message into it, raises `filled`       stores
//     part 2k+1  waits for `filled`, reads the message, raises `emptied`                loads
//
// Two slots, so that one is written while the other is read. In the L2 slots and flags lie in global memory; in a
// cluster a slot and `filled` lie in the shared memory of the SM that reads, `emptied` in that of the one that writes,
// which both reach as distributed shared memory. `probing`: the first pair hands a word over and back instead, and
// all others send until it has ended: latency under load.
//
//     filled = samples that the writer has ended << 48 | messages that it has sent
//
// Counters only grow. Word i of message n is i + 3 n.
//
// CPU reference: the sum of all words that a reader saw, for as many messages as it counted
// (linkwright.executors.cuda.probes).
#include "combine.cuh"
#include "probe.cuh"

const u32 SLOTS = 2, IN_FLIGHT = 4;
const u32 STEP = 3;
const u32 ENDED_AT = 48;
const u64 COUNT = (1ull << ENDED_AT) - 1;

struct PairStream {
    Parts parts;
    u64 bytes;     // of a message
    u64 messages;  // of a sample, or round trips of the first pair
    u64 probing;
    u64 *flags;     // by pair: filled and emptied, LINE words each; in a cluster: none
    u8 *slots;      // by pair; in a cluster: none
    u64 *ended;     // samples that the first pair has ended
    u64 *received;  // by (sample, part): messages that the reader took
    u32 *sums;      // by (part, thread): of the words that were read
    u64 sum_threads;
};

struct Pair {
    u64 *filled, *emptied;
    u8 *slots;
};

typedef Pack<u32, 4> Words;

__device__ inline Words *slot(const PairStream &job, const Pair &pair, u64 n) {
    return (Words *)(pair.slots + n % SLOTS * job.bytes);
}

__device__ inline void write_message(Words *to, u64 n, u64 bytes) {
    for (u64 i = threadIdx.x; i < bytes / sizeof(Words); i += blockDim.x) {
        const u32 first = 4 * (u32)i + STEP * (u32)n;
        const Words words = {first, first + 1, first + 2, first + 3};
        to[i] = words;
    }
}

__device__ inline u32 read_message(const Words *from, u64 bytes) {
    const u64 count = bytes / sizeof(Words), step = blockDim.x;
    u32 sum = 0;
    for (u64 first = threadIdx.x; first < count; first += IN_FLIGHT * step) {
        Words read[IN_FLIGHT] = {};
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; ++i)
            if (first + i * step < count) read[i] = from[first + i * step];
#pragma unroll
        for (u32 i = 0; i < IN_FLIGHT; ++i)
            for (u32 lane = 0; lane < 4; ++lane) sum += read[i].lane[lane];
    }
    return sum;
}

// Thread 0 of a writer: whether there is one more message to send, and a slot for it.
template <class Scope>
__device__ inline bool may_send(const PairStream &job, u32 part, const Pair &pair, u64 sample, u64 sent, u64 n) {
    const bool more = job.probing ? load_acquire(job.ended) <= sample : sent < job.messages;
    return more && (n < SLOTS || reach<Scope>(watch_of(job.parts), part, pair.emptied, n + 1 - SLOTS));
}

// All threads of a writer: the messages of one sample; gives how many it has sent in all.
template <class Scope>
__device__ inline u64 send(const PairStream &job, u32 part, const Pair &pair, u64 sample, u64 n) {
    for (u64 sent = 0;; ++sent, ++n) {
        if (threadIdx.x == 0) told()->kept = may_send<Scope>(job, part, pair, sample, sent, n);
        __syncthreads();
        if (!told()->kept) break;
        write_message(slot(job, pair, n), n, job.bytes);
        __syncthreads();
        if (threadIdx.x == 0) Scope::raise(pair.filled, sample << ENDED_AT | (n + 1));
    }
    if (threadIdx.x == 0) Scope::raise(pair.filled, (sample + 1) << ENDED_AT | n);
    return n;
}

// Thread 0 of a reader: whether message n came, and not the end of the sample.
template <class Scope>
__device__ inline bool came(const PairStream &job, u32 part, const Pair &pair, u64 sample, u64 n) {
    u64 filled;
    const auto either = [=](u64 now) { return (now & COUNT) > n || now >> ENDED_AT > sample; };
    return await<Scope>(watch_of(job.parts), part, pair.filled, n + 1, filled, either) && (filled & COUNT) > n;
}

// All threads of a reader: as `send`.
template <class Scope>
__device__ inline u64 receive(const PairStream &job, u32 part, const Pair &pair, u64 sample, u64 n, u32 &sum) {
    for (;; ++n) {
        if (threadIdx.x == 0) told()->kept = came<Scope>(job, part, pair, sample, n);
        __syncthreads();
        if (!told()->kept) return n;
        sum += read_message(slot(job, pair, n), job.bytes);
        __syncthreads();
        if (threadIdx.x == 0) Scope::raise(pair.emptied, n + 1);
    }
}

// Thread 0 of the first pair: a word there and back, again and again.
template <class Scope> __device__ inline void hand_over(const PairStream &job, u32 part, const Pair &pair, u64 sample) {
    u64 n = sample * job.messages;
    u64 *const own = part == 0 ? pair.filled : pair.emptied, *const other = part == 0 ? pair.emptied : pair.filled;
    for (const u64 end = n + job.messages; n < end;) {
        ++n;
        if (part == 0) Scope::raise(own, n);
        if (!reach<Scope>(watch_of(job.parts), part, other, n)) break;
        if (part != 0) Scope::raise(own, n);
    }
    if (part == 0) store_release(job.ended, sample + 1);
}

// All threads: every sample of this part.
template <class Scope> __device__ inline void take_samples(const PairStream &job, const Pair &pair, u32 part) {
    const bool writes = part % 2 == 0, probes = job.probing && part < 2;
    u64 n = 0;
    u32 sum = 0;
    for (u64 sample = 0; sample < job.parts.samples; ++sample) {
        if (!gather(job.parts, part, sample + 1)) return;
        const u64 begin = cycles(), before = n;
        if (probes) {
            if (threadIdx.x == 0) hand_over<Scope>(job, part, pair, sample);
        } else if (writes) {
            n = send<Scope>(job, part, pair, sample, n);
        } else {
            n = receive<Scope>(job, part, pair, sample, n, sum);
        }
        if (threadIdx.x == 0) {
            record(job.parts, sample, part, begin, cycles());
            job.received[sample * job.parts.parts + part] = writes ? 0 : n - before;
        }
    }
    job.sums[part * job.sum_threads + threadIdx.x] = sum;
}

KERNEL(512) pair_stream(const PairStream *given) {
    const PairStream job = *given;
    const u32 part = take_part(job.parts);
    if (part == NO_PART) return;
    u64 *flags = job.flags + part / 2 * 2 * LINE;
    const Pair pair = {flags, flags + LINE, job.slots + part / 2 * SLOTS * job.bytes};
    take_samples<Gpu>(job, pair, part);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Several clusters at once; parts follow the blocks, which the hardware places.
KERNEL(512) pair_stream_in_cluster(const PairStream *given) {
    const PairStream job = *given;
    const u32 part = blockIdx.x, partner = block_in_cluster() ^ 1;
    u8 *own = block_memory() + HEAD, *others = of_block(own, partner);
    u8 *reader = part % 2 == 0 ? others : own, *writer = part % 2 == 0 ? own : others;
    if (threadIdx.x == 0) {
        job.parts.sm_of_part[part] = 1 + (u64)sm_number();
        ((u64 *)own)[0] = ((u64 *)own)[LINE] = 0;
    }
    cluster_barrier();
    const Pair pair = {(u64 *)reader, (u64 *)writer + LINE, reader + 2 * LINE * sizeof(u64)};
    take_samples<Cluster>(job, pair, part);
    cluster_barrier();
}

#endif
