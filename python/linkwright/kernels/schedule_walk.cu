// A schedule on the SMs of a GPU: one block per rank walks the rank's instructions.
//
// The kernel is persistent and cooperative: all blocks are resident, one per SM (its shared memory leaves
// no room for a second), and a block takes the rank that the host gave to its SM. So a rank keeps its SM,
// and the SM's number is read, not assumed. For each repetition
//
//     start    all ranks arrive; rank 0 then chooses a time, and each rank starts at it plus its own delay
//     walk     wait for counters -> copy or combine with all threads -> raise counters ...
//     finish   all data for this rank have arrived
//
// Flags are counters that only grow, one per (source -> destination), each in a separate line of 128 bytes:
//
//     wait     look(counter)  >=  epoch * per_epoch + ordinal      acquire
//     raise    counter = epoch * per_epoch + ordinal               release, one writer
//     arrive   counter += 1                                        release, a barrier: many writers
//
// The epoch is the repetition. Counters are zero when the kernel begins and are never reset, so no rank can miss a
// value. Threads wait for and raise different counters in parallel, so many flags take no longer than one; the block
// synchronises only if a thread needs what others waited for or did. An acquire empties the L1, so before the first
// repetition a rank *links* its instructions into shared memory and replaces numbers by addresses. Instructions that do
// not fit go to global memory, and each record then costs an access of the L2.
//
// An access of the L2 takes hundreds of cycles, so as many as possible are in flight: a team of threads moves each piece
// of an instruction, and the host merges combinations into one place to a single instruction, FOLD.
//
// With WALK_IN_CLUSTER the blocks form one cluster: each rank's memory is shared memory of its own block,
// peers reach it as distributed shared memory, and a counter lives with the rank that waits on it. A rank is
// then the number of the block in the cluster.
//
// A stuck schedule must not hang a GPU: a rank that waits longer than `patience_ns` records what it waited for, and all
// ranks leave. The work of the host before and after is not measured.
//
// CPU reference: tests/python/gpu/walk.py (the same stream); both must leave in memory what
// the executor `reference` leaves.
#include "fold.cuh"
#include "ranks.cuh"

enum Code : u32 { NOTHING, COPY, COMBINE, ARRIVE, COMPUTE, FOLD, FOLD_ELEMENTS };

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

const u32 HEAD = 256;  // bytes of block memory in front of what a fold finds, and data: Block

// What all threads of a block know: the launch, read once, and who they are.
struct Block {
    Walk walk;
    u32 rank;
};
static_assert(sizeof(Block) <= HEAD, "what a fold finds begins behind it");

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

__device__ inline u8 *found_by_folds() { return block_memory() + HEAD; }

__device__ inline u8 *behind_folds() { return found_by_folds() + 16 * blockDim.x; }

#if defined(WALK_IN_CLUSTER)

// The rank of this block.
__device__ inline u32 claim(const Walk *walk) {
    const u32 rank = block_in_cluster();
    walk->run.sm_of_rank[rank] = 1 + (u64)sm_number();
    return rank;
}

__device__ inline u8 *own_data() { return behind_folds(); }

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
    copy(whole_block(), own_data(), walk->memory + walk->participant_first[rank], own_bytes(walk, rank));
    u64 *own = own_counters(walk);
    for (u64 i = threadIdx.x; i < walk->cluster_counters; i += blockDim.x) own[i] = 0;
    cluster_barrier();
}

// Nobody leaves while others may still reach into its shared memory; then data go back.
__device__ inline void leave(const Walk *walk, u32 rank) {
    cluster_barrier();
    copy(whole_block(), walk->memory + walk->participant_first[rank], own_data(), own_bytes(walk, rank));
}

#else

__device__ inline u32 claim(const Walk *walk) { return claim_rank(walk->run); }

__device__ inline u8 *own_linked(const Walk *) { return behind_folds(); }

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

// Every thread for the waits that are its own; false when somebody gave up.
__device__ inline bool wait_all(const Walk *walk, u32 rank, const Program &program, u32 first, u32 end, u64 epoch) {
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) {
        const LinkedCount wait = program.waits[i];
        if (!reach<Scope>(watch_of(walk->run), rank, wait.counter, epoch * wait.per_epoch + wait.ordinal)) return false;
    }
    return true;
}

__device__ inline void raise_all(const Program &program, u32 code, u32 first, u32 end, u64 epoch) {
    for (u32 i = first + threadIdx.x; i < end; i += blockDim.x) {
        const LinkedCount count = program.raises[i];
        if (code == ARRIVE)
            Scope::arrive(count.counter);
        else
            Scope::raise(count.counter, epoch * count.per_epoch + count.ordinal);
    }
}

__device__ inline void move(const Walk *walk, u32 code, const LinkedPiece &piece, Team team) {
    if (code == COMBINE)
        combine(team, (u32)walk->dtype, (u32)walk->op, piece.to, piece.from, piece.bytes);
    else
        copy(team, piece.to, piece.from, piece.bytes);
}

