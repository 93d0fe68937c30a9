// Every kernel, compiled for CPU threads, by name. A file that is compiled twice gets a namespace each.
#include "kernels.h"
#include "combine.cuh"

namespace in_global_memory {
#include "schedule_walk.cu"
}
#define WALK_IN_CLUSTER
namespace in_cluster {
#include "schedule_walk.cu"
}
#undef WALK_IN_CLUSTER

#include "clocks.cu"

#define ENTRY(place, name) {#name, (shim::Kernel)place::name}

const std::map<std::string, shim::Kernel> kernels = {
    ENTRY(, clocks),
    ENTRY(in_global_memory, schedule_walk),
    ENTRY(in_cluster, schedule_walk_in_cluster),
};
