// What probes share: which part a block plays, beginning together, and where times go.
//
// As in schedule_walk.cu a block takes the part that the host gave to its SM; a block without a part leaves. Before
// each sample the parts wait for each other at a counter that only grows. A part that waits longer than two seconds
// records what it waited for, and all parts leave: another process uses the GPU, so an SM has no block.
//
// A kernel first copies its job. Reading a field in place would cost an access of the L2 within the timed region
// whenever an acquire has emptied the L1.
#pragma once
#include "waiting.cuh"

const u32 NO_PART = NOTHING_GIVEN;
const u32 HEAD = 128;  // bytes of block memory in front of the probe's own
const u64 PATIENCE_NS = 2000000000ull;

// The first words of the job of every probe.
struct Parts {
    u64 parts;
    const u32 *part_of_sm;
    u64 sms;
    u64 *sm_of_part;  // written: 1 + SM
    u64 *arrived;
    u64 *trouble;  // written: as `Watch` says
    u64 samples;
    u64 *cycles;  // by (sample, part)
};

// What thread 0 tells the other threads of its block.
struct Told {
    u32 part;
    u32 alive;
    u64 kept;
};
static_assert(sizeof(Told) <= HEAD, "the probe's own memory begins behind it");

__device__ inline Told *told() { return (Told *)block_memory(); }

__device__ inline Watch watch_of(const Parts &job) {
    const Watch watch = {job.trouble, PATIENCE_NS};
    return watch;
}

// All threads: the part of this block, or NO_PART.
__device__ inline u32 take_part(const Parts &job) {
    if (threadIdx.x == 0) told()->part = claim(watch_of(job), job.part_of_sm, job.sms, job.sm_of_part);
    __syncthreads();
    return told()->part;
}

// All threads: returns when all parts have called it `number` times (from 1); false where one never will.
__device__ inline bool gather(const Parts &job, u32 part, u64 number) {
    __syncthreads();
    if (threadIdx.x == 0) {
        add_release(job.arrived, 1);
        told()->alive = reach<Gpu>(watch_of(job), part, job.arrived, number * job.parts);
    }
    __syncthreads();
    return told()->alive;
}

__device__ inline void record(const Parts &job, u64 sample, u32 part, u64 begin, u64 end) {
    job.cycles[sample * job.parts + part] = end - begin;
}
