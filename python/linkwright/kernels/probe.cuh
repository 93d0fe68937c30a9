// What probes share: which part a block plays, beginning together, and where times go.
//
// As in schedule_walk.cu a block takes the part that the host gave to its SM; a block without a part leaves. Before
// each sample the parts wait for each other at a counter that only grows. Whoever waits longer than two seconds
// (an SM has no block, because somebody else uses the GPU) writes that down, and all leave.
#pragma once
#include "device.cuh"

const u32 NO_PART = 0xffffffffu;
const u32 HEAD = 128;  // bytes of block memory in front of the probe's own
const u64 PATIENCE_NS = 2000000000ull;

// The first words of the job of every probe.
struct Parts {
    u64 parts;
    const u32 *part_of_sm;
    u64 sms;
    u64 *sm_of_part;  // written: 1 + SM
    u64 *arrived;
    u64 *trouble;  // written: 1 where somebody waited in vain
    u64 samples;
    u64 *cycles;  // by (sample, part)
};

// What thread 0 tells the other threads of its block.
struct Told {
    u32 part;
    u32 alive;
    u64 kept;
};

__device__ inline Told *told() { return (Told *)block_memory(); }

// All threads: the part of this block, or NO_PART.
__device__ inline u32 take_part(const Parts &job) {
    if (threadIdx.x == 0) {
        const u64 sm = sm_number();
        u32 part = sm < job.sms ? job.part_of_sm[sm] : NO_PART;
        if (part != NO_PART && exchange(job.sm_of_part + part, 1 + sm) != 0) {
            exchange(job.trouble, 1);
            part = NO_PART;
        }
        told()->part = part;
    }
    __syncthreads();
    return told()->part;
}

// All threads: returns when all parts have called it `number` times (from 1); false where one never will.
__device__ inline bool gather(const Parts &job, u64 number) {
    __syncthreads();
    if (threadIdx.x == 0) {
        add_release(job.arrived, 1);
        const u64 begun = nanoseconds();
        u32 alive = 1;
        while (alive && load_acquire(job.arrived) < number * job.parts) {
            look_again();
            if (load_acquire(job.trouble) != 0) alive = 0;
            if (nanoseconds() - begun > PATIENCE_NS) exchange(job.trouble, 1);
        }
        told()->alive = alive;
    }
    __syncthreads();
    return told()->alive;
}

__device__ inline void record(const Parts &job, u64 sample, u32 part, u64 begin, u64 end) {
    job.cycles[sample * job.parts + part] = end - begin;
}