// Several pieces at once: teams of two to the power `bits`, just as many threads as a piece has packs.
__device__ inline void move_in_teams(const Walk *walk, u32 code, const LinkedPiece *pieces, u32 count) {
    u32 bits = 0;
    while (2u << bits <= blockDim.x && 16ull << bits < pieces[0].bytes) ++bits;
    const u32 teams = blockDim.x >> bits, own = threadIdx.x >> bits;
    const Team team = {threadIdx.x - (own << bits), 1u << bits};
    if (own >= teams) return;
    for (u32 i = own; i < count; i += teams) move(walk, code, pieces[i], team);
}

// In whole packs, or where addresses do not allow them in single elements.
template <bool WHOLE, class T> struct FoldedAs {
    typedef WholePack<T> Type;
};

template <class T> struct FoldedAs<false, T> {
    typedef Pack<T, 1> Type;
};

// All into the same place, which is a vector of the fold too.
template <bool WHOLE> __device__ inline void fold_pieces(const Walk *walk, const LinkedPiece *pieces, u32 count) {
    with_kind((u32)walk->dtype, (u32)walk->op, [=](auto kind) {
        typedef decltype(kind) K;
        typedef typename FoldedAs<WHOLE, typename K::T>::Type P;
        P *to = (P *)pieces[0].to;
        const auto from = [=](u32 number) {
            const P *piece = (const P *)pieces[number ? number - 1 : 0].from;  // read in any case: no branch between loads
            return number ? piece : to;
        };
        fold<K::OP>(to, (u32)(pieces[0].bytes / sizeof(P)), count + 1, from, (P *)found_by_folds());
    });
}

__device__ inline void act(const Walk *walk, u32 code, const LinkedPiece *pieces, u32 count) {
    if (code == COMPUTE) {
        for (u32 i = 0; i < count; ++i)
            for (u64 done = 0; done < pieces[i].bytes; ++done) opaque((u32)done);
    } else if (code == FOLD) {
        fold_pieces<true>(walk, pieces, count);
    } else if (code == FOLD_ELEMENTS) {
        fold_pieces<false>(walk, pieces, count);
    } else if (count == 1) {
        move(walk, code, pieces[0], whole_block());
    } else {
        move_in_teams(walk, code, pieces, count);
    }
}

// Whose doing no barrier has made everybody's yet.
enum Open : u32 { NOBODY, THREAD_0, OTHERS };

// All threads: one epoch of the rank's instructions; false when somebody gave up, and before where `alive` is false.
__device__ inline bool run(const Walk *walk, u32 rank, const Program &program, u64 epoch, bool alive) {
    u32 open = THREAD_0;
    Instruction last = {NOTHING, 0, 0, 0}, next = program.instructions[0];
    for (u32 i = 0; i < program.length; ++i) {
        const Instruction now = next;
        next = program.instructions[i + 1 < program.length ? i + 1 : i];  // it is there when its turn comes
        const u32 waits = now.waits - last.waits, pieces = now.pieces - last.pieces, raises = now.raises - last.raises;
        if (waits) alive = alive && wait_all(walk, rank, program, last.waits, now.waits, epoch);
        if (waits > 1) open = OTHERS;
        if (waits == 1 && open == NOBODY) open = THREAD_0;
        const bool raised_by_others = raises > 1 ? open != NOBODY : raises == 1 && open == OTHERS;
        if ((pieces && open != NOBODY) || (!pieces && raised_by_others)) {
            if (__syncthreads_or(!alive)) return false;
            open = NOBODY;
        }
        if (pieces) {
            act(walk, now.code, program.pieces + last.pieces, pieces);
            open = OTHERS;
            if (raises) {
                __syncthreads();
                open = NOBODY;
            }
        }
        if (raises && alive) raise_all(program, now.code, last.raises, now.raises, epoch);
        last = now;
    }
    return !__syncthreads_or(!alive);
}

#if defined(WALK_IN_CLUSTER)
KERNEL(256) schedule_walk_in_cluster(const Walk *given) {
#else
KERNEL(256) schedule_walk(const Walk *given) {
#endif
    if (threadIdx.x == 0) {
        block()->walk = *given;
        block()->rank = claim(given);
    }
    __syncthreads();
    const Walk *walk = &block()->walk;
    const u32 rank = block()->rank;
    if (rank == NO_RANK) return;
    enter(walk, rank);
    const Program program = link(walk, rank);
    for (u64 repetition = 0; repetition < walk->run.repetitions; ++repetition) {
        __syncthreads();
        bool alive = threadIdx.x != 0 || begin(walk->run, rank, repetition);
        alive = run(walk, rank, program, repetition, alive);
        if (threadIdx.x == 0) finish(walk->run, rank, repetition);
        if (!alive) break;
    }
    leave(walk, rank);
}
