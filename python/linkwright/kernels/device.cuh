// What kernels ask of the hardware, each as one function: clocks, the number of the SM, loads and stores
// that order others, memory that is shared by a block or by a cluster of blocks.
//
// Nothing is included: NVRTC needs no CUDA headers for what is written as PTX. Without a CUDA compiler the
// same names come from cuda_shim.h of the tests, which runs a block as CPU threads; so what the tests run
// is the source of the kernels themselves.
//
// Order between blocks (PTX memory consistency model): who loads with `acquire` what another thread
// stored with `release` sees all that this thread wrote before, and by a barrier of its block all that its
// block wrote before. The scope is the GPU, so a value may travel through L2 but never through an L1.
#pragma once

#if defined(__CUDACC__)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

// A kernel, and the most threads that a block of it has: so many must fit into the registers of an SM. One block of an
// SM is enough; without the 1 the compiler makes room for more, and keeps in memory what could be in registers.
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)

// Cycles of this SM.
__device__ inline u64 cycles() {
    u64 now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) : : "memory");
    return now;
}

// Nanoseconds of the whole GPU; in steps that calibration measures.
__device__ inline u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}

// The SM that this block runs on.
__device__ inline u32 sm_number() {
    u32 number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

__device__ inline u64 load_acquire(const u64 *address) {
    u64 value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

__device__ inline void store_release(u64 *address, u64 value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

__device__ inline void add_release(u64 *address, u64 value) {
    asm volatile("red.release.gpu.add.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

// The same towards the host, which shares mapped memory and nothing else.
__device__ inline u64 load_acquire_system(const u64 *address) {
    u64 value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

__device__ inline void store_release_system(u64 *address, u64 value) {
    asm volatile("st.release.sys.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

// The same without order: nothing but the word itself is handed on.
__device__ inline u64 load_system(const u64 *address) {
    u64 value;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

__device__ inline void store_system(u64 *address, u64 value) {
    asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

__device__ inline u64 exchange(u64 *address, u64 value) {
    u64 old;
    asm volatile("atom.acq_rel.gpu.exch.b64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old;
}

__device__ inline u64 fetch_add(u64 *address, u64 value) {
    u64 old;
    asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old;
}

// Sets `address` to `value` where it holds `expected`; gives what it held.
__device__ inline u64 compare_and_swap(u64 *address, u64 expected, u64 value) {
    u64 old;
    asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old) : "l"(address), "l"(expected), "l"(value) : "memory");
    return old;
}

// Dynamic memory of this block.
__device__ inline u8 *block_memory() {
    extern __shared__ __align__(16) u8 memory_of_block[];
    return memory_of_block;
}

// What a spinning thread does between two looks: nothing, since an SM has nobody else to run.
__device__ inline void look_again() {}

// `fetch_add` and `compare_and_swap` without order: nothing but the word itself is handed on.
__device__ inline u64 fetch_add_alone(u64 *address, u64 value) {
    u64 old;
    asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(address), "l"(value) : "memory");
    return old;
}

__device__ inline u64 compare_and_swap_alone(u64 *address, u64 expected, u64 value) {
    u64 old;
    asm volatile("atom.relaxed.gpu.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old) : "l"(address), "l"(expected), "l"(value) : "memory");
    return old;
}

// All that this thread wrote is visible to the GPU before what it writes next.
__device__ inline void fence() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

// Loads that a chain of pointers is followed by: through the L1, past it, and from the memory of this block.
__device__ inline u64 load_through_l1(const u64 *address) {
    u64 value;
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

__device__ inline u64 load_past_l1(const u64 *address) {
    u64 value;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

// Shared memory has addresses of 32 bits; that of the dynamic memory of this block.
__device__ inline u32 shared_address() { return (u32)__cvta_generic_to_shared(block_memory()); }

__device__ inline u32 load_shared(u32 address) {
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

// Returns when `value` is there: whoever reads a clock next reads it after the load that gave it.
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
__device__ inline u32 block_in_cluster() {
    u32 number;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(number));
    return number;
}

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

// A word is handed on, and nothing else is ordered; who waits for it looks at memory of its own block.
__device__ inline void store_in_cluster(u64 *address, u64 value) {
    asm volatile("st.relaxed.cluster.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

__device__ inline u64 look_at_own(const u64 *address) {
    u64 value;
    u32 own = (u32)__cvta_generic_to_shared(address);
    asm volatile("ld.relaxed.cluster.shared::cta.u64 %0, [%1];" : "=l"(value) : "r"(own) : "memory");
    return value;
}

// Order between the blocks of a cluster only.
__device__ inline u64 load_acquire_cluster(const u64 *address) {
    u64 value;
    asm volatile("ld.acquire.cluster.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

__device__ inline void store_release_cluster(u64 *address, u64 value) {
    asm volatile("st.release.cluster.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

__device__ inline void add_release_cluster(u64 *address, u64 value) {
    asm volatile("red.release.cluster.add.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

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

const u32 LINE = 16;  // words of 128 bytes: a flag has so many of its own
