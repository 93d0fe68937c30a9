// A schedule on the SMs of a GPU: one block per rank walks the rank's instructions.
//
// The kernel is persistent and cooperative: all blocks are resident, one per SM (its shared memory leaves
// no room for a second), and a block takes the rank that the host gave to its SM. So a rank keeps its SM,
// and the SM's number is read, not assumed. For each repetition
//
//     start    everybody arrives; rank 0 then names a time, and everybody starts at it, plus its own delay
//     walk     wait for counters -> copy or combine with all threads -> raise counters ...
//     finish   all that is meant for this rank has come
//
// Flags are counters that only grow, one per (source -> destination), each in 128 bytes of its own:
//
//     wait     look(counter)  >=  epoch * per_epoch + ordinal      acquire
//     raise    counter = epoch * per_epoch + ordinal               release, one writer
//     arrive   counter += 1                                        release, a barrier: many writers
//
// The epoch is the repetition; counters are zero when the kernel begins and are not reset in between, so nobody
// can miss a value. Thread 0 waits and raises; a barrier of the block on either side makes all threads part of
// what is acquired and released. An acquire empties the L1, so before the first repetition a rank *links* its
// instructions into shared memory, with addresses in place of numbers; where they do not fit they go to global
// memory, and each record costs an access of the L2.
//
// With WALK_IN_CLUSTER the blocks form one cluster: each rank's memory is shared memory of its own block,
// peers reach it as distributed shared memory, and a counter lives with the rank that waits on it. A rank is
// then the number of the block in the cluster.
//
// A schedule that cannot go on must not hang a GPU: who waits longer than `patience_ns` writes down for
// what, and everybody leaves. Not measured here: what the host does before and after.
//
// Defined when it is compiled for a GPU: WALK_DTYPE and WALK_OP, numbers that `combine` then need not ask for.
//
// CPU reference: linkwright.executors.cuda.walk (Python, the same stream); both must leave in memory what
// the executor `reference` leaves.
#include "combine.cuh"
#include "ranks.cuh"

#if !defined(WALK_DTYPE)
#define WALK_DTYPE ((u32)walk->dtype)
#define WALK_OP ((u32)walk->op)
#endif

enum Code : u32 { NOTHING, COPY, COMBINE, ARRIVE, COMPUTE };

// Ends in the tables of waits, pieces, raises; each begins where the last instruction's ended.
struct Instruction {
    u32 code, waits, pieces, raises;
};

struct Count {
    u64 counter, ordinal, per_epoch;
};

struct Piece {
    u64 from, from_offset, to, to_offset, bytes;
};

// Everything a launch needs; the host writes it as an array of 64-bit words in this order.
struct Walk {
    Ranks run;
    const u32 *rank_first;
    const Instruction *instructions;
    const Count *waits;
    const Piece *pieces;
    const Count *raises;
    u8 *memory;                    // of all participants
    const u64 *participant_first;  // where each begins; one more for the end
    u64 *counters;                 // LINE words each; in a cluster: none
    const u64 *counter_home;       // in a cluster: rank << 32 | number within the rank
    u64 cluster_counters;          // in a cluster: counters at each rank
    u64 cluster_data;              // in a cluster: bytes of the largest rank's memory
    u8 *linked;                    // link_bytes for each rank in global memory; null: in shared memory
    u64 link_bytes;
    u64 dtype, op;
};

const u32 HEAD = 256;  // bytes of block memory in front of data: Block

// What all threads of a block know: the launch, read once, and what thread 0 tells the others.
struct Block {
    Walk walk;
    u32 rank;
    u32 alive;
};

// A wait or a raise, and a piece, with addresses.
struct LinkedCount {
    u64 *counter;
    u64 ordinal, per_epoch;
};

struct LinkedPiece {
    const u8 *from;
    u8 *to;
    u64 bytes;
};

// The instructions of one rank; ends count from the rank's own first entry.
struct Program {
    u32 length;
    const Instruction *instructions;
    const LinkedCount *waits;
    const LinkedPiece *pieces;
    const LinkedCount *raises;
};

