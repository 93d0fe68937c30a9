"""The fastest algorithms of a run as Open MPI's dynamic rules, which `mpirun` takes.

    mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE ...

Open MPI's component `tuned` chooses an algorithm by collective, communicator size and message size. The rules
say from which size on which one. Only algorithms that `tuned` has are chosen among, and `tuned` pipelines some of
them otherwise than we do: run with the rules and compare. Its message size is the whole array, as ours.

    1                 collectives
    2                 which one (2: allreduce)
    1                 communicator sizes
    16                processes
    2                 message sizes
    0 3 0 0           from 0 bytes: recursive doubling, no fan-out, no segments
    8192 4 0 0        from 8192 bytes: ring

Source: Open MPI 4.1, ompi/mca/coll/tuned/coll_tuned_dynamic_file.c (format), coll_base_functions.h
(numbers of collectives), coll_tuned_*_decision.c (numbers of algorithms).
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwright.errors import StoreError

from .formats import Content, Exporter

# Collective -> (its number, {our algorithm: Open MPI's number}).
_COLLECTIVES = {
    "allgather": (0, {"linear": 1, "bruck": 2, "recursive_doubling": 3, "ring": 4}),
    "allreduce": (
        2,
        {"reduce_broadcast": 2, "recursive_doubling_latency": 3, "ring": 4, "recursive_doubling_bandwidth": 6},
    ),
    "alltoall": (3, {"linear": 1, "pairwise": 2, "bruck": 3}),
    "barrier": (6, {"linear": 1, "dissemination": 4}),
    "broadcast": (7, {"linear": 1, "binomial": 6, "scatter_allgather": 8}),
    "gather": (9, {"linear": 1, "binomial": 2}),
    "reduce": (11, {"linear": 1, "binomial": 5, "reduce_scatter_gather": 7}),
    "reduce_scatter": (12, {"recursive_halving": 2, "ring": 3}),
    "scatter": (15, {"linear": 1, "binomial": 2}),
}


def _render(content: Content) -> str:
    """The rules of one machine of a run: the fastest of one machine says nothing of another."""
    rows = [row for row in content.rows if row["metric"] == "time" and row["value"]]
    best = _fastest(rows)
    content.only_machine(rows, "times")
    if not best:
        raise StoreError(
            f"{content.run}: holds no collective that Open MPI has algorithms for; run the suite `dissect`"
        )
    lines = [f"{len(best)} # collectives; fastest of {content.run}"]
    for collective, by_ranks in best.items():
        number, algorithms = _COLLECTIVES[collective]
        lines += [f"{number} # {collective}", f"{len(by_ranks)} # communicator sizes"]
        for ranks, by_size in sorted(by_ranks.items()):
            rules = list(_rules(by_size))
            lines += [f"{ranks} # processes", f"{len(rules)} # message sizes"]
            lines += [f"{size} {algorithms[name]} 0 0 # from {size} B: {name}" for size, name in rules]
    return "\n".join(lines) + "\n"


def _fastest(rows: Iterable[dict]) -> dict[str, dict[int, dict[int, tuple[float, str]]]]:
    """collective -> ranks -> size -> (time, algorithm) of the fastest."""
    best: dict[str, dict[int, dict[int, tuple[float, str]]]] = {}
    for row in rows:
        if row["algorithm"] not in _COLLECTIVES.get(row["collective"], (0, {}))[1]:
            continue
        cell = best.setdefault(row["collective"], {}).setdefault(row["ranks"], {})
        found = (row["value"], row["algorithm"])
        cell[row["size_bytes"]] = min(cell.get(row["size_bytes"], found), found)
    return {name: best[name] for name in _COLLECTIVES if name in best}


def _rules(by_size: dict[int, tuple[float, str]]) -> Iterable[tuple[int, str]]:
    """(from which size, algorithm), the first from 0; sizes with the same winner are one rule."""
    before = None
    for size, (_, name) in sorted(by_size.items()):
        if name != before:
            yield (0 if before is None else size), name
            before = name


EXPORTER = Exporter(
    "openmpi-rules",
    "Open MPI dynamic rules (coll_tuned): the fastest algorithm by collective, ranks and size",
    "For each collective and number of ranks, from which message size on which of Open MPI's own algorithms was the "
    "fastest of its kind here. Algorithms that Open MPI does not have are passed over.",
    "Open MPI 4.1, ompi/mca/coll/tuned",
    _render,
    needs="times of collectives that Open MPI has algorithms for, of one machine",
)
