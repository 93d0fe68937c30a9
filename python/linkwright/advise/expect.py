"""What a healthy machine gives: times and bus rates of collectives, and the floors below which it is not healthy.

    machine, ranks, collective, size -> the library's own choice, simulated             -> value
                                     -> published errors of such systems, tolerance.py -> value x (1 - tolerance): floor

A log is judged by the same floors. A size with wrong results fails, however fast it is. Nothing is fitted to a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from linkwright import _native, machines
from linkwright.base.errors import UsageError, check_known
from linkwright.base.units import counted, format_size
from linkwright.formats.gates import Expectation, Expected, Judged, Standing, printable
from linkwright.formats.logs import Facts, LogTable
from linkwright.libraries import library, mpi, tolerance
from linkwright.libraries.settings import COLLECTIVES
from linkwright.libraries.tolerance import BYTES, NODES, Basis, Tolerance, band
from linkwright.machines import Variant

from .explain import log as logs
from .explain import remarks
from .explain.system import System

# The times of sends and receives are those of the library's alltoall.
PLANNED_AS = {"sendrecv": "alltoall"}
BLOCKED = ("allgather", "reduce_scatter", "alltoall", "gather", "scatter")
ELEMENT_BYTES = 4
# More would be simulated for minutes; messages between all pairs grow with the square.
MOST_RANKS, MOST_IN_PAIRS = 1 << 12, 1 << 9


@dataclass(frozen=True)
class Installation:
    """What is asked of one machine.

    Attributes:
        machine: a described machine, or the path of a machine file.
        variant: nodes, network, and what the machine never had.
        ranks: how many take part, as many on each node; None: all.
        version: of the library, such as `nccl-2.26`; None: the machine's own.
    """

    machine: str
    variant: Variant
    ranks: int | None = None
    version: str | None = None

    @property
    def nodes(self) -> int:
        """Copies of the machine."""
        return self.variant.nodes or 1

    @property
    def title(self) -> str:
        """The machine with its options."""
        return f"{self.machine} {self.variant.options}".rstrip()


def versioned(asked: Installation, facts: Facts, collective: str) -> Installation:
    """Return the same with the library version that a log names, or the nearest that is known."""
    version, own = facts.version, (facts.library or "").lower()
    if version is None or not version[0].isdigit():
        return asked
    plan = library.nearest(machines.load(asked.machine), PLANNED_AS.get(collective, collective), version)
    return replace(asked, version=plan) if plan and plan.partition("-")[0] == own else asked


def systems(asked: Installation, collectives: Sequence[str]) -> dict[str, System]:
    """Return the system of each collective.

    Raises:
        UsageError: the machine has no library, the library lacks a collective, or the ranks do not fit the nodes.
    """
    node = machines.load(asked.machine)
    by_mpi = all(mpi.serves(node, collective) for collective in collectives)
    if node.library() is None and not by_mpi:
        raise UsageError(
            f"{asked.machine}: describes no library for {', '.join(collectives)}, so nothing says what a healthy one "
            "gives; name a machine with one, or ask `linkwright simulate` about an algorithm of your choice"
        )
    per_node = _per_node(asked, node.ranks * asked.nodes, collectives)
    described = machines.load(asked.machine, asked.variant)
    fabric = (asked.variant.fabric or (node.cluster or ([], None))[1]) if asked.nodes > 1 else None
    return {
        collective: System(
            asked.machine, asked.nodes, per_node, fabric, _version(asked, described, collective), collective,
            without=asked.variant.without, degrade=asked.variant.degrade,
        )
        for collective in collectives
    }  # fmt: skip


def _per_node(asked: Installation, most: int, collectives: Sequence[str]) -> int:
    ranks = asked.ranks or most
    if ranks % asked.nodes or ranks > most or ranks < 2:
        more = ", or more --nodes" if machines.load(asked.machine).cluster else ""
        raise UsageError(
            f"--ranks {ranks}: {asked.title} has {most} ranks on {counted(asked.nodes, 'node')}; give 2 to {most}, the "
            f"same number on each node{more}"
        )
    at_most = MOST_IN_PAIRS if any(PLANNED_AS.get(one, one) == "alltoall" for one in collectives) else MOST_RANKS
    if ranks > at_most:
        raise UsageError(
            f"{ranks:,} ranks: every size would be simulated for minutes; ask about {at_most:,} ranks or fewer"
        )
    return ranks // asked.nodes


def _version(asked: Installation, described: _native.Machine, collective: str) -> str:
    """Return the library's plan of a collective, its choice left to it; empty for a library of MPI."""
    check_known("collective", collective, COLLECTIVES.values(), lists="linkwright list collectives")
    if described.library() is None:
        if asked.version:
            raise UsageError(f"--algorithm {asked.version}: {asked.machine} has no library with versions; omit it")
        return ""
    planned = PLANNED_AS.get(collective, collective)
    known = library.algorithms(described, planned)
    if not known:
        raise UsageError(f"{asked.machine}: its library is not modelled for {collective}; omit it")
    if asked.version is None:
        return known[0]
    name = known[0].partition("-")[0]
    every = [f"{own}-{version}" for own, version, _, its in library.entries() if own == name and planned in its]
    check_known(f"version for {collective}", asked.version, every, where=asked.machine)
    return asked.version


