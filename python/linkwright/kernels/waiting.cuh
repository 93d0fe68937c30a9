// Waiting with a limit, so that nothing wrong can hang a GPU.
//
// A block that runs out of patience records what it waited for, once for the whole kernel; all other waiting blocks see
// the record and give up too. The clock and the record are read only occasionally, because each read delays the load
// that matters.
#pragma once
#include "device.cuh"

const u32 NOTHING_GIVEN = 0xffffffffu;

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

// Thread 0: the part or rank that the host gave to the SM of this block, or NOTHING_GIVEN.
__device__ inline u32 claim(const Watch &watch, const u32 *given, u64 sms, u64 *sm_of) {
    const u64 sm = sm_number();
    const u32 own = sm < sms ? given[sm] : NOTHING_GIVEN;
    if (own != NOTHING_GIVEN && exchange(sm_of + own, 1 + sm) != 0) {
        report(watch, SHARED_SM, own, 0, sm, 0);
        return NOTHING_GIVEN;
    }
    return own;
}

// One thread: true when what the counter holds, `found`, is `enough`; false when a block gave up. `wanted` is reported.
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
