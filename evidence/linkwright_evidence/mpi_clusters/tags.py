"""From the file tags of the measurements to algorithms: one line for each.

A tag names an algorithm, where its code is and how it treats its data:

    ring_ompi_int32                             Open MPI's own           (`_mpich`: Cray MPICH's)
    bine_send_remap_over_int32                  the authors' library, over MPI messages
    BINE-VEC_DOUBLING_CONT_PERMUTE-UTOFU-0-3    the same on Fugaku: puts, segments of 0 (whole) bytes, 3 ports
    default-recursive-doubling_int32            FJMPI's own

The words after the algorithm say how blocks that do not lie side by side are sent: `block_by_block` and `BLOCKS` in a
message each, `permute` after a copy into another order, `send` by one more exchange, `remap` and `static` as they lie
under another numbering of the ranks. `default` stands for what the library chooses by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from . import open_mpi

COLLECTIVES = {
    "ALLGATHER": "allgather", "ALLREDUCE": "allreduce", "ALLTOALL": "alltoall", "BCAST": "broadcast",
    "GATHER": "gather", "REDUCE": "reduce", "REDUCE_SCATTER": "reduce_scatter", "SCATTER": "scatter",
}  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How a tag carries out its collective."""

    algorithm: str  # in the registry
    then: str = ""  # another algorithm, after the first
    blocks: bool = False  # each block in a message of its own
    copies: float = 0  # copies of the vector besides
    fresh: float = 0  # vectors in buffers that are allocated anew for each call
    ports: int = 1  # copies of the algorithm on a part of the vector each, one on each port
    divided: bool = True  # whether ports share the vector; otherwise, they only add messages
    torus: bool = False  # follows the axes of the job, although it is no code of the authors
    interfaces: int = 1  # network interfaces of a node that a rank starts messages on
    segment: int = 0  # bytes of a put; 0: any number
    twice: bool = False  # partners tell each other the places of blocks for both halves of an allreduce
    puts: bool = False  # puts of the authors' library instead of messages of MPI
    chosen: bool = False  # by the library: the fastest of its own that we know


@dataclass(frozen=True)
class Refusal:
    """Why a row has no prediction."""

    reason: str


RING, DOUBLING, LATENCY = Way("ring"), Way("recursive_doubling"), Way("recursive_doubling_latency", fresh=1)
HALVES = Way("recursive_doubling_bandwidth", fresh=1)
HALVING = Way("recursive_halving", fresh=2)
DEFAULT = Way("", chosen=True)
SPREAD = Way("linear", interfaces=6)

# Tag without library and type -> way; of Open MPI, Cray MPICH and the authors' library over MPI.
HOSTS: dict[str, dict[str, Way]] = {
    "allgather": {
        "ring": RING,
        "recursive_doubling": DOUBLING,
        "k_bruck": Way("bruck", copies=1),
        "brucks": Way("bruck", copies=1),
        "sparbit": Way("bruck", blocks=True),
        "neighbor": Way("neighbor_exchange"),
        "bine_2_blocks": Way("bine_two_runs"),
        "bine_2_blocks_dtype": Way("bine_two_runs"),
        "bine_block_by_block": Way("swing", blocks=True),
        "bine_block_by_block_any_even": Way("swing", blocks=True),
        "bine_permute_remap": Way("swing", copies=1),
        "bine_permute_static": Way("swing", copies=1),
        "bine_send_remap": Way("bine"),
        "bine_send_static": Way("bine"),
        "default": DEFAULT,
        "non_blocking": DEFAULT,
    },
    "allreduce": {
        "ring": RING,
        "ring_segmented": RING,
        "recursive_doubling": LATENCY,
        "rabenseifner": HALVES,
        "allgather_reduce": HALVES,  # the notes of these runs: "allg scatter is old raben"
        "nonoverlapping": Way("reduce_broadcast", fresh=1),
        "bine_lat": Way("swing_latency", fresh=1),
        "bine_bdw_remap": Way("bine_bandwidth", fresh=1),
        "bine_bdw_static": Way("bine_bandwidth", fresh=1),
        "bine_bdw_remap_segmented": Way("bine_bandwidth"),
        "bine_block_by_block_any_even": Way("swing_bandwidth", blocks=True),
        "default": DEFAULT,
        "non_blocking": DEFAULT,
    },
    "alltoall": {
        "linear": Way("linear"),
        "linear_sync": Way("linear"),
        "pairwise": Way("pairwise"),
        "modified_bruck": Way("bruck", copies=1, fresh=1),
        "bine": Way("bruck", copies=1, fresh=1),
        "default": DEFAULT,
    },
    "broadcast": {
        "linear": Way("linear"),
        "binomial": Way("tree/binomial"),
        "knomial": Way("tree/knomial"),
        "binary": Way("binary_tree"),
        "split_binary": Way("binary_tree"),
        "chain": Way("ring"),
        "pipeline": Way("ring"),
        "scatter_allgather": Way("scatter/binomial", "allgather/recursive_doubling"),
        "scatter_allgather_ring": Way("scatter/binomial", "allgather/ring"),
        "bine_lat": Way("tree/bine"),
        "bine_lat_new": Way("bine"),
        "bine_lat_i_new": Way("tree/bine"),
        "bine_lat_reversed": Way("tree/bine"),
        "bine_bdw_remap": Way("bine_bandwidth"),
        "bine_bdw_static": Way("bine_bandwidth"),
        "default": DEFAULT,
    },
    "gather": {
        "linear": Way("linear"),
        "linear_synch": Way("linear"),
        "binomial": Way("binomial", copies=1),
        "bine": Way("bine", copies=1),
        "default": DEFAULT,
    },
    "reduce": {
        "linear": Way("linear"),
        "chain": Way("ring", fresh=1),
        "pipeline": Way("ring", fresh=1),
        "binomial": Way("binomial", fresh=1),
        "binary": Way("binary_tree", fresh=1),
        "in_order": Way("binary_tree", fresh=1),
        "rabenseifner": Way("reduce_scatter_gather", fresh=2),
        "bine_lat": Way("bine", fresh=1),
        "bine_bdw": Way("bine_bandwidth", fresh=2),
        "default": DEFAULT,
        "non_blocking": DEFAULT,
    },
    "reduce_scatter": {
        "ring": Way("ring", fresh=1),
        "recursive_halving": HALVING,
        "butterfly": HALVING,
        "nonoverlapping": Way("reduce/binomial", "scatter/linear", fresh=1),
        "recursive_distance_doubling": HALVING,
        "recursive_doubling": Way("allreduce/recursive_doubling_latency", fresh=2),
        "pairwise": Way("pairwise"),
        "bine_block_by_block": Way("swing", blocks=True, fresh=2),
        "bine_block_by_block_any_even": Way("swing", blocks=True, fresh=2),
        "bine_permute_remap": Way("swing", copies=1, fresh=2),
        "bine_send_remap": Way("bine", fresh=2),
        "default": DEFAULT,
        "non_blocking": DEFAULT,
    },
    "scatter": {
        "linear": Way("linear"),
        "linear_nb": Way("linear"),
        "binomial": Way("binomial", copies=1),
        "bine": Way("bine", copies=1),
        "default": DEFAULT,
    },
}  # fmt: skip

