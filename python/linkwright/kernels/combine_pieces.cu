// One piece of a message combined into another on the GPU that holds both: to[i] = to[i] op from[i].
//
// Copy engines move bytes between GPUs but cannot add. So a message to be combined is copied into a buffer on the GPU of
// its destination, and this kernel combines it; its blocks share the piece in whole packs of 16 bytes.
//
// CPU reference: `combination` of tests/python/gpu/walk.py.
#include "combine.cuh"

struct Pieces {
    u8 *to;
    const u8 *from;
    u64 bytes;
    u64 dtype;
    u64 op;
};

KERNEL(256) combine_pieces(const Pieces *job) {
    const u64 packs = (job->bytes + 15) / 16, share = (packs + gridDim.x - 1) / gridDim.x * 16;
    const u64 begin = share * blockIdx.x;
    if (begin >= job->bytes) return;
    const u64 bytes = begin + share < job->bytes ? share : job->bytes - begin;
    combine(whole_block(), (u32)job->dtype, (u32)job->op, job->to + begin, job->from + begin, bytes);
}
