"""MPICH's selection file (JSON), with branches of our own in it.

    MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE MPIR_CVAR_DEVICE_COLLECTIVES=none ...

MPICH stops where its file names no algorithm, so a file must hold all collectives. Ours is MPICH's own file (`--base`,
in its source: maint/tuning/coll/mpir/generic.json) with a branch for each number of ranks; what it selects elsewhere,
and where an algorithm of ours would not do (operators that do not commute, fewer elements than ranks, data in place),
stays as it was:

    comm_type=intra   comm_size<16    as before
                      comm_size<=16   size<4096: recursive doubling; otherwise the ring
                      comm_size=any   as before

Conditions are tried in their order. Sizes are compared with 32-bit integers, so no rule begins above 2 GiB. Gather and
scatter are left out: MPICH compares their numbers of elements, not of bytes.

Source: pmodels/mpich 4.x, src/mpi/coll/src/csel.c (keys and their meaning), src/mpi/coll/mpir_coll.c (no default).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from linkwright.base.errors import FileError, UsageError
from linkwright.base.files import read_json

from .rules import Table
from .runtime import About, Runtime, Written, reasons

MOST_BYTES = (1 << 31) - 1
Tree = dict[str, Any]
NAMES = {
    "allgather": ("allgather",), "allreduce": ("allreduce",), "alltoall": ("alltoall",), "broadcast": ("bcast",),
    "reduce": ("reduce",), "reduce_scatter": ("reduce_scatter", "reduce_scatter_block"),
}  # fmt: skip
# Behind `MPIR_NAME_intra_`.
ALGORITHMS = {
    "allgather": {"bruck": "brucks", "recursive_doubling": "recursive_doubling", "ring": "ring"},
    "allreduce": {
        "recursive_doubling_latency": "recursive_doubling",
        "recursive_doubling_bandwidth": "reduce_scatter_allgather",
        "ring": "ring",
    },
    "alltoall": {"bruck": "brucks", "linear": "scattered", "pairwise": "pairwise"},
    "broadcast": {"binomial": "binomial", "scatter_allgather": "scatter_ring_allgather"},
    "reduce": {"binomial": "binomial", "reduce_scatter_gather": "reduce_scatter_gather"},
    "reduce_scatter": {"recursive_halving": "recursive_halving", "pairwise": "pairwise"},
}
# The key of the whole array in bytes, as we count it.
_SIZES = {"allreduce": "avg_msg_size", "broadcast": "avg_msg_size", "reduce": "avg_msg_size"}
# Conditions under which our algorithms do, each with its opposite.
_SUITED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "allreduce": (
        ("is_commutative=yes", "is_commutative=no"), ("is_op_built_in=yes", "is_op_built_in=no"),
        ("count=any", "count<pow2"),
    ),
    "reduce": (
        ("is_commutative=yes", "is_commutative=no"), ("is_op_built_in=yes", "is_op_built_in=no"),
        ("count=any", "count<pow2"),
    ),
    "reduce_scatter": (("is_commutative=yes", "is_commutative=no"),),
    "alltoall": (("is_sendbuf_inplace=no", "is_sendbuf_inplace=yes"),),
}  # fmt: skip


def render(tables: Sequence[Table], about: About) -> Written:
    """The base with a branch for each table."""
    if about.base is None:
        raise UsageError(
            "--for mpich: extends one of MPICH's own files; give it with --base, such as "
            "maint/tuning/coll/mpir/generic.json of its source"
        )
    tree = _read(about.base)
    for table in tables:
        for name in NAMES[table.collective]:
            _extend(tree, name, table, about)
    return Written(json.dumps(tree, indent=4) + "\n", reasons(tables, about))


def _read(base: Path) -> Tree:
    tree = read_json(base, "a selection file")
    if not isinstance(tree, dict) or not any(key.startswith("collective=") for key in tree):
        raise FileError(f"{base}: names no `collective=...`; give a selection file of MPICH")
    return tree


def _extend(tree: Tree, name: str, table: Table, about: About) -> None:
    """Put the branch of a table into the tree."""
    found = tree.get(f"collective={name}")
    if not isinstance(found, dict) or not isinstance(found.get("comm_type=intra"), dict):
        raise FileError(f"{about.base}: has no `comm_type=intra` of collective `{name}`; give a file of this MPICH")
    before = found["comm_type=intra"]
    found["comm_type=intra"] = {
        f"comm_size<{table.ranks}": copy.deepcopy(before),
        f"comm_size<={table.ranks}": _where_suited(table.collective, _by_size(name, table), before),
        "comm_size=any": copy.deepcopy(before),
    }


def _by_size(name: str, table: Table) -> Tree:
    size = _SIZES.get(table.collective, "total_msg_size")
    found: Tree = {}
    for place, rule in enumerate(table.rules):
        algorithm = f"MPIR_{name.capitalize()}_intra_{ALGORITHMS[table.collective][rule.algorithm]}"
        ends = place + 1 == len(table.rules) or table.until(place) >= MOST_BYTES
        found[f"{size}=any" if ends else f"{size}<={table.until(place)}"] = {f"algorithm={algorithm}": {}}
        if ends:
            break
    return found


def _where_suited(collective: str, ours: Tree, before: Tree) -> Tree:
    """Our branch where its algorithms do, and elsewhere what was there before."""
    for suited, other in reversed(_SUITED.get(collective, ())):
        ours = {other: copy.deepcopy(before), suited: ours}
    return ours


MPICH = Runtime(
    "mpich",
    "MPICH: its selection file with branches for these ranks (JSON)",
    "A copy of --base, MPICH's own selection file, with a branch for each number of ranks. The format has no comments; "
    "the reasons go to a separate file.",
    "pmodels/mpich, src/mpi/coll/src/csel.c",
    ALGORITHMS,
    render,
    needs_base=True,
)