# FJMPI's own, by the tag after `default-`, with one kind of dash.
FUJITSU: dict[str, dict[str, Way]] = {
    "allgather": {
        "ring": RING,
        "recursive_doubling": DOUBLING,
        "bruck": Way("bruck", copies=1, fresh=1),
        "linear": Way("linear"),
        "gtbc": Way("linear"),
        "neighbor": Way("neighbor_exchange"),
        "3dtorus": Way("bucket", ports=6, torus=True),
        "default": DEFAULT,
    },
    "allreduce": {
        "ring": RING,
        "segmented_ring": RING,
        "recursive_doubling": LATENCY,
        "nonoverlapping": Way("reduce_broadcast", fresh=1),
        "rdbc": Way("reduce_broadcast", fresh=1),
        "default": DEFAULT,
    },
    "alltoall": {
        "linear": Way("linear"),
        "linear_sync": Way("linear"),
        "pairwise": Way("pairwise"),
        "modified_bruck": Way("bruck", copies=1, fresh=1),
        "doublespread": SPREAD,
        "blacc6d": SPREAD,
        "crp": SPREAD,
        "default": DEFAULT,
    },
    "broadcast": {
        "binomial": Way("binomial"),
        "binary_tree": Way("binary_tree"),
        "basic_linear": Way("linear"),
        "chain": Way("ring"),
        "default": DEFAULT,
    },
    "gather": {
        "basic_linear": Way("linear"),
        "linear_sync": Way("linear"),
        "simple": Way("linear"),
        "binomial": Way("binomial"),
        "default": DEFAULT,
    },
    "reduce": {
        "linear": Way("linear", fresh=1),
        "chain": Way("ring", fresh=1),
        "binary": Way("binary_tree", fresh=1),
        "in_order_binary": Way("binary_tree", fresh=1),
        "binomial": Way("binomial", fresh=1),
        "default": DEFAULT,
    },
    "reduce_scatter": {
        "ring": RING,
        "non_overlapping": Way("reduce/binomial", "scatter/linear", fresh=1),
        "recursive_halving": Way("recursive_halving"),
        "default": DEFAULT,
    },
    "scatter": {
        "basic_linear": Way("linear"),
        "binomial": Way("binomial"),
        "default": DEFAULT,
    },
}  # fmt: skip

