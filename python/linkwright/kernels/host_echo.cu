// A server on the GPU for round trips with the host: waits for a request in the host's memory, answers there.
//
//     host    writes the request, then its number       ---PCIe--->   thread 0 sees the number (acquire, system)
//                                                                     all threads copy the request to the GPU's memory
//     host    sees the number, reads the reply          <--PCIe----   all threads copy the reply; number (release, system)
//
// The host's memory is pinned and mapped, so the GPU reads and writes it by loads and stores, without the driver. One
// block; it serves until the number is LEAVE, or until no request comes for `patience_ns`. The reply is the content
// of the GPU's memory, beginning with the request.
//
// CPU reference: the reply is the request, and behind it what the host put there (linkwright.executors.cuda.probes).
#include "combine.cuh"

const u64 LEAVE = ~0ull;

struct Echo {
    const u64 *asked;  // in the host's memory: number of the request
    u64 *answered;     // in the host's memory: number of the reply
    const u8 *request;
    u8 *reply;
    u8 *own;  // in the GPU's memory
    u64 in_bytes, out_bytes;
    u64 patience_ns;
    u64 *served;  // requests
};

// Thread 0: the number of the next request, or LEAVE.
__device__ inline u64 next_request(const Echo &job, u64 number) {
    const u64 begun = nanoseconds();
    for (;;) {
        const u64 asked = load_acquire_system(job.asked);
        if (asked == number || asked == LEAVE) return asked;
        if (nanoseconds() - begun > job.patience_ns) return LEAVE;
        look_again();
    }
}

KERNEL(256) host_echo(const Echo *given) {
    const Echo job = *given;
    u64 *told = (u64 *)block_memory();
    for (u64 number = 1;; ++number) {
        if (threadIdx.x == 0) *told = next_request(job, number);
        __syncthreads();
        if (*told == LEAVE) break;
        copy(whole_block(), job.own, job.request, job.in_bytes);
        __syncthreads();
        copy(whole_block(), job.reply, job.own, job.out_bytes);
        __syncthreads();
        if (threadIdx.x == 0) {
            *job.served = number;
            store_release_system(job.answered, number);
        }
    }
}
