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

There are as few rules as the times allow. At each size, every algorithm qualifies that is not *separably* slower than
the fastest: slower by `LEAST_GAIN` or more and, where both were measured, with disjoint intervals. A rule goes on
while one algorithm qualifies at all of its sizes, so noise never switches.

Source: Open MPI 4.1, ompi/mca/coll/tuned/coll_tuned_dynamic_file.c (format), coll_base_functions.h
(numbers of collectives), coll_tuned_*_decision.c (numbers of algorithms).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import geometric_mean

from linkwright.errors import StoreError
from linkwright.executors import is_modelled

from .formats import Content, Exporter

# A smaller gain is not worth a rule, however exact the values are.
LEAST_GAIN = 0.02

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


@dataclass(frozen=True)
class _Time:
    """A time with its 95 % interval, all in ns; a measured time without an interval is separable from none."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, row: dict) -> _Time:
        value = row["value"]
        if is_modelled(row["executor"]):
            return cls(value, value, value)
        if row["ci_low"] is None or row["ci_high"] is None:
            return cls(value, 0.0, float("inf"))
        return cls(value, row["ci_low"], row["ci_high"])

    def separably_faster(self, other: _Time) -> bool:
        """Whether neither noise nor a trifle explains the difference."""
        return self.high < other.low and other.value >= self.value * (1 + LEAST_GAIN)


_BySize = dict[int, dict[str, _Time]]


@dataclass(frozen=True)
class _Rule:
    """One algorithm for some sizes that follow each other, and why, in words."""

    size_bytes: int  # from which on
    algorithm: str
    why: str


def _render(content: Content) -> str:
    """The rules of one machine of a run: the fastest of one machine says nothing of another."""
    rows = [row for row in content.rows if row["metric"] == "time" and row["value"]]
    found = _times(rows)
    content.only_machine(rows, "times")
    if not found:
        raise StoreError(
            f"{content.run}: holds no collective that Open MPI has algorithms for; run the suite `dissect`"
        )
    lines = [f"{len(found)} # collectives; fastest of {content.run}"]
    for collective, by_ranks in found.items():
        number, algorithms = _COLLECTIVES[collective]
        lines += [f"{number} # {collective}", f"{len(by_ranks)} # communicator sizes"]
        for ranks, by_size in sorted(by_ranks.items()):
            rules = list(_rules(by_size))
            lines += [f"{ranks} # processes", f"{len(rules)} # message sizes"]
            lines += [
                f"{r.size_bytes} {algorithms[r.algorithm]} 0 0 # from {r.size_bytes} B: {r.algorithm}, {r.why}"
                for r in rules
            ]
    return "\n".join(lines) + "\n"


def _times(rows: Iterable[dict]) -> dict[str, dict[int, _BySize]]:
    """collective -> ranks -> size -> algorithm -> its time."""
    found: dict[str, dict[int, _BySize]] = {}
    for row in rows:
        if row["algorithm"] not in _COLLECTIVES.get(row["collective"], (0, {}))[1]:
            continue
        cell = found.setdefault(row["collective"], {}).setdefault(row["ranks"], {}).setdefault(row["size_bytes"], {})
        time = _Time.of(row)
        cell[row["algorithm"]] = min(cell.get(row["algorithm"], time), time, key=lambda one: one.value)
    return {name: found[name] for name in _COLLECTIVES if name in found}


def _rules(by_size: _BySize) -> Iterator[_Rule]:
    """The fewest rules under which no size has an algorithm that is separably slower than another one."""
    before = None
    for sizes in _stretches(by_size):
        name = _chosen([by_size[size] for size in sizes])
        if before is None:
            yield _Rule(0, name, _first([by_size[size] for size in sizes], name))
        else:
            yield _Rule(sizes[0], name, _gain(by_size[sizes[0]], name, before))
        before = name


def _stretches(by_size: _BySize) -> list[list[int]]:
    """Sizes in order, divided where no algorithm qualifies any longer at all of them."""
    found: list[list[int]] = []
    common: set[str] = set()
    for size, times in sorted(by_size.items()):
        qualified = {name for name, time in times.items() if not _beaten(time, times)}
        if common & qualified:
            common &= qualified
            found[-1].append(size)
        else:
            common = qualified
            found.append([size])
    return found


def _beaten(time: _Time, times: dict[str, _Time]) -> bool:
    return any(other.separably_faster(time) for other in times.values())


def _chosen(stretch: list[dict[str, _Time]]) -> str:
    """Of the algorithms that qualify at every size, the one with the shortest times on the whole."""
    names = [name for name in stretch[0] if all(name in t and not _beaten(t[name], t) for t in stretch)]
    return min(names, key=lambda name: (geometric_mean(times[name].value for times in stretch), name))


def _first(stretch: list[dict[str, _Time]], name: str) -> str:
    """What speaks for the algorithm of the first rule."""
    others = {other for times in stretch for other in times} - {name}
    beaten = [o for o in others if any(o in t and t[name].separably_faster(t[o]) for t in stretch)]
    if not others:
        return "the only one with a time"
    if not beaten:
        return "nothing is separable"
    return f"separably faster than {len(beaten)} of {len(others)} others"


def _gain(times: dict[str, _Time], name: str, before: str) -> str:
    """What speaks for a switch."""
    if before not in times:
        return f"{before} has no time here"
    return f"{times[before].value / times[name].value - 1:.0%} faster than {before}"


EXPORTER = Exporter(
    "openmpi-rules",
    "Open MPI dynamic rules (coll_tuned): the fastest algorithm by collective, ranks and size",
    "For each collective and number of ranks, from which message size on which of Open MPI's own algorithms was the "
    "fastest of its kind here. A rule begins only where the algorithm before it is separably slower than another one: "
    "by 2 % at least, and with disjoint intervals where they were measured. Algorithms that Open MPI does not have are "
    "passed over.",
    "Open MPI 4.1, ompi/mca/coll/tuned",
    _render,
    needs="times of collectives that Open MPI has algorithms for, of one machine",
)