def check_sizes(found: Mapping[str, System], sizes: Iterable[int]) -> None:
    """Refuse sizes that the collectives cannot have, or that are beyond all published tables."""
    for size in sizes:
        if not 1 <= size <= tolerance.largest():
            raise UsageError(
                f"size {format_size(size)}: published tables have 1 B to {format_size(tolerance.largest())}, so no "
                "tolerance is known; choose sizes among them"
            )
        for collective, system in found.items():
            least = ELEMENT_BYTES * system.ranks
            if collective in BLOCKED and size < least:
                raise UsageError(
                    f"size {format_size(size)}: {collective} of {system.ranks} ranks has a block for each, {least} B "
                    "or more; choose larger sizes"
                )


def expectations(found: Mapping[str, System], sizes: Sequence[int]) -> Iterator[Expectation]:
    """Simulate the collectives at the sizes, one after the other."""
    for collective, system in found.items():
        for size in sizes:
            one = system.time(size)
            its = _tolerance(system, size)
            yield Expectation(
                collective, size, one.time_us, logs.bus_rate(system, size, one.time_us), its.share, its.basis,
                its.tables, its.sites, one.choice, tolerance.spread(system.nodes, size),
            )  # fmt: skip


def _tolerance(system: System, size: int) -> Tolerance:
    return tolerance.of(system.machine, system.fabric, system.collective, system.nodes, size)


def answer(asked: Installation, found: Mapping[str, System], expected: Sequence[Expectation]) -> Expected:
    """Put together what is expected, and where the tolerances are from."""
    notes = dict.fromkeys(_note(found[one.collective], one) for one in expected)
    if asked.variant.without or asked.variant.degrade:
        notes["the tolerances are those of whole machines; no table of one that lacks something is among them"] = None
    one = next(iter(found.values()))
    versions = {collective: system.algorithm or "MPI" for collective, system in found.items()}
    return Expected(
        printable(asked.title), asked.nodes, _hosts(one), one.ranks, versions, expected, tuple(map(printable, notes))
    )


def _note(system: System, one: Expectation) -> str:
    """Say where a tolerance is from."""
    tables = f"{counted(one.tables, 'published table')} of {counted(one.sites, 'site')}"
    where = f"{system.machine}{_network(system)}"
    many = _span(band(system.nodes, NODES))
    several = "one node" if system.nodes == 1 else "several nodes"
    source = {
        Basis.SYSTEM: f"from {tables} of {where} on {many}",
        Basis.MACHINE: f"no table of {where} on {many}; the widest of {system.machine} on {several}, {tables}",
        Basis.COLLECTIVE: f"no table of {system.machine} on {many}; the widest known of {one.collective} on any "
        f"machine with {several}, {tables}",
        Basis.ANY: f"too few tables of {one.collective}; the widest known of any collective on any machine with "
        f"{several}, {tables}",
    }[Basis(one.basis)]
    return f"tolerance of {one.collective} {_sizes(one.size_bytes)}, {one.tolerance:.1%}: {source}"


def _network(system: System) -> str:
    return f" over {system.fabric.partition(',')[0]}" if system.fabric else ""


