"""A log against the healthy machine: how far it is off, and what would give its numbers.

    log -> table -> system (from its devices, or given) -> healthy times -> verdict
                                                        -> each hypothesis, simulated -> distance to the whole curve

The distance of two curves is the root of the mean square of ln(time / time) over all sizes; nothing is fitted. It is
shown as the factor that it stands for: 1.10 is ten percent apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from linkwright import _native
from linkwright.base import units
from linkwright.base.errors import UsageError
from linkwright.base.units import KILO
from linkwright.formats.logs import Log, LogTable
from linkwright.libraries.settings import COLLECTIVES, Condition, Refusal, settle
from linkwright.machines import Variant

from . import faster, verdict
from .faster import Faster
from .hypotheses import Case, cases
from .sensitivity import Effect, effects
from .system import System, few
from .verdict import Point

SHOWN = 5  # hypotheses
NEARER = 0.8  # of the healthy machine's ln(distance), to be a hypothesis
ALIKE = 0.01  # of a time: curves nearer than this are one
LEAST_SIZES = 0.5  # of the sizes that a hypothesis has to serve


@dataclass(frozen=True)
class Suspect:
    """Hypotheses with one simulated curve.

    Attributes:
        cases: what would be wrong; more than one where times cannot tell them apart.
        times: size -> us.
        distance: the factor by which its curve and the log's are apart.
    """

    cases: tuple[Case, ...]
    times: Mapping[int, float]
    distance: float


@dataclass(frozen=True)
class Answer:
    """All that is said of one table of a log."""

    table: LogTable
    system: System
    why: str  # how the machine was found
    choice: str  # what the library does at the largest size
    measured: Mapping[int, float]  # all sizes: us
    points: Sequence[Point]  # some of them, against the healthy machine
    share: float  # of the healthy rate, at the largest sizes
    verdict: str
    distance: float  # to the healthy machine
    suspects: Sequence[Suspect]
    binds: Sequence[Effect]
    faster: Faster | None = None  # what a search found at the largest size

    @property
    def worst_size(self) -> int:
        """The size at which it is the farthest from the healthy machine, if anything is suspected; else the largest."""
        if not self.suspects:
            return self.points[-1].size
        return max(self.points, key=lambda point: abs(math.log(point.time / point.healthy))).size


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


def answer(
    log: Log, table: LogTable, machine: str | None, variant: Variant, ranks: int | None, search_s: float = 0
) -> Answer:
    """What is to be said of a table.

    Args:
        log: the log that it is of.
        table: one of `tables(log)`.
        machine: a described machine or the path of a machine file; None: from the devices in the log.
        variant: nodes (None: from the log), network (None: what machines of this generation mostly have), and what
            the machine never had.
        ranks: how many; None: from the log.
        search_s: how long to search for a faster schedule.

    Raises:
        UsageError: the log does not say enough, or no described machine is like it.
    """
    system, why = _system(log, table, machine, variant.nodes, variant.fabric, ranks)
    found = explained(table, system.having(without=variant.without, degrade=variant.degrade), why)
    return replace(found, faster=_searched(found, search_s)) if search_s else found


def _searched(found: Answer, search_s: float) -> Faster | None:
    system = found.system
    launch_ps = (system.described.library() or {"launch_ps": 0})["launch_ps"]
    return faster.search(
        system.machine, system.variant, system.collective, system.ranks, found.points[-1].size, search_s, launch_ps
    )


def explained(table: LogTable, system: System, why: str) -> Answer:
    """What is to be said of a table that was measured on a system; `why` says how that is known."""
    measured = measured_times(table, system.ranks)
    sizes = few(measured, 10)
    healthy = {size: system.time(size) for size in sizes}
    points = [
        Point(
            size, measured[size], bus_rate(system, size, measured[size]), healthy[size].time_us,
            bus_rate(system, size, healthy[size].time_us),
        )
        for size in sizes
    ]  # fmt: skip
    share = verdict.share(points)
    apart = distance({point.size: point.healthy for point in points}, measured)
    suspects = _suspects(system, measured, sizes) if share < verdict.FINE or apart > 1 / verdict.FINE else []
    last = sizes[-1]
    return Answer(
        table, system, why, healthy[last].choice, measured, points, share, verdict.of(share), apart,
        [one for one in suspects if math.log(one.distance) < NEARER * math.log(apart)][:SHOWN],
        effects(system.described, lambda on: _time_on(system, on, last))[:SHOWN],
    )  # fmt: skip


def _time_on(system: System, machine: _native.Machine, size: int) -> float:
    from linkwright.libraries.times import predicted

    return predicted(machine, system, size).time_us


def heading(answer: Answer) -> str:
    """What its hypotheses are for."""
    if answer.verdict != "fine":
        return "simulated causes of your numbers, the nearest first"
    return (
        "your large sizes are fine, and the model is less certain of small ones; simulated causes of slow small sizes"
    )


def apart_in_words(factor: float) -> str:
    """The distance of two curves."""
    return f"{factor - 1:.0%}" if factor < 2 else f"a factor of {factor:.2g}"


def verdict_in_words(answer: Answer) -> list[str]:
    """The verdict in sentences: of the largest sizes, and of the small ones where these are slow."""
    last = answer.points[-1]
    first = (
        f"Verdict: {answer.verdict}. At {_size(last.size)} you have {last.busbw:.3g} GB/s, a healthy "
        f"machine has {last.healthy_busbw:.3g} ({answer.choice}). At the largest sizes yours has {answer.share:.0%} "
        f"of its rate: {verdict.RULES[answer.verdict]}. busbw is {bus_factor(answer.system):.4g} x size / time."
    )
    return [first, *_small(answer.points)]


def _small(points: Sequence[Point]) -> list[str]:
    """What the largest sizes do not say."""
    slow = [point for point in points[: -verdict.LARGEST] if point.time > verdict.SLOW * point.healthy]
    if not slow:
        return []
    most = max(slow, key=lambda point: point.time / point.healthy)
    times = f"{most.time / most.healthy:.2g} times as long as a healthy one"
    return [f"Smaller sizes are slow: at {_size(most.size)} yours takes {times}."]


def _size(size: int) -> str:
    found = units.format_size(size)
    return f"{found} B" if found.isdigit() else found


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
    known = None if system.collective == "sendrecv" else _native.bus_factor(system.collective, system.ranks)
    return 1.0 if known is None else known


def distance(curve: Mapping[int, float], measured: Mapping[int, float]) -> float:
    """The factor by which two curves are apart."""
    logs = [math.log(time / measured[size]) for size, time in curve.items()]
    return math.exp(math.sqrt(statistics.fmean(x * x for x in logs)))


def _suspects(system: System, measured: Mapping[int, float], sizes: Sequence[int]) -> list[Suspect]:
    """All kinds of hypotheses that can be simulated, the nearest first, each by its nearest case.

    Kinds with one curve cannot be told apart by times: they share a place.
    """
    nearest: dict[str, Suspect] = {}
    for case in cases(system):
        curve = case.system.times(sizes)
        if len(curve) < LEAST_SIZES * len(sizes):
            continue
        found = Suspect((case,), curve, distance(curve, measured))
        if case.kind not in nearest or found.distance < nearest[case.kind].distance:
            nearest[case.kind] = found
    places: list[Suspect] = []
    for one in sorted(nearest.values(), key=lambda one: one.distance):
        same = next((at for at, other in enumerate(places) if _same(one.times, other.times)), None)
        if same is None:
            places.append(one)
        else:
            places[same] = replace(places[same], cases=(*places[same].cases, *one.cases))
    return places


def _same(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """Whether two curves agree wherever both have a time, as well as times of a log can tell."""
    return all(abs(one[size] / other[size] - 1) <= ALIKE for size in one.keys() & other.keys())


def _system(
    log: Log, table: LogTable, machine: str | None, nodes: int | None, fabric: str | None, ranks: int | None
) -> tuple[System, str]:
    ranks, nodes = ranks or table.ranks, nodes or table.nodes or 1
    if ranks is None:
        raise UsageError("the log does not state the number of ranks; give it with --ranks")
    if ranks % nodes:
        raise UsageError(
            f"{ranks} ranks on {nodes} nodes: every node must have the same number; correct --ranks or --nodes"
        )
    facts = log.facts
    names = table.devices or tuple(facts.devices)
    if machine is None and len(names) != 1:
        said = f"names {len(names)} kinds of devices" if names else "names no device"
        raise UsageError(f"the log {said}, so the machine is unknown; name it with --on (`linkwright list machines`)")
    version = f"{facts.library or 'NCCL'} {facts.version}" if facts.version else ""
    words = names[0] if machine is None else machine
    collective = table.collective or ""
    found = settle(Condition("log", words, ranks, nodes, collective, library_version=version))
    if isinstance(found, Refusal):
        if machine is None:
            raise UsageError(f"{found.reason}; name a machine with --on (`linkwright list machines`)")
        return _given(machine, nodes, ranks, fabric, collective, facts.version or ""), f"given: {machine}"
    setup = found.setup
    name, network = machine or setup.machine, fabric or setup.fabric
    system = System(
        name, setup.nodes, setup.gpus_per_node, network, _algorithm(name, found.library, found.version, collective),
        collective,
    )  # fmt: skip
    rules = [rule for rule in found.rules if not (fabric and rule.endswith("mostly has"))]
    return system, "; ".join(([f"from `{names[0]}`"] if machine is None else []) + rules)


def _given(machine: str, nodes: int, ranks: int, fabric: str | None, collective: str, version: str) -> System:
    if nodes > 1 and fabric is None:
        raise UsageError(f"{nodes} nodes of {machine}: give their network with --fabric (`linkwright list networks`)")
    return System(machine, nodes, ranks // nodes, fabric, _of_version(machine, version, collective), collective)


def _of_version(machine: str, version: str, collective: str) -> str:
    """The library's plan whose version the log names, or the machine's own."""
    from linkwright import machines
    from linkwright.libraries import library

    known = library.algorithms(machines.load(machine), collective)
    same = (name for name in known if (of := name.partition("-")[2]) and version.startswith(of))
    return next(same, _algorithm(machine, "", "", collective))


def _algorithm(machine: str, library_key: str, version: str, collective: str) -> str:
    """The library's plan of this version, or the machine's own."""
    from linkwright import machines
    from linkwright.libraries import library

    described = machines.load(machine)
    known = library.algorithms(described, collective)
    wanted = f"{library_key}-{version}"
    return wanted if wanted in known or not known else library.default(described, collective) or known[0]
