// Every kernel, compiled for CPU threads, by name. A file that is compiled twice gets a namespace each.
#include "kernels.h"
#include "fold.cuh"
#include "ranks.cuh"

namespace in_global_memory {
#include "schedule_walk.cu"
}
#define WALK_IN_CLUSTER
namespace in_cluster {
#include "schedule_walk.cu"
}
#undef WALK_IN_CLUSTER

#include "atomic_add.cu"
#include "block_barrier.cu"
#include "clocks.cu"
#include "combine_pieces.cu"
#include "flag_handover.cu"
#include "grid_reduce.cu"
#include "host_echo.cu"

namespace lines {
#include "l2_lines.cu"
}

#include "memory_stream.cu"
#include "pair_stream.cu"
#include "pointer_chase.cu"

namespace words {
#include "word_echo.cu"
}

#define ENTRY(place, name) {#name, (shim::Kernel)place::name}

const std::map<std::string, shim::Kernel> kernels = {
    ENTRY(, atomic_add),
    ENTRY(, block_barrier),
    ENTRY(, block_barrier_in_cluster),
    ENTRY(, clocks),
    ENTRY(, combine_pieces),
    ENTRY(, flag_handover),
    ENTRY(, flag_handover_in_cluster),
    ENTRY(, grid_reduce),
    ENTRY(, host_echo),
    ENTRY(lines, l2_lines),
    ENTRY(, memory_stream),
    ENTRY(, pair_stream),
    ENTRY(, pair_stream_in_cluster),
    ENTRY(, pointer_chase),
    ENTRY(, pointer_chase_in_cluster),
    ENTRY(in_global_memory, schedule_walk),
    ENTRY(in_cluster, schedule_walk_in_cluster),
    ENTRY(words, word_echo),
};
