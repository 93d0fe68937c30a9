/* Ping-pong of two ranks with MPI_Send and MPI_Recv, as OSU's latency test does it: half a round trip.
 *
 *   mpicc -O3 -o mpi_ping_pong benches/mpi_ping_pong.c
 *   mpirun -np 2 --bind-to core ./mpi_ping_pong 8 1024 65536
 *
 * Prints `size_bytes,mpi,median_ns,min_ns` per line, over samples of several trips. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 101 };
static const double SAMPLE_SECONDS = 20e-6; /* a sample lasts at least this long */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of half a round trip, over `trips`. */
static double sample(char *buffer, int bytes, int trips, int rank) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < trips; i++) {
        if (rank == 0) MPI_Send(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / trips / 2;
}

static void measure(size_t bytes, int rank) {
    char *buffer = NULL;
    if (posix_memalign((void **)&buffer, 4096, bytes + 1)) MPI_Abort(MPI_COMM_WORLD, 1); /* as OSU: a page */
    memset(buffer, 1, bytes + 1);
    for (int i = 0; i < 20; i++) sample(buffer, (int)bytes, 5, rank); /* warm-up */
    double once = sample(buffer, (int)bytes, 20, rank);
    int trips = 1 + (int)(SAMPLE_SECONDS / once);
    MPI_Bcast(&trips, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double times[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) times[i] = sample(buffer, (int)bytes, trips, rank);
    if (rank == 0) {
        qsort(times, SAMPLES, sizeof *times, by_value);
        printf("%zu,mpi,%.1f,%.1f\n", bytes, times[SAMPLES / 2] * 1e9, times[0] * 1e9);
        fflush(stdout);
    }
    free(buffer);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 1; i < argc; i++) measure(strtoull(argv[i], NULL, 10), rank);
    MPI_Finalize();
    return 0;
}
