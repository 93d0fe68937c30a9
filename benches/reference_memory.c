/* Obviously correct loops beside which the memory probes are measured.
 *
 *   reference_memory chase BYTES        ns per load of a random cycle over all lines
 *   reference_memory triad BYTES        GB/s of a = b + s c over three arrays of BYTES, best of many passes
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double chase(size_t bytes)
{
    size_t lines = bytes / LINE, *order = malloc(lines * sizeof *order);
    char *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memset(memory, 0, bytes);
    for (size_t i = 0; i < lines; i++)
        order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) { /* Sattolo: one cycle */
        size_t j = (size_t)(drand48() * i), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    for (size_t i = 0; i < lines; i++)
        *(void **)(memory + LINE * order[i]) = memory + LINE * order[(i + 1) % lines];
    double best = 1e9;
    void *at = memory;
    for (size_t i = 0; i < lines; i++) /* warm */
        at = *(void **)at;
    for (int sample = 0; sample < 15; sample++) {
        size_t loads = 1 << 20;
        double start = now();
        for (size_t i = 0; i < loads; i++)
            at = *(void **)at;
        double ns = (now() - start) * 1e9 / loads;
        best = ns < best ? ns : best;
    }
    if (at == NULL)
        abort(); /* keeps the loads */
    return best;
}

static double triad(size_t bytes)
{
    size_t n = bytes / sizeof(double);
    double *a = aligned_alloc(4096, bytes), *b = aligned_alloc(4096, bytes), *c = aligned_alloc(4096, bytes);
    for (size_t i = 0; i < n; i++)
        a[i] = 0, b[i] = 1, c[i] = 2;
    double best = 1e9;
    size_t passes = (64 << 20) / bytes + 1;
    for (int sample = 0; sample < 15; sample++) {
        double start = now();
        for (size_t pass = 0; pass < passes; pass++) {
            for (size_t i = 0; i < n; i++)
                a[i] = b[i] + 3.0 * c[i];
            __asm__ volatile("" ::"r"(a) : "memory");
        }
        double seconds = (now() - start) / passes;
        best = seconds < best ? seconds : best;
    }
    return 3.0 * bytes / best / 1e9;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    size_t bytes = strtoull(words[2], NULL, 10);
    printf("%.6g\n", words[1][0] == 'c' ? chase(bytes) : triad(bytes));
    return 0;
}