# The authors' library on Fugaku, by algorithm and treatment of blocks.
TORUS: dict[str, dict[str, Way]] = {
    "allgather": {
        "BINE-VEC_DOUBLING_BLOCKS": Way("swing", blocks=True),
        "BINE-VEC_DOUBLING_CONT_PERMUTE": Way("swing", copies=1),
        "BINE-VEC_DOUBLING_CONT_SEND": Way("bine"),
        "RING-VEC_DOUBLING_CONT_PERMUTE": Way("bucket"),
    },
    "allreduce": {
        "BINE-B_CONT": Way("swing_bandwidth", twice=True),
        "BINE-L": Way("swing_latency"),
        "RECDOUB-B_CONT": Way("recursive_doubling_bandwidth", twice=True),
        "RECDOUB-L": Way("recursive_doubling_latency"),
        "RING-B_CONT": Way("reduce_scatter/bucket", "allgather/bucket", copies=2),
    },
    "alltoall": {"BINE-LOG": Way("bruck", copies=1), "BRUCK-LOG": Way("bruck", copies=1)},
    "broadcast": {
        "BINE-BINOMIAL_TREE": Way("bine"),
        "BINE-BINOMIAL_TREE_TMPBUF": Way("bine", copies=1),
        "BINE-SCATTER_ALLGATHER": Way("bine_bandwidth"),
    },
    "gather": {"BINE-BINOMIAL_TREE_CONT_PERMUTE": Way("bine", copies=1)},
    "reduce": {
        "BINE-BINOMIAL_TREE": Way("bine", divided=False),
        "BINE-REDUCE_SCATTER_GATHER": Way("bine_bandwidth"),
    },
    "reduce_scatter": {
        "BINE-VEC_HALVING_CONT_PERMUTE": Way("swing", copies=1),
        "RING-VEC_HALVING_CONT_PERMUTE": Way("bucket", copies=1),
    },
    "scatter": {"BINE-BINOMIAL_TREE_CONT_PERMUTE": Way("bine", copies=1)},
}  # fmt: skip

# Schedules that stand in for what only Open MPI's own choice asks for, such as chains in segments.
ONLY_CHOSEN = {(collective, name) for collective in ("broadcast", "reduce") for name in ("chain", "pipeline")}
ONLY_CHOSEN |= {("broadcast", "split_binary"), ("reduce_scatter", "butterfly"), ("reduce_scatter", "nonoverlapping")}
# Cray MPICH takes another where recursive doubling would be slow, chosen after the times were seen to be equal.
CHOSEN_ANYWAY = {("allreduce", "recursive_doubling_mpich")}

_HOSTS = re.compile(r"(?P<way>.+?)(_over|_ompi|_mpich)(?P<even>_any_even)?(_(?P<segment>\d+))?")
_TORUS = re.compile(r"(?P<way>[A-Z]+-[A-Z_]+?)(-INC|-DEC)?-(?P<code>MPI|UTOFU)-(?P<segment>\d+)-(?P<ports>\d)")


def way(machine: str, collective: str, tag: str) -> Way | Refusal:
    """What `tag` does for `collective` (as here) on `machine` (as in the file)."""
    name = tag.removesuffix("_int32")
    found = _fugaku(collective, name) if machine == "fugaku" else _hosts(collective, name)
    return found or Refusal(f"no schedule of ours for `{tag}` of {collective}")


def _hosts(collective: str, name: str) -> Way | None:
    match = _HOSTS.fullmatch(name)
    plain = match["way"] + (match["even"] or "") if match else name
    if (collective, name) in CHOSEN_ANYWAY:
        return DEFAULT
    found = None if (collective, plain) in ONLY_CHOSEN else HOSTS.get(collective, {}).get(plain)
    if found and name.endswith("_mpich"):  # which waits for each send
        return replace(found, algorithm=found.algorithm.removeprefix("tree/"))
    return found


def _fugaku(collective: str, name: str) -> Way | None:
    if name.startswith("default-"):
        return FUJITSU.get(collective, {}).get(name.removeprefix("default-").replace("-", "_"))
    match = _TORUS.fullmatch(name)
    found = match and TORUS.get(collective, {}).get(match["way"])
    if not (match and found):
        return None
    return replace(found, ports=int(match["ports"]), segment=int(match["segment"]), puts=match["code"] == "UTOFU")


def library(tag: str) -> str:
    """Whose code a tag runs: `ompi`, `mpich`, `fujitsu`, `over` (the authors' over MPI) or `utofu`."""
    name = tag.removesuffix("_int32")
    if name.startswith("default-"):
        return "fujitsu"
    if match := _TORUS.fullmatch(name):
        return "utofu" if match["code"] == "UTOFU" else "over"
    return next((word for word in ("ompi", "mpich") if name.endswith(f"_{word}")), "over")


def own(machine: str, collective: str, ranks: int, size_bytes: int) -> list[Way]:
    """What the machine's own library may take: Open MPI's choice, or all that we know, of which the fastest counts.

    FJMPI and Cray MPICH have no published rule.
    """
    if machine == "fugaku":
        return [one for one in FUJITSU[collective].values() if not one.chosen]
    if machine == "leonardo":
        return [HOSTS[collective][open_mpi.choice(collective, ranks, size_bytes)]]
    return [HOSTS[collective][name] for name in MPICH.get(collective, ())]


MPICH = {
    "allgather": ("ring", "recursive_doubling", "brucks"),
    "allreduce": ("recursive_doubling", "rabenseifner"),
    "reduce": ("binomial", "rabenseifner"),
    "reduce_scatter": ("pairwise", "recursive_halving"),
}
