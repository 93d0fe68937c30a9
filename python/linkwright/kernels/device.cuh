// The hardware as kernels use it, one function each: clocks, the number of the SM, loads and stores
// that order others, memory shared by a block or by a cluster of blocks.
//
// There are no includes: NVRTC needs no CUDA headers for operations written as PTX. Without a CUDA compiler
// the same names come from cuda_shim.h of the tests, which runs each thread of a block as a CPU thread, so
// the tests run the source of the kernels themselves.
//
// Order between blocks (PTX memory consistency model): a thread that loads with `acquire` what another
// stored with `release` sees everything that this other thread wrote before and, through a barrier of its
// block, everything that its block wrote before. The scope is the GPU, so a value may travel through L2 but
// never through an L1.
#pragma once

#if defined(__CUDACC__)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

// A kernel, and the most threads of a block, all of whose registers must fit into an SM. One block per SM is enough;
// without the 1 the compiler reserves registers for more blocks, and spills to memory.
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)

// Functions that are one PTX instruction each, by what they take and give.
#define REGISTER(name, word, constraint, source, ...)                                    \
    __device__ inline word name() {                                                      \
        word value;                                                                      \
        asm volatile(source : constraint(value) : : __VA_ARGS__);                        \
        return value;                                                                    \
    }
#define LOAD(name, instruction)                                                          \
    __device__ inline u64 name(const u64 *address) {                                     \
        u64 value;                                                                       \
        asm volatile(instruction " %0, [%1];" : "=l"(value) : "l"(address) : "memory");  \
        return value;                                                                    \
    }
#define STORE(name, instruction)                                                         \
    __device__ inline void name(u64 *address, u64 value) {                               \
        asm volatile(instruction " [%0], %1;" : : "l"(address), "l"(value) : "memory");  \
    }
#define UPDATE(name, instruction)                                                        \
    __device__ inline u64 name(u64 *address, u64 value) {                                \
        u64 old;                                                                         \
        asm volatile(instruction " %0, [%1], %2;"                                        \
                     : "=l"(old) : "l"(address), "l"(value) : "memory");                 \
        return old;                                                                      \
    }
// Sets `address` to `value` where it holds `expected`; returns what it held.
#define COMPARE_AND_SWAP(name, instruction)                                              \
    __device__ inline u64 name(u64 *address, u64 expected, u64 value) {                  \
        u64 old;                                                                         \
        asm volatile(instruction " %0, [%1], %2, %3;"                                    \
                     : "=l"(old) : "l"(address), "l"(expected), "l"(value) : "memory");  \
        return old;                                                                      \
    }

// Cycles of this SM.
REGISTER(cycles, u64, "=l", "mov.u64 %0, %%clock64;", "memory")
// Nanoseconds of the whole GPU; in steps that calibration measures.
REGISTER(nanoseconds, u64, "=l", "mov.u64 %0, %%globaltimer;", "memory")
// The SM that this block runs on.
REGISTER(sm_number, u32, "=r", "mov.u32 %0, %%smid;")

LOAD(load_acquire, "ld.acquire.gpu.u64")
STORE(store_release, "st.release.gpu.u64")
STORE(add_release, "red.release.gpu.add.u64")
UPDATE(exchange, "atom.acq_rel.gpu.exch.b64")
UPDATE(fetch_add, "atom.acq_rel.gpu.add.u64")
COMPARE_AND_SWAP(compare_and_swap, "atom.acq_rel.gpu.cas.b64")

// The same towards the host, which shares only mapped memory.
LOAD(load_acquire_system, "ld.acquire.sys.u64")
STORE(store_release_system, "st.release.sys.u64")

// The same without order: only the word itself is handed on.
LOAD(load_system, "ld.relaxed.sys.u64")
STORE(store_system, "st.relaxed.sys.u64")
UPDATE(fetch_add_alone, "atom.relaxed.gpu.add.u64")
COMPARE_AND_SWAP(compare_and_swap_alone, "atom.relaxed.gpu.cas.b64")

// Loads for following a chain of pointers: through the L1, and past it.
LOAD(load_through_l1, "ld.global.ca.u64")
LOAD(load_past_l1, "ld.global.cg.u64")

// Dynamic memory of this block.
__device__ inline u8 *block_memory() {
    extern __shared__ __align__(16) u8 memory_of_block[];
    return memory_of_block;
}

// What a busy-waiting thread does between two looks: nothing, since the SM has no other work.
__device__ inline void look_again() {}

// Everything that this thread wrote is visible to the GPU before what it writes next.
__device__ inline void fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

// The address of the dynamic memory of this block; shared memory has addresses of 32 bits.
__device__ inline u32 shared_address() { return (u32)__cvta_generic_to_shared(block_memory()); }

__device__ inline u32 load_shared(u32 address) {
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

// Returns when `value` has arrived: a clock read next is read after the load that gave it.
__device__ inline void arrived(u64 value, u64 *somewhere) {
    asm volatile("st.volatile.u64 [%0], %1;" : : "l"(somewhere), "l"(value) : "memory");
}

// A value that the compiler can neither predict nor drop.
__device__ inline u32 opaque(u32 value) {
    asm volatile("" : "+r"(value));
    return value;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Number of this block in its cluster.
REGISTER(block_in_cluster, u32, "=r", "mov.u32 %0, %%cluster_ctarank;")

// The address, seen from here, of what lies at `own` of this block in block `number` of the cluster.
__device__ inline u8 *of_block(u8 *own, u32 number) {
    u8 *address;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(own), "r"(number));
    return address;
}

// A load from any block of the cluster, at an address that `of_block` gave.
__device__ inline u64 load_in_cluster(u64 address) {
    u64 value;
    asm volatile("ld.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

// Hands on a word and orders nothing else; its reader waits at memory of its own block.
STORE(store_in_cluster, "st.relaxed.cluster.u64")

__device__ inline u64 look_at_own(const u64 *address) {
    u64 value;
    u32 own = (u32)__cvta_generic_to_shared(address);
    asm volatile("ld.relaxed.cluster.shared::cta.u64 %0, [%1];" : "=l"(value) : "r"(own) : "memory");
    return value;
}

// Order between the blocks of a cluster only.
LOAD(load_acquire_cluster, "ld.acquire.cluster.u64")
STORE(store_release_cluster, "st.release.cluster.u64")
STORE(add_release_cluster, "red.release.cluster.add.u64")

// Returns when all threads of all blocks of the cluster are here.
__device__ inline void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire;" : : : "memory");
}

#endif

#else

#include "cuda_shim.h"

#endif

// How far the order of a flag reaches: the whole GPU, or the blocks of a cluster.
struct Gpu {
    static __device__ u64 look(const u64 *flag) { return load_acquire(flag); }
    static __device__ void raise(u64 *flag, u64 count) { store_release(flag, count); }
    static __device__ void arrive(u64 *flag) { add_release(flag, 1); }
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

struct Cluster {
    static __device__ u64 look(const u64 *flag) { return load_acquire_cluster(flag); }
    static __device__ void raise(u64 *flag, u64 count) { store_release_cluster(flag, count); }
    static __device__ void arrive(u64 *flag) { add_release_cluster(flag, 1); }
};

#endif

const u32 LINE = 16;  // words of 128 bytes: each flag has a line of its own
