/* Which algorithm did Open MPI take? Loaded before the library, this counts the calls of two of its
 * allreduce algorithms and hands them on; rank 0 finds the counts in the file named by TAKEN. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*algorithm)(const void *, void *, int, void *, void *, void *, void *);

static void note(const char *name, int count)
{
    FILE *file = fopen(getenv("TAKEN"), "a");
    fprintf(file, "%s %d\n", name, count);
    fclose(file);
}

#define WATCH(name)                                                                              \
    int ompi_coll_base_allreduce_intra_##name(const void *sent, void *received, int count,       \
                                              void *type, void *op, void *comm, void *module)    \
    {                                                                                            \
        note(#name, count);                                                                      \
        algorithm next = (algorithm)dlsym(RTLD_NEXT, "ompi_coll_base_allreduce_intra_" #name);   \
        return next(sent, received, count, type, op, comm, module);                              \
    }

WATCH(recursivedoubling)
WATCH(ring)
WATCH(redscat_allgather)
WATCH(nonoverlapping)
