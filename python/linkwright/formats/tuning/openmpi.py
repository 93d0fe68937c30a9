"""Dynamic rules of Open MPI's component `tuned`, as text and as JSON.

    mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...

`tuned` chooses an algorithm by collective, communicator size and message size. Its message size is the whole array, as
ours. It pipelines some algorithms otherwise than we do: run with the rules and compare.

    1                 collectives
    2                 which one (2: allreduce)
    1                 communicator sizes
    16                processes
    2                 message sizes
    0 3 0 0           from 0 bytes: recursive doubling, no fan-out, no segments
    8192 4 0 0        from 8192 bytes: ring

A text has no upper ends, so rules for 16 processes also serve 17 and more, and the last rule all larger sizes. The
JSON says `comm_size_max` and `msg_size_max`, beyond which `tuned` decides as ever. It holds numbers of algorithms,
because their names are checked against the version at hand.

Source: Open MPI 4.1 and 6.0, ompi/mca/coll/tuned: coll_tuned_dynamic_file.c (formats), coll_tuned_*_decision.c
(numbers of algorithms); coll_base_functions.h (numbers of collectives).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from .rules import Table
from .runtime import About, Runtime, Written, reasons

# Collective -> its number.
NUMBERS = {
    "allgather": 0, "allreduce": 2, "alltoall": 3, "barrier": 6, "broadcast": 7, "gather": 9, "reduce": 11,
    "reduce_scatter": 12, "scatter": 15,
}  # fmt: skip
ALGORITHMS = {
    "allgather": {"linear": 1, "bruck": 2, "recursive_doubling": 3, "ring": 4, "neighbor_exchange": 5},
    "allreduce": {
        "reduce_broadcast": 2, "recursive_doubling_latency": 3, "ring": 4, "recursive_doubling_bandwidth": 6,
    },
    "alltoall": {"linear": 1, "pairwise": 2, "bruck": 3},
    "barrier": {"linear": 1, "dissemination": 4},
    "broadcast": {"linear": 1, "binomial": 6, "scatter_allgather": 9},
    "gather": {"linear": 1, "binomial": 2},
    "reduce": {"linear": 1, "binomial": 5, "reduce_scatter_gather": 7},
    "reduce_scatter": {"recursive_halving": 2, "ring": 3},
    "scatter": {"linear": 1, "binomial": 2},
}  # fmt: skip
_NAMES = {"broadcast": "bcast"}


def text(tables: Sequence[Table], about: About) -> Written:
    """The text that all versions read."""
    by_collective = {name: list(found) for name, found in groupby(tables, lambda table: table.collective)}
    lines = [f"{len(by_collective)} # collectives; fastest of {about.title}"]
    for collective, found in by_collective.items():
        lines += [f"{NUMBERS[collective]} # {collective}", f"{len(found)} # communicator sizes"]
        for table in found:
            lines += [f"{table.ranks} # processes", f"{len(table.rules)} # message sizes"]
            lines += [
                f"{r.size_bytes} {ALGORITHMS[collective][r.algorithm]} 0 0 # from {r.size_bytes} B: "
                f"{r.algorithm}, {r.why}"
                for r in table.rules
            ]
    return Written("\n".join(lines) + "\n")


def version_3(tables: Sequence[Table], about: About) -> Written:
    """The JSON that Open MPI 6.0 reads."""
    collectives: dict[str, list[dict[str, object]]] = {}
    for table in tables:
        rules = []
        for place, rule in enumerate(table.rules):
            number = ALGORITHMS[table.collective][rule.algorithm]
            rules.append({"msg_size_min": rule.size_bytes, "msg_size_max": table.until(place), "alg": number})
        name = _NAMES.get(table.collective, table.collective)
        collectives.setdefault(name, []).append(
            {"comm_size_min": table.ranks, "comm_size_max": table.ranks, "rules": rules}
        )
    document = {"rule_file_version": 3, "module": "tuned", "collectives": collectives}
    return Written(json.dumps(document, indent=2) + "\n", reasons(tables, about))


_SOURCE = "Open MPI, ompi/mca/coll/tuned"
TEXT = Runtime(
    "openmpi",
    "Open MPI: dynamic rules of coll_tuned, as text",
    "The algorithm of coll_tuned from each message size on, by collective and number of processes. Rules for "
    "a number of processes also apply to larger ones, up to the next that has rules.",
    f"{_SOURCE}, coll_tuned_dynamic_file.c (4.1)",
    ALGORITHMS,
    text,
)
JSON = Runtime(
    "openmpi-json",
    "Open MPI 6.0: dynamic rules of coll_tuned, as JSON of version 3",
    "As `openmpi`, but with separate rules for each number of processes. The format has no comments, so the reasons "
    "go to a separate file.",
    f"{_SOURCE}, coll_tuned_dynamic_file.c (6.0)",
    ALGORITHMS,
    version_3,
)
