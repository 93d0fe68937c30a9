// A server on the GPU for round trips by words that carry their own validity.
//
// Each word of 8 bytes holds 4 bytes of data and, above them, the number of the request that it belongs to:
//
//     host    stores word by word into the GPU's memory   ---link-->   each thread waits until its words have the number
//     host    waits until all words have the number       <--link---   each thread stores its words, numbered, there
//
// A word is stored whole, so its data are valid once its number is visible: words need no order, no fence and no flag
// that crosses the link after them. The price is half of the bandwidth. One block serves until the words have the
// number LEAVE, or until no request comes for `patience_ns`. The reply is the content of the GPU's memory, beginning
// with the request.
//
// CPU reference: the reply is the request, and behind it what the host put there (linkwright.executors.cuda.probes).
// Source: protocol LL of NCCL, as its source describes it (flags beside data).
#include "device.cuh"

const u32 LEAVE = ~0u;

struct WordEcho {
    const u64 *request;  // in the GPU's memory, where the host can store
    u64 *reply;          // in the host's memory
    u32 *own;            // data, in the GPU's memory
    u64 in_words, out_words;
    u64 patience_ns;
    u64 *served;  // requests
};

// Whether the data of this thread's words came; false where the host wants no more, or is silent.
__device__ inline bool take_words(const WordEcho &job, u32 number) {
    const u64 begun = nanoseconds();
    for (u64 i = threadIdx.x; i < job.in_words; i += blockDim.x) {
        for (;;) {
            const u64 word = load_system(job.request + i);
            const u32 of = (u32)(word >> 32);
            if (of == number) {
                job.own[i] = (u32)word;
                break;
            }
            if (of == LEAVE || nanoseconds() - begun > job.patience_ns) return false;
            look_again();
        }
    }
    return true;
}

KERNEL(256) word_echo(const WordEcho *given) {
    const WordEcho job = *given;
    for (u64 number = 1;; ++number) {
        if (__syncthreads_or(!take_words(job, (u32)number))) break;
        for (u64 i = threadIdx.x; i < job.out_words; i += blockDim.x) {
            store_system(job.reply + i, number << 32 | job.own[i]);
        }
        __syncthreads();
        if (threadIdx.x == 0) *job.served = number;
    }
}