#if defined(WALK_IN_CLUSTER)
typedef Cluster Scope;
#else
typedef Gpu Scope;
#endif

__device__ inline Block *block() { return (Block *)block_memory(); }

#if defined(WALK_IN_CLUSTER)

// The rank of this block.
__device__ inline u32 claim(const Walk *walk) {
    const u32 rank = block_in_cluster();
    walk->run.sm_of_rank[rank] = 1 + (u64)sm_number();
    return rank;
}

__device__ inline u8 *own_data() { return block_memory() + HEAD; }

__device__ inline u64 *own_counters(const Walk *walk) { return (u64 *)(own_data() + walk->cluster_data); }

__device__ inline u8 *own_linked(const Walk *walk) { return (u8 *)(own_counters(walk) + walk->cluster_counters); }

__device__ inline u64 own_bytes(const Walk *walk, u32 rank) {
    return walk->participant_first[rank + 1] - walk->participant_first[rank];
}

// Memory of a participant; those that are no ranks stay in global memory.
__device__ inline u8 *memory_of(const Walk *walk, u64 participant) {
    if (participant >= walk->run.ranks) return walk->memory + walk->participant_first[participant];
    return of_block(own_data(), (u32)participant);
}

__device__ inline u64 *counter_at(const Walk *walk, u64 counter) {
    const u64 home = walk->counter_home[counter];
    return (u64 *)of_block((u8 *)own_counters(walk), (u32)(home >> 32)) + (home & NO_RANK);
}

// Data come into shared memory, counters begin at zero, before anybody may reach for them.
__device__ inline void enter(const Walk *walk, u32 rank) {
    copy(own_data(), walk->memory + walk->participant_first[rank], own_bytes(walk, rank));
    u64 *own = own_counters(walk);
    for (u64 i = threadIdx.x; i < walk->cluster_counters; i += blockDim.x) own[i] = 0;
    cluster_barrier();
}

// Nobody leaves while others may still reach into its shared memory; then data go back.
__device__ inline void leave(const Walk *walk, u32 rank) {
    cluster_barrier();
    copy(walk->memory + walk->participant_first[rank], own_data(), own_bytes(walk, rank));
}

#else

__device__ inline u32 claim(const Walk *walk) { return claim_rank(walk->run); }

__device__ inline u8 *own_linked(const Walk *) { return block_memory() + HEAD; }

__device__ inline u8 *memory_of(const Walk *walk, u64 participant) {
    return walk->memory + walk->participant_first[participant];
}

__device__ inline u64 *counter_at(const Walk *walk, u64 counter) { return walk->counters + counter * LINE; }

__device__ inline void enter(const Walk *, u32) {}

__device__ inline void leave(const Walk *, u32) {}

#endif

__device__ inline LinkedCount linked(const Walk *walk, Count count) {
    LinkedCount made = {counter_at(walk, count.counter), count.ordinal, count.per_epoch};
    return made;
}

__device__ inline LinkedPiece linked(const Walk *walk, Piece piece) {
    LinkedPiece made = {memory_of(walk, piece.from) + piece.from_offset, memory_of(walk, piece.to) + piece.to_offset,
                        piece.bytes};
    return made;
}

// All threads: resolves entries first..end of a table to `out`; gives the end of what was written.
template <class To, class From>
__device__ inline u8 *link_table(const Walk *walk, const From *table, u32 first, u32 end, u8 *out) {
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) ((To *)out)[i - first] = linked(walk, table[i]);
    return out + (end - first) * sizeof(To);
}

