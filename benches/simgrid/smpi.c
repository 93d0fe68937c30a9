/* The workloads of docs/performance.md as an MPI program for SimGrid's SMPI; compiled by smpicc and run by
   benches/simulators.py.

     smpi ring|doubling|posted|stepwise BYTES

   Rank 0 prints what s4u.cpp prints, for the process in which SMPI runs all ranks. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void exchange(int to, int from, int bytes, char* out, char* in)
{
  MPI_Sendrecv(out, bytes, MPI_CHAR, to, 0, in, bytes, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Everything at once; all messages use the same two blocks, so that memory is the simulator's. */
static void posted(int rank, int ranks, int bytes, char* out, char* in)
{
  MPI_Request* requests = malloc(2 * ranks * sizeof *requests);
  int count = 0;
  for (int ahead = 1; ahead < ranks; ahead++)
    MPI_Irecv(in, bytes, MPI_CHAR, (rank + ranks - ahead) % ranks, 0, MPI_COMM_WORLD, &requests[count++]);
  for (int ahead = 1; ahead < ranks; ahead++)
    MPI_Isend(out, bytes, MPI_CHAR, (rank + ahead) % ranks, 0, MPI_COMM_WORLD, &requests[count++]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  free(requests);
}

static long peak_bytes(void)
{
  char line[256];
  long kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (strncmp(line, "VmHWM:", 6) == 0)
      kib = atol(line + 6);
  if (status)
    fclose(status);
  return kib * 1024;
}

int main(int argc, char** argv)
{
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int bytes = atoi(argv[2]);
  char *out = malloc(bytes), *in = malloc(bytes);
  long messages = 0;
  if (strcmp(argv[1], "ring") == 0) {
    for (int step = 0; step < 2 * (ranks - 1); step++)
      exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks, bytes, out, in);
    messages = 2L * (ranks - 1) * ranks;
  } else if (strcmp(argv[1], "doubling") == 0) {
    for (int distance = 1; distance < ranks; distance *= 2, messages += ranks)
      exchange(rank ^ distance, rank ^ distance, bytes, out, in);
  } else if (strcmp(argv[1], "posted") == 0) {
    posted(rank, ranks, bytes, out, in);
    messages = (long)ranks * (ranks - 1);
  } else {
    for (int step = 1; step < ranks; step++)
      exchange(rank ^ step, rank ^ step, bytes, out, in);
    messages = (long)ranks * (ranks - 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    printf("%ld %.6f %ld %.9f\n", messages, seconds, peak_bytes(), MPI_Wtime());
  }
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
