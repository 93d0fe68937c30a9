/* MPI_Allreduce of floats (sum), timed as the threads executor is: samples of back-to-back calls,
 * the slowest rank's time per call, a barrier before each sample. In place and out of place.
 *
 *   mpicc -O3 -o mpi_allreduce benches/mpi_allreduce.c
 *   mpirun -np 2 --bind-to core ./mpi_allreduce 8 1024 65536
 *
 * Prints `size_bytes,variant,median_ns,min_ns` per line. Results are checked outside the timed region. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 101 };
static const double SAMPLE_SECONDS = 20e-6; /* a sample lasts at least this long */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds per call of the slowest rank over `calls` calls. */
static double sample(const void *send, float *receive, int count, int calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        MPI_Allreduce(send, receive, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double own = (MPI_Wtime() - start) / calls, slowest;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void measure(size_t bytes, int in_place, int rank, int ranks) {
    int count = (int)(bytes / sizeof(float));
    float *input = malloc(bytes), *output = malloc(bytes);
    for (int i = 0; i < count; i++) input[i] = output[i] = (float)(rank + i % 7);
    const void *send = in_place ? MPI_IN_PLACE : input;

    MPI_Allreduce(send, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        float want = (float)(ranks * (ranks - 1) / 2 + ranks * (i % 7));
        if (output[i] != want) {
            fprintf(stderr, "rank %d: element %d is %g, not %g\n", rank, i, output[i], want);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }

    double once = sample(send, output, count, 3);
    int calls = 1 + (int)(SAMPLE_SECONDS / once);
    for (int i = 0; i < 20; i++) sample(send, output, count, calls); /* warm-up */
    double times[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) times[i] = sample(send, output, count, calls);
    if (rank == 0) {
        qsort(times, SAMPLES, sizeof *times, by_value);
        printf("%zu,%s,%.1f,%.1f\n", bytes, in_place ? "in_place" : "out_of_place",
               times[SAMPLES / 2] * 1e9, times[0] * 1e9);
        fflush(stdout);
    }
    free(input);
    free(output);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < argc; i++)
        for (int in_place = 0; in_place < 2; in_place++)
            measure(strtoull(argv[i], NULL, 10), in_place, rank, ranks);
    MPI_Finalize();
    return 0;
}
