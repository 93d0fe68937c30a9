// Shared by kernels whose blocks play ranks: claiming a rank, starting together, taking times.
//
// A block takes the rank that the host gave to its SM; a block without a rank leaves. Before each repetition all ranks
// arrive at a counter that only grows; rank 0 then chooses a start on the GPU's timer, and each rank starts at that time
// plus its own delay.
#pragma once
#include "waiting.cuh"

const u32 NO_RANK = NOTHING_GIVEN;

// The first words of the job of such a kernel.
struct Ranks {
    u64 ranks;
    u64 repetitions;
    u64 *arrivals;          // [0] barrier before each repetition, [LINE] its start time
    const u32 *rank_of_sm;  // by SM number; NO_RANK: the block leaves
    u64 sms;
    u64 *sm_of_rank;      // written: 1 + SM that took the rank
    const u64 *delays;    // by (repetition, rank), ns
    u64 *times;           // by (repetition, rank): cycles at start and finish, ns at start and finish
    u64 *trouble;         // what, rank, counter, wanted, found
    u64 margin_ns;        // from the naming of the start time to the start
    u64 patience_ns;      // longest wait
};

__device__ inline Watch watch_of(const Ranks &run) {
    const Watch watch = {run.trouble, run.patience_ns};
    return watch;
}

// Thread 0: the rank that the host gave to the SM of this block, or NO_RANK.
__device__ inline u32 claim_rank(const Ranks &run) {
    return claim(watch_of(run), run.rank_of_sm, run.sms, run.sm_of_rank);
}

// Thread 0: returns at the common start time plus the rank's delay; false if a rank gave up.
__device__ inline bool start(const Ranks &run, u32 rank, u64 repetition) {
    u64 *arrived = run.arrivals, *named = run.arrivals + LINE;
    const u64 delay = run.delays[repetition * run.ranks + rank], before = load_acquire(named);
    add_release(arrived, 1);
    if (rank == 0) {
        if (!reach<Gpu>(watch_of(run), rank, arrived, (repetition + 1) * run.ranks)) return false;
        const u64 now = nanoseconds();
        store_release(named, (now > before ? now : before) + run.margin_ns + 1);
    } else if (!reach<Gpu>(watch_of(run), rank, named, before + 1)) {
        return false;
    }
    const u64 begin = load_acquire(named) + delay;
    while (nanoseconds() < begin) look_again();
    return true;
}

__device__ inline u64 *times_of(const Ranks &run, u32 rank, u64 repetition) {
    return run.times + 4 * (repetition * run.ranks + rank);
}

// Thread 0: `start`, then records the time at which this rank started.
__device__ inline bool begin(const Ranks &run, u32 rank, u64 repetition) {
    const bool alive = start(run, rank, repetition);
    u64 *times = times_of(run, rank, repetition);
    times[2] = nanoseconds();
    times[0] = cycles();
    return alive;
}

// Thread 0: records the time at which this rank finished.
__device__ inline void finish(const Ranks &run, u32 rank, u64 repetition) {
    u64 *times = times_of(run, rank, repetition);
    times[1] = cycles();
    times[3] = nanoseconds();
}
