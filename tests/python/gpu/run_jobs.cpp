// Runs launches from a file on CPU threads and writes what they leave in their arrays.
//
//   in:  jobs; each: kernel (32 bytes), blocks, threads, shared bytes, cluster, SMs, words, arrays (u64 each),
//        words (0, number) or (1, array), then lengths of arrays in bytes, then the arrays
//   out: the arrays of all jobs, one after the other
#include <cstdio>
#include <cstdlib>
#include "kernels.h"

static FILE *in;

static u64 number() {
    u64 value;
    if (fread(&value, sizeof value, 1, in) != 1) exit(3);
    return value;
}

int main(int, char **argv) {
    in = fopen(argv[1], "rb");
    FILE *out = fopen(argv[2], "wb");
    for (u64 jobs = number(); jobs > 0; --jobs) {
        char name[32];
        if (fread(name, sizeof name, 1, in) != 1) exit(3);
        const u64 blocks = number(), threads = number(), shared = number(), cluster = number(), sms = number();
        std::vector<u64> words(number()), lengths(number());
        std::vector<std::pair<u64, u64>> given;
        for (size_t i = 0; i < words.size(); ++i) {
            const u64 kind = number();
            given.emplace_back(kind, number());
        }
        for (u64 &length : lengths) length = number();
        std::vector<u8 *> arrays;
        for (u64 length : lengths) {
            u8 *array = (u8 *)aligned_alloc(256, (length + 256) / 256 * 256);
            if (length && fread(array, length, 1, in) != 1) exit(3);
            arrays.push_back(array);
        }
        for (size_t i = 0; i < words.size(); ++i) {
            words[i] = given[i].first ? (u64)arrays[given[i].second] : given[i].second;
        }
        const auto kernel = kernels.find(name);
        if (kernel == kernels.end()) exit(4);
        shim::launch(kernel->second, words.data(), blocks, threads, shared, cluster, sms);
        for (size_t i = 0; i < arrays.size(); ++i) {
            if (lengths[i]) fwrite(arrays[i], lengths[i], 1, out);
            free(arrays[i]);
        }
    }
    fclose(out);
}
