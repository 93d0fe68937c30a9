"""What an MPI library chooses: the fastest of the algorithms that Open MPI and MPICH have for a collective.

Their decision functions differ with version, build and tuning file, so a log does not say which one ran. The fastest of
all that they choose from at a size is what a well tuned library reaches. The choice is made on the healthy machine, as
a library knows nothing of a fault, and then simulated on the machine at hand.

Source: Open MPI 5.0, ompi/mca/coll/tuned (coll_tuned_*_decision.c); MPICH 4.2, src/mpi/coll.
"""

from __future__ import annotations

import functools

from linkwright import _native
from linkwright.ask.answer import ask
from linkwright.base.errors import ShapeError, WaivedError

# Collective -> algorithms of the registry that one of the libraries has.
ALGORITHMS = {
    "allreduce": ("recursive_doubling_latency", "recursive_doubling_bandwidth", "ring", "reduce_broadcast"),
    "allgather": ("bruck", "recursive_doubling", "ring", "neighbor_exchange", "linear"),
    "reduce_scatter": ("recursive_halving", "pairwise", "ring"),
    "alltoall": ("linear", "pairwise", "bruck"),
    "broadcast": ("binomial", "scatter_allgather", "binary_tree", "linear"),
    "reduce": ("binomial", "reduce_scatter_gather", "binary_tree", "linear"),
    "gather": ("linear", "binomial"),
    "scatter": ("linear", "binomial"),
}
# Algorithm -> the longest block of a rank, in bytes, for which a decision function takes it.
LONGEST = {
    ("alltoall", "bruck"): 256,  # MPICH, MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE; Open MPI up to 200
}
PATH = "mpi"  # of machines whose ranks are those of an MPI library
_KEPT = 4096  # choices


def serves(machine: _native.Machine, collective: str) -> bool:
    """Whether an MPI library runs a collective on a machine, and no other library does."""
    return collective in ALGORITHMS and PATH in machine.paths and machine.library() is None


def schedule(collective: str, algorithm: str, ranks: int, size_bytes: int, element_bytes: int) -> _native.Schedule:
    """The schedule of one of the algorithms."""
    key = f"{collective}/{algorithm}"
    return _native.Schedule.build(key, ranks, size_bytes // element_bytes, element_bytes=element_bytes)


@functools.lru_cache(_KEPT)
def chosen(healthy: _native.Machine, collective: str, ranks: int, size_bytes: int, element_bytes: int) -> str:
    """The fastest algorithm on a healthy machine.

    Raises:
        WaivedError: none of them serves so many ranks and bytes.
    """
    times: dict[str, float] = {}
    for name in ALGORITHMS[collective]:
        if size_bytes / ranks > LONGEST.get((collective, name), size_bytes):
            continue
        try:
            made = schedule(collective, name, ranks, size_bytes, element_bytes)
            times[name] = ask(healthy, made).time.us
        except (ShapeError, WaivedError):
            continue  # not for so many ranks or bytes
    if not times:
        raise WaivedError(f"{collective}: no algorithm of MPI libraries serves {ranks} ranks and {size_bytes} B")
    return min(times, key=lambda name: times[name])
