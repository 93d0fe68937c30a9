// Waiting with a limit, so that nothing wrong can hang a GPU.
//
// Who waits longer than its patience writes down for what, once for the whole kernel; everybody else who waits sees
// that and gives up too. Clock and trouble are looked at now and then only: each look delays the one that matters.
#pragma once
#include "device.cuh"

enum Trouble : u64 { NONE, STUCK, SHARED_SM };

struct Watch {
    u64 *trouble;  // what, who, counter, wanted, found
    u64 patience_ns;
};

__device__ inline void report(const Watch &watch, u64 what, u64 who, const u64 *counter, u64 wanted, u64 found) {
    if (compare_and_swap(watch.trouble, NONE, what) != NONE) return;
    watch.trouble[1] = who;
    watch.trouble[2] = (u64)counter;
    watch.trouble[3] = wanted;
    watch.trouble[4] = found;
}

// One thread: true when what the counter holds, `found`, is `enough`; false when somebody gave up. `wanted` is told.
template <class Scope, class Enough>
__device__ inline bool await(const Watch &watch, u64 who, const u64 *counter, u64 wanted, u64 &found, Enough enough) {
    u64 begun = 0;
    for (u32 looks = 1; !enough(found = Scope::look(counter)); ++looks) {
        look_again();
        if (looks % 256) continue;
        if (load_acquire(watch.trouble) != NONE) return false;
        const u64 now = nanoseconds();
        if (begun == 0) begun = now;
        if (now - begun > watch.patience_ns) {
            report(watch, STUCK, who, counter, wanted, found);
            return false;
        }
    }
    return true;
}

// One thread: as `await`, until the counter has reached `wanted`.
template <class Scope> __device__ inline bool reach(const Watch &watch, u64 who, const u64 *counter, u64 wanted) {
    u64 found;
    return await<Scope>(watch, who, counter, wanted, found, [=](u64 count) { return count >= wanted; });
}
