// Blocks of CPU threads in place of the SMs of a GPU, for kernels that include device.cuh.
//
// One OS thread per thread of a block, one barrier per block and per cluster, atomic order for what is
// acquire and release on a GPU. A block says that it runs on SM `sm_of_block(number)`, so that ranks do not
// coincide with block numbers. Only the logic is the GPU's; times mean nothing.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sched.h>
#include <thread>
#include <vector>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t i32;
typedef long long i64;

#define KERNEL(threads) extern "C" void
#define __device__

namespace shim {

struct Dimensions {
    u32 x = 1, y = 1, z = 1;
};

// Members wait for each other. Not std::barrier: its waiting room is shared by all barriers of a process, which
// would order blocks that no flag orders and hide their races from ThreadSanitizer.
struct Group {
    explicit Group(u32 members) : members(members) {}
    void wait() {
        const u32 now = round.load(std::memory_order_acquire);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
            arrived.store(0, std::memory_order_relaxed);
            round.store(now + 1, std::memory_order_release);
        } else {
            while (round.load(std::memory_order_acquire) == now) sched_yield();
        }
    }
    const u32 members;
    std::atomic<u32> arrived{0}, round{0}, any{0};
    std::vector<u8 *> memories;  // of the blocks of a cluster
};

struct Here {
    Dimensions thread, block, threads, blocks;
    Group *of_block, *of_cluster;
    u8 *memory;
    u32 sm, in_cluster;
};

inline thread_local Here here;

// A permutation of `sms` numbers.
inline u32 sm_of_block(u32 block, u32 sms) { return sms - 1 - block % sms; }

}  // namespace shim

#define threadIdx (shim::here.thread)
#define blockIdx (shim::here.block)
#define blockDim (shim::here.threads)
#define gridDim (shim::here.blocks)

inline void __syncthreads() { shim::here.of_block->wait(); }
inline int __syncthreads_or(int given) {
    shim::Group &block = *shim::here.of_block;
    if (given) block.any.store(1, std::memory_order_relaxed);
    block.wait();
    const int any = block.any.load(std::memory_order_relaxed);
    block.wait();
    if (threadIdx.x == 0) block.any.store(0, std::memory_order_relaxed);
    block.wait();
    return any;
}
inline u64 nanoseconds() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
inline u64 cycles() { return nanoseconds() * 2; }
inline u32 sm_number() { return shim::here.sm; }
inline u64 load_acquire(const u64 *address) { return __atomic_load_n(address, __ATOMIC_ACQUIRE); }
inline void store_release(u64 *address, u64 value) { __atomic_store_n(address, value, __ATOMIC_RELEASE); }
inline void add_release(u64 *address, u64 value) { __atomic_fetch_add(address, value, __ATOMIC_RELEASE); }
inline u64 load_acquire_system(const u64 *address) { return load_acquire(address); }
inline void store_release_system(u64 *address, u64 value) { store_release(address, value); }
inline u64 load_system(const u64 *address) { return __atomic_load_n(address, __ATOMIC_RELAXED); }
inline void store_system(u64 *address, u64 value) { __atomic_store_n(address, value, __ATOMIC_RELAXED); }
inline u64 exchange(u64 *address, u64 value) { return __atomic_exchange_n(address, value, __ATOMIC_ACQ_REL); }
inline u64 fetch_add(u64 *address, u64 value) { return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL); }
inline u64 compare_and_swap(u64 *address, u64 expected, u64 value) {
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}
inline u64 fetch_add_alone(u64 *address, u64 value) { return __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }
inline u64 compare_and_swap_alone(u64 *address, u64 expected, u64 value) {
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
inline u8 *block_memory() { return shim::here.memory; }
inline void fence() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
inline u64 load_through_l1(const u64 *address) { return *address; }
inline u64 load_past_l1(const u64 *address) { return *address; }
inline u32 shared_address() { return 0; }
inline u32 load_shared(u32 address) { return *(const u32 *)(shim::here.memory + address); }
inline u64 load_in_cluster(u64 address) { return *(const u64 *)address; }
inline void store_in_cluster(u64 *address, u64 value) { store_system(address, value); }
inline u64 look_at_own(const u64 *address) { return load_system(address); }
inline void arrived(u64 value, u64 *somewhere) { *(volatile u64 *)somewhere = value; }
inline u64 load_acquire_cluster(const u64 *address) { return load_acquire(address); }
inline void store_release_cluster(u64 *address, u64 value) { store_release(address, value); }
inline void add_release_cluster(u64 *address, u64 value) { add_release(address, value); }
// The host has fewer processors than the GPU has SMs: let somebody else run.
inline void look_again() { sched_yield(); }
inline u32 opaque(u32 value) {
    asm volatile("" : "+r"(value));
    return value;
}
inline u32 block_in_cluster() { return shim::here.in_cluster; }
inline u8 *of_block(u8 *own, u32 number) {
    return shim::here.of_cluster->memories[number] + (own - shim::here.memory);
}
inline void cluster_barrier() { shim::here.of_cluster->wait(); }

namespace shim {

typedef void (*Kernel)(const void *);

// Runs a kernel whose only parameter is a pointer; returns when all blocks have ended.
inline void launch(Kernel kernel, const void *parameter, u32 blocks, u32 threads, u32 shared, u32 cluster, u32 sms) {
    struct Aligned {
        alignas(128) u8 bytes[128];
    };
    const u32 lines = shared / 128 + 1;
    std::vector<std::unique_ptr<Aligned[]>> memories;
    std::vector<std::unique_ptr<Group>> of_block, of_cluster;
    for (u32 block = 0; block < blocks; ++block) {
        memories.emplace_back(new Aligned[lines]);
        of_block.emplace_back(new Group(threads));
        if (block % cluster == 0) of_cluster.emplace_back(new Group(threads * cluster));
        of_cluster.back()->memories.push_back(memories.back()[0].bytes);
    }
    std::vector<std::thread> all;
    for (u32 block = 0; block < blocks; ++block) {
        for (u32 thread = 0; thread < threads; ++thread) {
            all.emplace_back([&, block, thread] {
                here.thread.x = thread;
                here.block.x = block;
                here.threads.x = threads;
                here.blocks.x = blocks;
                here.of_block = of_block[block].get();
                here.of_cluster = of_cluster[block / cluster].get();
                here.memory = memories[block][0].bytes;
                here.sm = sm_of_block(block, sms);
                here.in_cluster = block % cluster;
                kernel(parameter);
            });
        }
    }
    for (auto &thread : all) thread.join();
}

}  // namespace shim