def _span(at: int) -> str:
    """Words for a band of nodes."""
    if at == 0:
        return "one node"
    return f"{NODES[at - 1] + 1} to {NODES[at]} nodes" if at < len(NODES) else f"more than {NODES[-1]} nodes"


def _sizes(size: int) -> str:
    """Words for a band of sizes."""
    at = band(size, BYTES)
    if at == 0:
        return f"below {format_size(BYTES[0] + 1)}"
    return f"from {format_size(BYTES[at - 1] + 1)}" + (f" to {format_size(BYTES[at] + 1)}" if at < len(BYTES) else "")


@dataclass(frozen=True)
class LogTimes:
    """What a log says of the collectives: size -> us of the slowest table, and the sizes with wrong results."""

    times: Mapping[str, Mapping[int, float]]
    wrong: Mapping[str, frozenset[int]]

    def sizes(self) -> tuple[int, ...]:
        """All sizes, in order."""
        return tuple(sorted({size for its in self.times.values() for size in its}))


def measured(tables: Iterable[LogTable], facts: Facts, found: Mapping[str, System], name: str) -> LogTimes:
    """Return what the tables of a log, and its other lines, say of the collectives.

    Raises:
        UsageError: the log has another number of ranks or nodes, other devices, or no table of one of the collectives.
    """
    times: dict[str, dict[int, float]] = {}
    wrong: dict[str, set[int]] = {}
    for table in tables:
        system = found.get(table.collective or "")
        if system is None:
            continue
        if other := remarks.other_devices(table, facts, system):
            raise UsageError(f"{name}: is of another machine: {other}; name its machine with --on")
        for what, logged, ours in (("nodes", table.nodes, _hosts(system)), ("ranks", table.ranks, system.ranks)):
            if logged is not None and ours is not None and logged != ours:
                raise UsageError(
                    f"{name}: was measured on {logged} {what}, and the question is about {ours}; give "
                    f"{_room_for(logged, system) if what == 'ranks' else f'--nodes {logged}'}"
                )
        its = times.setdefault(system.collective, {})
        for size, time in logs.measured_times(table, system.ranks).items():
            its[size] = max(time, its.get(size, time))
        scale = system.ranks if table.per_rank else 1
        wrong.setdefault(system.collective, set()).update(row.size * scale for row in table.rows if row.wrong)
    if absent := [collective for collective in found if collective not in times]:
        raise UsageError(f"{name}: has no times of {', '.join(absent)}; ask about what it measured")
    return LogTimes(times, {collective: frozenset(its) for collective, its in wrong.items()})


def _room_for(ranks: int, system: System) -> str:
    """Return the options that give the machine so many ranks, as many on each node."""
    node = machines.load(system.machine)
    if ranks <= node.ranks * system.nodes:
        return f"--ranks {ranks}"
    if not node.cluster:
        return "their machine with --on"
    nodes = next(count for count in range(-(-ranks // node.ranks), ranks + 1) if ranks % count == 0)
    return f"--nodes {nodes}" if ranks == nodes * node.ranks else f"--nodes {nodes} --ranks {ranks}"


def _hosts(system: System) -> int | None:
    """Return how many hosts a log would count; None where a node is several, such as trays, or states none."""
    return system.nodes if system.described.hosts == system.nodes else None


def judged(expected: Expected, found: Mapping[str, System], log: LogTimes, name: str) -> Expected:
    """Return the same with a judgement of each size."""
    return replace(
        expected,
        log=printable(name),
        judged=[_judged(one, found[one.collective], log) for one in expected.expectations],
    )


def _judged(one: Expectation, system: System, log: LogTimes) -> Judged:
    time = log.times.get(one.collective, {}).get(one.size_bytes)
    wrong = one.size_bytes in log.wrong.get(one.collective, ())
    if time is None:
        return Judged(one, Standing.WRONG if wrong else Standing.ABSENT)
    rate = logs.bus_rate(system, one.size_bytes, time)
    passed = tolerance.admits(rate / one.busbw, one.tolerance)
    standing = Standing.WRONG if wrong else Standing.PASSED if passed else Standing.BELOW
    return Judged(one, standing, time, rate)
