"""A log against the healthy machine: how far it is off, and what would give its numbers.

log -> table -> system (from its devices, or given) -> healthy times -> verdict
    -> facts                                        -> each hypothesis, simulated -> distance to the whole curve
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from linkwright import machines
from linkwright.base import units
from linkwright.base.errors import UsageError
from linkwright.base.units import KILO, format_gb_per_s
from linkwright.formats.logs import Facts, Log, LogTable, checks
from linkwright.libraries import library, mpi, tolerance
from linkwright.libraries.settings import COLLECTIVES, Condition, Refusal, settle
from linkwright.machines import Variant

from . import faster, links, remarks, verdict
from .faster import Faster
from .findings import Irregularity, findings, sized
from .hypotheses import missing_ports
from .posterior import Observed
from .sensitivity import Effect
from .suspects import LEFT, SURE, CauseSearch, Suspect, stated, suspects
from .system import FEW_NODES, System, few
from .verdict import LogVerdict, Point

SHOWN = 5  # hypotheses
LARGE = 8 << 30  # bytes at which a machine with a library has its rate for large sizes
SIZES, SIZES_OF_MANY = 10, 6  # that are simulated, of few nodes and of many
MANY = 4  # nodes
SHAPE = 4  # sizes that have a shape
BETWEEN = 3  # slow sizes that are simulated besides
NEARLY = 0.92  # of the healthy rate
AT_LIMIT = 0.98  # of the time that links need at best: rows are printed with two or three digits
WIDER = 4  # times the largest size, for the same of others, whose simulation takes its time


@dataclass(frozen=True)
class Answer:
    """All that is said of one table of a log."""

    table: LogTable
    system: System
    why: str  # how the machine was found
    choice: str  # what the library does at the largest size
    measured: Mapping[int, float]  # all sizes: us
    points: Sequence[Point]  # some of them, against the healthy machine
    verdict: LogVerdict
    distance: float  # to the healthy machine
    suspects: Sequence[Suspect]
    nearest: Sequence[Suspect]  # where nothing is near enough for a cause
    binds: Sequence[Effect]
    binds_nodes: int  # of a machine with so many nodes
    findings: Sequence[Irregularity] = ()
    remarks: Sequence[str] = ()
    wrong: str | None = None  # what is said first where results were wrong
    flaws: Sequence[str] = ()  # those of the remarks for which a gate fails
    faster: Faster | None = None  # what a search found at the largest size

    @property
    def failures(self) -> list[str]:
        """Why a gate does not let it through, in sentences; empty if it does."""
        judged = self.verdict
        slow = [] if judged.passes else [f"The verdict is {judged.word}: {judged.why}."]
        stated = [f"The log states a fault: {one.stated}." for one in self.suspects if one.stated]
        return [*([self.wrong] if self.wrong else []), *slow, *(stated if judged.word != "fine" else []), *self.flaws]

    @property
    def passes(self) -> bool:
        """Whether it passes `--gate`."""
        return not self.failures

    @property
    def worst_size(self) -> int:
        """The size farthest from healthy among those that decide the verdict; the largest if nothing is suspected.

        Start-ups of small sizes differ between sites, and under a fault of links they are those of a healthy machine.
        """
        if not self.suspects:
            return self.points[-1].size
        deciding = (*self.verdict.judged, *self.verdict.slow)
        return max(deciding, key=lambda point: abs(math.log(point.time / point.healthy))).size


def tables(log: Log) -> list[LogTable]:
    """The tables of a log that can be explained: of a known collective, with times."""
    known = set(COLLECTIVES.values())
    return [
        table
        for table in log.tables
        if table.collective in known
        and table.quantity == "collective"
        and any(row.time and row.size for row in table.rows)
    ]


def answers(
    log: Log, chosen: Sequence[LogTable], machine: str | None, variant: Variant, ranks: int | None,
    search_s: float = 0, *, causes: bool = True,
) -> list[Answer]:  # fmt: skip
    """What is to be said of tables; those of equal tests share what is simulated.

    Args:
        log: the log that they are of.
        chosen: some of `tables(log)`.
        machine: a described machine or the path of a machine file; None: from the devices in the log.
        variant: nodes (None: from the log), network (None: what machines of this generation mostly have), and what
            the machine never had.
        ranks: how many; None: from the log.
        search_s: how long to search for a faster schedule of each.
        causes: whether to simulate faults; without them only the verdict is complete.

    Raises:
        UsageError: the log does not say enough, or no described machine is like it.
    """
    made: list[Answer] = []
    said: dict[tuple[object, ...], Answer] = {}
    known: dict[tuple[object, ...], tuple[System, str, bool, Facts]] = {}
    for table in chosen:
        test = (table.collective, table.ranks, table.nodes, table.devices)
        if test not in known:
            system, why, guessed = _system(log, table, machine, variant, ranks)
            system = system.having(without=variant.without, degrade=variant.degrade)
            facts = replace(log.facts, measured=links.shares(log.links, system.machine, system.variant))
            known[test] = (system, why, guessed, facts)
        system, why, guessed, facts = known[test]
        equal = replace(table, rows=()), *(astuple(replace(row, line=0)) for row in table.rows)
        if equal not in said:
            found = explained(table, system, why, facts, guessed=guessed, causes=causes)
            said[equal] = replace(found, faster=_searched(found, search_s)) if search_s else found
        made.append(replace(said[equal], table=table))
    return made


def _searched(found: Answer, search_s: float) -> Faster | None:
    system = found.system
    launch_ps = (system.described.library() or {"launch_ps": 0})["launch_ps"]
    return faster.search(
        system.machine, system.variant, system.collective, system.ranks, found.points[-1].size, search_s, launch_ps
    )


def explained(
    table: LogTable, system: System, why: str, facts: Facts | None = None, *, guessed: bool = False, causes: bool = True
) -> Answer:
    """What is to be said of a table that was measured on a system.

    Args:
        table: the table.
        system: as it should be.
        why: how that is known.
        facts: what else the log says; None: nothing.
        guessed: whether its network is assumed.
        causes: whether to simulate faults.
    """
    facts = facts or Facts()
    measured = measured_times(table, system.ranks)
    sizes = few(measured, SIZES if system.nodes <= FEW_NODES else SIZES_OF_MANY)
    points = [_point(system, size, measured[size]) for size in sizes]
    points = sorted([*points, *(_point(system, size, measured[size]) for size in _slow_between(measured, points))],
                    key=lambda point: point.size)  # fmt: skip
    curve = {point.size: point.healthy for point in points}
    last = sizes[-1]
    irregular = findings(measured, curve)
    reduced = system.reduced
    binds = reduced.binds(last)[:SHOWN]
    assumed = remarks.assumed(binds)
    judged = verdict.of(
        points, _large_rate(system, last), by_library=_by_library(system),
        assumed=assumed is not None or system.machine.startswith(machines.ASSUMED),
    )  # fmt: skip
    by_ports = _by_ports(system, facts, points, assumed=assumed is not None) if guessed and not judged.passes else None
    judged = by_ports.onto(judged) if by_ports else judged
    # Links bound a plain message; a collective is bounded by its algorithm as well, so a faster one is odd.
    odd = judged.word == "faster than expected" and not judged.small
    least = system.least_us(last) if odd and system.collective == "sendrecv" else None
    if least and measured[last] >= least * AT_LIMIT:
        judged = replace(judged, word="fine", rule="more than the model has, and no more than the links carry")
    if judged.word != "unsure" or not (guessed or assumed):  # else the healthy times are in doubt at all sizes
        one_process = system.one_process or (facts.per_process or 1) > 1
        judged = verdict.in_parts(judged, points, [one.size for one in irregular], one_process=one_process)
    # Ports that were measured below an assumed rate may be healthy ports of another network.
    other_ports = guessed and facts.measured.get("port", (1.0, 1.0))[0] < links.FINE["port"]
    guessed &= judged.word != "fine" and any(one.key.startswith("fabric.links.port.") for one in binds[:1])
    if guessed and judged.word == "faster than expected":
        judged = replace(judged, word="unsure", rule="faster than expected, and the network is assumed")
    if judged.word == "faster than expected" and assumed and assumed.key.startswith("fabric.transport.host_"):
        rule = "more than host memory is assumed to carry, as where a driver gives such GPUs peer access"
        judged = replace(judged, word="unsure", rule=rule)
    log = Observed(measured, curve, judged.reached)
    apart = log.fit(curve)[1]
    doubtful = judged.word == "unsure" and (assumed is not None or guessed) and (by_ports is None or by_ports.fine)
    well = judged.word == "fine" and judged.share >= verdict.FINE
    slow = any(point.time > verdict.SLOW * point.healthy for point in points)
    search, named, nearest = CauseSearch(log, system, by_ports is not None), [], []
    if causes and doubtful:
        named = list(filter(None, [stated(search, facts)]))
    elif causes and not (well and (assumed or not slow)):
        named, nearest = suspects(search, facts, slow=judged.word != "fine")
    guessed &= not any(one.stated for one in named[:1])
    doubted = [remarks.other_ports(system, last, measured[last])] if guessed or other_ports else []
    return Answer(
        table, system, why, system.time(last).choice, measured, points, judged, apart, named[:SHOWN], nearest,
        binds, reduced.nodes, irregular,
        [*doubted, *remarks.remarks(facts, table, system, binds)], remarks.wrong(table),
        remarks.flaws(facts, table, system),
    )  # fmt: skip


@dataclass(frozen=True)
class _ByPorts:
    """The verdict on an assumed machine whose nodes have no more network ports than the log lists."""

    count: int
    verdict: LogVerdict

    @property
    def fine(self) -> bool:
        return self.verdict.word in ("fine", "faster than expected")

    def onto(self, judged: LogVerdict) -> LogVerdict:
        """The verdict on the machine with all ports, with this one."""
        rule = (
            f"{self.verdict.share:.0%} of that with the {units.counted(self.count, 'network port')} that the log lists "
            f"for a node, {'which is fine if it has no more' if self.fine else self.verdict.rule}"
        )
        return replace(judged, word="unsure" if self.fine else self.verdict.word, rule=rule)


def _by_ports(system: System, facts: Facts, points: Sequence[Point], *, assumed: bool) -> _ByPorts | None:
    listed = missing_ports.as_listed(system, facts)
    if listed is None:
        return None
    count, own = listed
    its = [_point(own, point.size, point.time) for point in points]
    large = _large_rate(own, its[-1].size)
    return _ByPorts(count, verdict.of(its, large, by_library=_by_library(own), assumed=assumed))


def _point(system: System, size: int, time_us: float) -> Point:
    healthy = system.time(size).time_us
    return Point(
        size, time_us, bus_rate(system, size, time_us), healthy, bus_rate(system, size, healthy),
        tolerance.of(system.machine, system.fabric, system.collective, system.nodes, size),
        tolerance.spread(system.nodes, size),
    )  # fmt: skip


def _slow_between(measured: Mapping[int, float], points: Sequence[Point]) -> list[int]:
    """Sizes between the points that seem far below the median share, the worst few.

    The healthy time is taken from the points around, so it is only good enough to choose what to simulate.
    """
    known = [math.log(point.size) for point in points]
    shares = [math.log(point.share) for point in points]
    off = {
        size: float(np.interp(math.log(size), known, [math.log(point.healthy) for point in points])) - math.log(time)
        for size, time in measured.items()
        if size not in {point.size for point in points}
    }
    usual = statistics.median(shares)
    low = [size for size, share in off.items() if share < usual + math.log(verdict.FAR_BELOW)]
    return sorted(low, key=lambda size: off[size])[:BETWEEN]


def _by_library(system: System) -> bool:
    """Whether a library for GPUs or one of MPI runs it."""
    return system.described.library() is not None or mpi.serves(system.described, system.collective)


def _large_rate(system: System, last: int) -> float:
    """The healthy rate for large sizes, 10^9 B/s."""
    sent = system.collective in ("alltoall", "gather", "scatter", "sendrecv")
    plain = sent or system.described.library() is None
    size = max(last, WIDER * last if plain else LARGE)
    curve = system.times([size])
    return bus_rate(system, size, curve[size]) if curve else 0.0


def binds_in_words(answer: Answer) -> str:
    """What the effects of numbers are of."""
    few_nodes = f", with {answer.binds_nodes} nodes" if answer.binds_nodes < answer.system.nodes else ""
    return f"what binds a healthy machine at {units.format_size(answer.points[-1].size)}{few_nodes}"


def heading(answer: Answer) -> str:
    """What its hypotheses are for."""
    if answer.verdict.word != "fine":
        return "simulated causes of your numbers, what the log states and the likeliest first"
    large = "" if answer.verdict.small else "your large sizes are fine, and "
    return f"{large}the model is less certain of small sizes; simulated causes of slow small ones"


def apart_in_words(factor: float) -> str:
    """The distance of two curves."""
    return f"{factor - 1:.0%}" if factor < 2 else f"a factor of {_times(factor)}"


def _times(factor: float) -> str:
    return f"{factor:.2g}" if factor < 100 else f"{factor:,.0f}"


def verdict_in_words(answer: Answer) -> list[str]:
    """The verdict in sentences: large sizes, small ones, the curve, and what the log says."""
    last, judged = answer.points[-1], answer.verdict
    sizes = sized(judged.judged[0].size) + (" and larger sizes" if len(judged.judged) > 1 else "")
    first = (
        f"Verdict: {judged.word}. At {sized(last.size)} you have {format_gb_per_s(last.busbw)}, a healthy "
        f"machine has {format_gb_per_s(last.healthy_busbw)} ({answer.choice}). At {sizes} yours has {judged.share:.0%} "
        f"of its rate: {judged.why}. busbw is {bus_factor(answer.system):.4g} x size / time."
    )
    low, high = last.range
    ranged = (
        f"Of published systems with {'several nodes' if answer.system.nodes > 1 else 'one node'}, eight in ten are "
        f"between {format_gb_per_s(low)} and {format_gb_per_s(high)} at {sized(last.size)}, where the model has "
        f"{format_gb_per_s(last.healthy_busbw)}."
    )
    small = (
        f"This is a verdict on small sizes only: at {sized(last.size)} a healthy machine reaches "
        f"{judged.reached:.0%} of its rate for large sizes"
        + (", and start-ups differ between sites by a factor of two" if _by_library(answer.system) else "")
        + ". Measure larger sizes."
    )
    return [
        first, *([ranged] if _by_library(answer.system) else []), *([small] if judged.small else []), *_small(answer),
        *(one.words for one in answer.findings),
        *_rest(answer), *answer.remarks,
    ]  # fmt: skip


def _rest(answer: Answer) -> list[str]:
    """What many nodes that are nearly fine often lack."""
    nodes, judged = answer.system.nodes, answer.verdict
    if judged.word != "fine" or judged.small or nodes < MANY or judged.share >= NEARLY:
        return []
    return [
        f"That is within the model's error. On {nodes} nodes more channels and queue pairs often give the rest: try "
        "NCCL_MIN_CTAS=24 and NCCL_IB_QPS_PER_CONNECTION=2."
    ]


def doubts(answer: Answer) -> list[str]:
    """How sure the first hypothesis is, in sentences."""
    if not answer.suspects:
        if answer.verdict.passes or (answer.verdict.word == verdict.IN_PARTS and answer.findings):
            return []
        far = "; ".join(f"{one.cases[0].what} ({apart_in_words(one.distance)} away)" for one in answer.nearest)
        nearest = f"The nearest simulated faults are no causes: {far}." if far else "No simulated fault comes near."
        return [f"Your numbers are not explained by links, ports or protocols. {nearest}"]
    first = answer.suspects[0]
    unsure = ["Whether anything is wrong is unsure; the probabilities are for the case that something is."]
    return [*(unsure if answer.verdict.word == "unsure" else ()), *_indistinct(first), *_weak(answer, first)]


def _indistinct(first: Suspect) -> list[str]:
    """What would tell the faults of a place apart."""
    if len(first.cases) < 2:
        return []
    kinds = ", ".join(dict.fromkeys(case.kind for case in first.cases))
    tells = "; ".join(dict.fromkeys(f"{case.kind}: {case.check.split('; ')[0]}" for case in first.cases))
    return [f"Indistinguishable by this log: {kinds}. What tells them apart is {tells}."]


def _weak(answer: Answer, first: Suspect) -> list[str]:
    if first.distance > LEFT:
        return [f"The first cause is weak: its simulation leaves {apart_in_words(first.distance)} unexplained."]
    if first.probability >= SURE:
        return []
    shape = f"{len(answer.points)} sizes have no shape. " if len(answer.points) < SHAPE else ""
    return [
        f"Not certain: the first cause has {first.probability:.0%}, because others give such times, too. {shape}Check "
        "all; a log of 8 bytes to 8 GiB with NCCL_DEBUG=INFO says more."
    ]


def _small(answer: Answer) -> list[str]:
    """What sizes say that do not decide the verdict."""
    judged = answer.verdict
    decided = judged.judged[0].size if judged.word in ("suspicious", "broken") else answer.points[-1].size + 1
    slow = [one for one in answer.points if one.size < decided and one.is_slow]
    if not slow:
        return []
    most = min(slow, key=lambda point: point.share)
    first = (
        f"Some sizes are slow: at {sized(most.size)} yours takes {_times(1 / most.share)} times as long as a healthy "
    )
    below = [f"{sized(one.size)} ({one.least:.0%})" for one in slow if one.tolerance.known]
    floors = f" Below the floors of `linkwright expect`, shares of the healthy rate: {', '.join(below)}."
    return [f"{first}one.{floors if below else ''}"]


def measured_times(table: LogTable, ranks: int) -> dict[int, float]:
    """Size -> time, out of place where both were measured; the median of several rows."""
    in_place = all(row.in_place for row in table.rows)
    scale = ranks if table.per_rank else 1
    times: dict[int, list[float]] = {}
    for row in table.rows:
        if row.time and row.size and row.in_place is in_place:
            times.setdefault(row.size * scale, []).append(row.time)
    return {size: statistics.median(its) for size, its in sorted(times.items())}


def bus_rate(system: System, size: int, time_us: float) -> float:
    """10^9 B/s as nccl-tests reports them."""
    return size / time_us / KILO * bus_factor(system)


def bus_factor(system: System) -> float:
    """busbw over size / time."""
    return checks.bus_factor(system.collective, system.ranks)


def _system(
    log: Log, table: LogTable, machine: str | None, variant: Variant, ranks: int | None
) -> tuple[System, str, bool]:
    """The system, how it was found, and whether its network is assumed."""
    nodes, fabric = variant.nodes or table.nodes or 1, variant.fabric
    if variant.ranks_per_node:
        count = nodes * variant.ranks_per_node
        if ranks not in (None, count):
            raise UsageError(
                f"--ranks {ranks}: {variant.ranks_per_node} on each of {nodes} nodes are {count}; omit --ranks"
            )
        ranks = count
    given = [
        f"{count} {what}, as given; the log has {stated}"
        for what, count, stated in (("ranks", ranks, table.ranks), ("nodes", variant.nodes, table.nodes))
        if count and stated and count != stated
    ]
    ranks = ranks or table.ranks
    if ranks is None:
        raise UsageError("the log does not state the number of ranks; give it with --ranks")
    if ranks % nodes:
        raise UsageError(
            f"{ranks} ranks on {nodes} nodes: every node must have the same number; correct --ranks or --nodes"
        )
    if ranks > 1 and not (variant.nodes or table.nodes):
        given.append("one node is assumed, because the log lists no hosts; if there were more, give --nodes")
    facts = log.facts
    names = table.devices or tuple(facts.devices)
    if machine is None and len(names) != 1:
        said = f"names {len(names)} kinds of devices" if names else "names no device"
        wrong = f"{found} Besides, " if (found := remarks.wrong(table)) else ""
        raise UsageError(
            f"{wrong}the log {said}, so the machine is unknown; name it with --on (`linkwright list machines`)"
        )
    words = names[0] if machine is None else machine
    collective = table.collective or ""
    # The OFI plugin serves EFA and Slingshot; only its provider says which.
    plugin = {None: "", "AWS Libfabric": "plugin ofi"}.get(facts.network, f"plugin {facts.network}")
    found = settle(Condition("log", words, ranks, nodes, collective, plugin=plugin))
    if isinstance(found, Refusal):
        if machine is None:
            raise UsageError(f"{found.reason}; name a machine with --on (`linkwright list machines`)")
        system = _fitting(_given(machine, nodes, ranks, fabric, collective))
        algorithm, said = _plan(system, facts)
        return system.having(algorithm=algorithm), "; ".join((f"given: {machine}", *given, *said)), False
    setup = found.setup
    name, network = machine or setup.machine, fabric or setup.fabric
    system = _fitting(System(name, setup.nodes, setup.gpus_per_node, network, "", collective))
    algorithm, said = _plan(system, facts, found.version)
    rules = [
        rule for rule in found.rules
        if not (fabric and rule.endswith("mostly has")) and not (facts.version and rule.startswith("version "))
    ]  # fmt: skip
    from_log = [f"from `{names[0]}`"] if machine is None else []
    guessed = nodes > 1 and fabric is None and any(rule.endswith("mostly has") for rule in found.rules)
    if nodes > setup.nodes and (facts.trays is False or facts.setting("NCCL_MNNVL_ENABLE") == "0"):
        said_so = "MNNVL 0" if facts.trays is False else "NCCL_MNNVL_ENABLE=0"
        raise UsageError(
            f"the log says that the NVLink between its {nodes} hosts is not used ({said_so}), so "
            f"they communicate over a network, which {name} does not describe. If that was not meant, see whether IMEX "
            "runs on all hosts (nvidia-imex-ctl -N) and unset NCCL_MNNVL_ENABLE"
        )
    return system.having(algorithm=algorithm), "; ".join([*from_log, *rules, *given, *said]), guessed


def _given(machine: str, nodes: int, ranks: int, fabric: str | None, collective: str) -> System:
    if nodes > 1 and fabric is None:
        raise UsageError(f"{nodes} nodes of {machine}: give their network with --fabric (`linkwright list networks`)")
    return System(machine, nodes, ranks // nodes, fabric, "", collective)


def _fitting(system: System) -> System:
    """The system, if its nodes have as many GPUs as it uses."""
    each = system.described.ranks // system.nodes
    if system.described.library() and system.gpus_per_node > each:
        raise UsageError(
            f"{system.gpus_per_node} ranks on a node, but {system.machine} has {each} GPUs; how many nodes were there? "
            "Give --nodes"
        )
    return system


def _plan(system: System, facts: Facts, assumed: str = "") -> tuple[str, list[str]]:
    """The library's plan of the version in the log, or of the nearest known one, and what is to be said of it."""
    machine, collective = system.described, system.collective
    own = library.default(machine, collective) or next(iter(library.algorithms(machine)), "")
    if not own:
        return "", []
    if facts.version is None:
        return library.nearest(machine, collective, assumed) or own if assumed else own, []
    found = library.nearest(machine, collective, facts.version) if facts.version[0].isdigit() else None
    if found is None or (facts.library or "").lower() != found.partition("-")[0]:
        return own, [f"{facts.library} {facts.version} in the log; {own} is taken, which belongs to {system.machine}"]
    if f"{facts.version}.".startswith(f"{found.partition('-')[2]}."):
        return found, [f"{facts.library} {facts.version} in the log"]
    return found, [f"{facts.library} {facts.version} in the log is taken for {found}, the nearest that is known"]