// All threads: the rank's program with addresses, in shared memory if it fits.
__device__ inline Program link(const Walk *walk, u32 rank) {
    const u32 first = walk->rank_first[rank], end = walk->rank_first[rank + 1];
    // Where this rank's entries begin: where those of the rank before it end.
    Instruction base = {NOTHING, 0, 0, 0};
    if (first > 0) base = walk->instructions[first - 1];
    const Instruction last = walk->instructions[end - 1];  // every rank has one
    u8 *out = walk->linked ? walk->linked + rank * walk->link_bytes : own_linked(walk);
    Program program;
    program.length = end - first;
    Instruction *instructions = (Instruction *)out;
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) {
        const Instruction now = walk->instructions[i];
        const Instruction own = {now.code, now.waits - base.waits, now.pieces - base.pieces, now.raises - base.raises};
        instructions[i - first] = own;
    }
    program.instructions = instructions;
    out += (end - first) * sizeof(Instruction);
    program.waits = (const LinkedCount *)out;
    out = link_table<LinkedCount>(walk, walk->waits, base.waits, last.waits, out);
    program.pieces = (const LinkedPiece *)out;
    out = link_table<LinkedPiece>(walk, walk->pieces, base.pieces, last.pieces, out);
    program.raises = (const LinkedCount *)out;
    link_table<LinkedCount>(walk, walk->raises, base.raises, last.raises, out);
    return program;
}

__device__ inline bool wait_all(const Walk *walk, u32 rank, const Program &program, u32 first, u32 end, u64 epoch) {
    for (u32 i = first; i < end; ++i) {
        const LinkedCount wait = program.waits[i];
        if (!reach<Scope>(walk->run, rank, wait.counter, epoch * wait.per_epoch + wait.ordinal)) return false;
    }
    return true;
}

__device__ inline void raise_all(const Program &program, u32 code, u32 first, u32 end, u64 epoch) {
    for (u32 i = first; i < end; ++i) {
        const LinkedCount count = program.raises[i];
        if (code == ARRIVE)
            Scope::arrive(count.counter);
        else
            Scope::raise(count.counter, epoch * count.per_epoch + count.ordinal);
    }
}

__device__ inline void act(const Walk *walk, const Program &program, u32 code, u32 first, u32 end) {
    for (u32 i = first; i < end; ++i) {
        const LinkedPiece piece = program.pieces[i];
        if (code == COMPUTE) {
            for (u64 done = 0; done < piece.bytes; ++done) opaque((u32)done);
        } else if (code == COMBINE) {
            combine(WALK_DTYPE, WALK_OP, piece.to, piece.from, piece.bytes);
        } else {
            copy(piece.to, piece.from, piece.bytes);
        }
    }
}

// All threads: one epoch of the rank's instructions. Who gives up leaves `alive` false. The others read it
// between the two barriers of an instruction and thread 0 writes it outside them, so all see the same.
__device__ inline void run(const Walk *walk, u32 rank, const Program &program, u64 epoch) {
    u32 &alive = block()->alive;
    Instruction last = {NOTHING, 0, 0, 0};
    for (u32 i = 0; i < program.length; ++i) {
        const Instruction now = program.instructions[i];
        const bool together = now.pieces > last.pieces;
        if (threadIdx.x == 0 && alive) alive = wait_all(walk, rank, program, last.waits, now.waits, epoch);
        if (together) {
            __syncthreads();
            if (!alive) return;
            act(walk, program, now.code, last.pieces, now.pieces);
            __syncthreads();
        }
        if (threadIdx.x == 0 && alive) raise_all(program, now.code, last.raises, now.raises, epoch);
        last = now;
    }
}

#if defined(WALK_IN_CLUSTER)
KERNEL(256) schedule_walk_in_cluster(const Walk *given) {
#else
KERNEL(256) schedule_walk(const Walk *given) {
#endif
    if (threadIdx.x == 0) {
        block()->walk = *given;
        block()->rank = claim(given);
        block()->alive = 1;
    }
    __syncthreads();
    const Walk *walk = &block()->walk;
    const u32 rank = block()->rank;
    if (rank == NO_RANK) return;
    enter(walk, rank);
    const Program program = link(walk, rank);
    for (u64 repetition = 0; repetition < walk->run.repetitions; ++repetition) {
        __syncthreads();
        if (threadIdx.x == 0) block()->alive = begin<Scope>(walk->run, rank, repetition);
        run(walk, rank, program, repetition);
        if (threadIdx.x == 0) finish(walk->run, rank, repetition);
        __syncthreads();
        if (!block()->alive) break;
    }
    leave(walk, rank);
}
