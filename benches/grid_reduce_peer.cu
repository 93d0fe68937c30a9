// Allreduce of vectors that lie in the memory of one GPU, as one writes it with cooperative groups: the peer of
// `linkwright run allreduce --on cuda`. One block per SM; each repetition is
//
//     barrier of the grid    all vectors are ready
//     reduce                 each block adds its slice of all vectors, in f32
//     barrier of the grid    the sum is ready
//     copy                   each block copies the sum over its own vector
//
//     nvcc -O3 -std=c++17 -gencode=arch=compute_90,code=sm_90 -o peer grid_reduce_peer.cu && ./peer 4096
//
// Prints the median over 21 kernels of the time of one repetition as a JSON line: `value` from the difference between
// 201 repetitions and one, `whole_kernel` from 201 alone. The check adds known numbers; what is timed adds zeros, which
// stay zeros.
#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace groups = cooperative_groups;

#define CHECK(call)                                                                              \
    do {                                                                                         \
        cudaError_t status = (call);                                                             \
        if (status != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(status));          \
            std::exit(1);                                                                        \
        }                                                                                        \
    } while (0)

__global__ void __launch_bounds__(256, 1)
    reduce(__nv_bfloat162 *vectors, __nv_bfloat162 *sum, int pairs, int repetitions) {
    groups::grid_group grid = groups::this_grid();
    const int blocks = gridDim.x, own = blockIdx.x;
    __nv_bfloat162 *mine = vectors + (long)own * pairs;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
        grid.sync();
        // A warp takes a pair of elements; its lanes take vectors.
        const int first = (int)((long)pairs * own / blocks), end = (int)((long)pairs * (own + 1) / blocks);
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        for (int at = first + warp; at < end; at += blockDim.x / 32) {
            float2 total = {0, 0};
            for (int vector = lane; vector < blocks; vector += 32) {
                const float2 value = __bfloat1622float2(vectors[(long)vector * pairs + at]);
                total.x += value.x;
                total.y += value.y;
            }
            for (int step = 16; step > 0; step /= 2) {
                total.x += __shfl_xor_sync(~0u, total.x, step);
                total.y += __shfl_xor_sync(~0u, total.y, step);
            }
            if (lane == 0) sum[at] = __float22bfloat162_rn(total);
        }
        grid.sync();
        for (int at = threadIdx.x; at < pairs; at += blockDim.x) mine[at] = __ldcg(&sum[at]);
    }
}

static float launch(__nv_bfloat162 *vectors, __nv_bfloat162 *sum, int pairs, int blocks, int repetitions,
                    cudaEvent_t begin, cudaEvent_t end) {
    void *arguments[] = {&vectors, &sum, &pairs, &repetitions};
    float milliseconds = 0;
    CHECK(cudaEventRecord(begin));
    CHECK(cudaLaunchCooperativeKernel((void *)reduce, blocks, 256, arguments, 0, 0));
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds;
}

int main(int count, char **words) {
    const int bytes = count > 1 ? std::atoi(words[1]) : 4096, pairs = bytes / 4, repetitions = 200;
    int blocks = 0;
    CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
    __nv_bfloat162 *vectors, *sum;
    CHECK(cudaMalloc(&vectors, (size_t)blocks * bytes));
    CHECK(cudaMalloc(&sum, bytes));
    std::vector<__nv_bfloat162> host((size_t)blocks * pairs), found(host.size());
    for (size_t i = 0; i < host.size(); ++i) host[i] = __float2bfloat162_rn((float)(i % pairs % 2));
    CHECK(cudaMemcpy(vectors, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    launch(vectors, sum, pairs, blocks, 1, begin, end);
    CHECK(cudaMemcpy(found.data(), vectors, found.size() * 4, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < found.size(); ++i)
        if (const float sum = (float)(i % pairs % 2 * blocks), wanted = __bfloat162float(__float2bfloat16(sum));
            __low2float(found[i]) != wanted || __high2float(found[i]) != wanted) {
            std::fprintf(stderr, "element %zu is wrong\n", i);
            return 1;
        }
    CHECK(cudaMemset(vectors, 0, (size_t)blocks * bytes));
    std::vector<float> long_ones, differences;
    for (int i = 0; i < 21; ++i) {
        const float one = launch(vectors, sum, pairs, blocks, 1, begin, end);
        const float many = launch(vectors, sum, pairs, blocks, repetitions + 1, begin, end);
        long_ones.push_back(many * 1e3f / (repetitions + 1));
        differences.push_back((many - one) * 1e3f / repetitions);
    }
    std::sort(long_ones.begin(), long_ones.end());
    std::sort(differences.begin(), differences.end());
    std::printf("{\"name\": \"allreduce by cooperative groups, %d blocks, %d B bf16\", \"value\": %.3f, \"unit\": \"us\", "
                "\"whole_kernel\": %.3f}\n", blocks, bytes, differences[10], long_ones[10]);
}
