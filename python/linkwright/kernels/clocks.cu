// Quality of the clocks of a GPU: rate, resolution, overhead, and the offsets between SMs.
//
// One block per SM, one thread each. Every SM waits until the timer of the GPU passes an agreed time and reads its
// cycle counter at that moment; again `span_ns` later:
//
//     rate       (cycles at the end - at the beginning) / (ns at the end - at the beginning)
//     offset     cycles at the beginning, minus those of SM 0
//     drift      change of the offset in between
//
// An offset is known to about the duration of one reading of the timer. In between the SM is kept busy as it is in a
// measurement, by reading clocks: an idle SM may lower its clock.
//
// CPU reference: the arithmetic above, linkwright.executors.cuda.clocks.
#include "device.cuh"

struct Clocks {
    u64 span_ns;
    u64 *arrived;  // [0] blocks that are here, [16] the agreed begin
    u64 *found;    // 8 words by block: SM, cycles and ns at begin and end, resolution ns, overhead cycles, looks
};

KERNEL(1) clocks(const Clocks *job) {
    u64 *named = job->arrived + 16;
    if (fetch_add(job->arrived, 1) + 1 == gridDim.x) store_release(named, nanoseconds() + 10000);
    while (load_acquire(named) == 0) look_again();
    const u64 begin = load_acquire(named), end = begin + job->span_ns;
    u64 *found = job->found + 8 * blockIdx.x;
    found[0] = sm_number();
    while (nanoseconds() < begin) look_again();
    const u64 first_cycles = cycles(), first_ns = nanoseconds();
    u64 last = first_ns, resolution = ~0ull, overhead = ~0ull, looks = 0, now;
    do {
        look_again();
        now = nanoseconds();
        if (now != last && now - last < resolution) resolution = now - last;
        last = now;
        const u64 before = cycles(), after = cycles();
        if (after - before < overhead) overhead = after - before;
        ++looks;
    } while (now < end);
    const u64 last_cycles = cycles();
    found[1] = first_cycles;
    found[2] = first_ns;
    found[3] = last_cycles;
    found[4] = now;
    found[5] = resolution;
    found[6] = overhead;
    found[7] = looks;
}
