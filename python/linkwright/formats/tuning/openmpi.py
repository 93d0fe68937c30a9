"""Dynamic rules of Open MPI's component `tuned`, as text and as JSON.

    mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...

`tuned` chooses an algorithm by collective, communicator size and message size. Its message size is the whole array, as
ours. It pipelines some algorithms otherwise than we do: run with the rules and compare.

    1                 collectives
    2                 which one (2: allreduce)
    3                 communicator sizes
    1                 processes
    1                 message sizes
    0 0 0 0           as without rules
    16                processes
    4                 message sizes
    0 0 0 0           from 0 bytes: as without rules
    1024 3 0 0        from 1024 bytes: recursive doubling, no fan-out, no segments
    8192 4 0 0        from 8192 bytes: ring
    65537 0 0 0       beyond the largest that has a time: as without rules
    17                processes
    1                 message sizes
    0 0 0 0           as without rules

A text has no upper ends: a rule serves all up to the next one, of sizes and of processes, and the first number of
processes also serves fewer. Algorithm 0 is none, so that `tuned` decides as without rules; it stands where nothing was
timed. The JSON says `comm_size_max` and
`msg_size_max` instead. It holds numbers of algorithms, because their names are checked against the version at hand.

Source: Open MPI 4.1 and 6.0, ompi/mca/coll/tuned: coll_tuned_dynamic_file.c (formats), coll_tuned_*_decision.c
(numbers of algorithms); coll_base_functions.h (numbers of collectives).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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
_OWN = "{0} 0 0 0 # from {0} B: as without rules, nothing was timed"


def text(tables: Sequence[Table], about: About) -> Written:
    """The text that all versions read."""
    by_collective = {name: list(found) for name, found in groupby(tables, lambda table: table.collective)}
    lines = [f"{len(by_collective)} # collectives; fastest of {about.title}"]
    for collective, found in by_collective.items():
        timed = {table.ranks: table for table in found}
        closed = {1, *(ranks + 1 for ranks in timed)} - set(timed)  # the first also counts for fewer processes
        lines += [f"{NUMBERS[collective]} # {collective}", f"{len(timed) + len(closed)} # communicator sizes"]
        for ranks in sorted({*timed, *closed}):
            rules = list(_rules(timed[ranks])) if ranks in timed else [_OWN.format(0)]
            lines += [f"{ranks} # processes", f"{len(rules)} # message sizes", *rules]
    return Written("\n".join(lines) + "\n")


def _rules(table: Table) -> Iterator[str]:
    """The rules of a table between sizes that have no time."""
    if table.least:
        yield _OWN.format(0)
    for place, rule in enumerate(table.rules):
        size, number = table.since(place), ALGORITHMS[table.collective][rule.algorithm]
        yield f"{size} {number} 0 0 # from {size} B: {rule.algorithm}, {rule.why}"
    if max(table.times):  # a barrier has no size
        yield _OWN.format(max(table.times) + 1)


def version_3(tables: Sequence[Table], about: About) -> Written:
    """The JSON that Open MPI 6.0 reads."""
    collectives: dict[str, list[dict[str, object]]] = {}
    for table in tables:
        rules = []
        for place, rule in enumerate(table.rules):
            number = ALGORITHMS[table.collective][rule.algorithm]
            rules.append({"msg_size_min": table.since(place), "msg_size_max": table.until(place), "alg": number})
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
    "The algorithm of coll_tuned from each message size on, by collective and number of processes. Sizes and numbers "
    "of processes without times are left to Open MPI.",
    f"{_SOURCE}, coll_tuned_dynamic_file.c (4.1)",
    ALGORITHMS,
    text,
)
JSON = Runtime(
    "openmpi-json",
    "Open MPI 6.0: dynamic rules of coll_tuned, as JSON of version 3",
    "As `openmpi`. The format has no comments, so the reasons go to a separate file.",
    f"{_SOURCE}, coll_tuned_dynamic_file.c (6.0)",
    ALGORITHMS,
    version_3,
)
