"""A machine file for the machine of a run: `loggp` with regimes, fitted to its medians.

    1/G, occupancy   n messages in a row by size, in straight lines between change points:
                     T_n / n = start + L / n + occupancy + size / rate
    L, start         the shortest messages: half a ping-pong is start + L, the first line's start is start + L / n
    combine, copy    a few plain algorithms, simulated with everything else fixed, by least squares on
                     the logarithm of the time

In a cluster, ranks of one host have separate values of L, occupancy and 1/G (`[[fabric.level]]`); `start` is software
and the same for all. Each number comes from experiments that isolate it, so its interval is meaningful; only the
arithmetic needs the simulator. Ping-pongs cannot separate the time at the receiver from latency, so it is part of L.
The model omits contention for caches and links, and the location of data: a message that a rank forwards at once, still
in another core's cache, takes longer than predicted, as do long ping-pongs. The predictions of a fit show by how much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import ask
from linkwright.ask.question import Collective, Scheduled
from linkwright.base.errors import StoreError
from linkwright.machines import writer

from .hierarchy import FLAT, Hierarchy
from .machine_file import OWN_MOVES, MachineFile, number
from .points import Point
from .regimes import MIN_POINTS, Fit, Regime, regimes
from .search import constants, with_intervals

# Faster than any memory: the rate of a line without a slope, which is unknown.
FASTEST_NS_PER_BYTE = 1e-4
# Where the search for arithmetic begins: a start in ns, and ns per byte.
_BEGIN = {"combine_start": 20.0, "combine_rate": 0.1, "copy_start": 20.0, "copy_rate": 0.1}
_LEAST = {key: FASTEST_NS_PER_BYTE if key.endswith("rate") else 0.1 for key in _BEGIN}


@dataclass(frozen=True)
class Line:
    """One regime: how long a message of at least `from_bytes` occupies its source."""

    from_bytes: int
    occupancy: Fit  # in addition to `start` and the time of the bytes
    ns_per_byte: Fit


@dataclass(frozen=True)
class Level:
    """What messages cost between ranks that share a level of the machine."""

    name: str
    latency: Fit
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Model(MachineFile):
    """The numbers of a machine, each with its interval; times in ns, rates as ns per byte."""

    name: str
    of: str
    run: str
    ranks: int
    start: Fit
    latency: Fit
    lines: tuple[Line, ...]
    arithmetic: dict[str, Fit]
    nearer: tuple[Level, ...] = ()  # ranks that share a level, nearest first
    hierarchy: Hierarchy = FLAT
    kind: str = "loggp"

    @property
    def release_ns(self) -> float:
        """How much later than the last rank to arrive the others leave a barrier."""
        return self.start.value + self.latency.value

    def document(self, open_size: bool) -> dict[str, Any]:
        """The tables of the file, for any number of ranks or for those of the run."""
        about = f"ranks of a level are interchangeable in this model; run {self.run} had {self.ranks}"
        gap = writer.number(0, "ns", "assumed", "not told apart from start by messages in a row")
        levels = [{"name": level.name, **_link(level.latency, level.lines, self.run)} for level in self.nearer]
        fabric = {"kind": "loggp", "gap": gap, **_link(self.latency, self.lines, self.run)}
        fabric |= {"level": levels} if levels else {}
        fits = {"start": self.start, "notice_start": self.start, **self.arithmetic}
        return {
            "machine": self.about(
                f"{self.of}, fitted to what was measured of it",
                "LogGP with regimes by message size. Without contention: too fast where ranks share a cache or a link.",
            ),
            "level": replace(self.hierarchy, ranks=self.ranks).tables(self.run, open_size),
            "endpoints": {"count": "any" if open_size else self.ranks, "source": about},
            "fabric": fabric,
            "path": {
                "message": {
                    "summary": "a copy by the sender's processor; the receiver combines", **OWN_MOVES,
                    **{key: _number(key, fit, self.run) for key, fit in fits.items()},
                }
            },
        }  # fmt: skip

    def parameters(self) -> list[tuple[str, Fit, str]]:
        """(key, fit, unit) of every fitted number, as they stand in the file."""
        found = [("start", self.start, "ns")]
        links = [(f"@{level.name}", level.latency, level.lines) for level in self.nearer]
        for at, latency, lines in [*links, ("", self.latency, self.lines)]:
            found.append((f"latency{at}", latency, "ns"))
            for line in lines:
                of = f"{at} from {line.from_bytes} B" if line.from_bytes else at
                found += [(f"occupancy{of}", line.occupancy, "ns")] if line.from_bytes or line.occupancy.value else []
                found.append((f"bandwidth{of}", line.ns_per_byte, "ns/B"))
        units = {"start": "ns", "rate": "ns/B"}
        return found + [(key, fit, units[key.split("_")[1]]) for key, fit in self.arithmetic.items()]


def _link(latency: Fit, lines: Sequence[Line], run: str) -> dict[str, Any]:
    """What a message costs, in regimes by size."""
    first, *more = lines
    source = f"change point of messages in a row by size, run {run}"
    regimes = [
        {
            "from": writer.number(line.from_bytes, "B", "fitted", source),
            "occupancy": _number("occupancy", line.occupancy, run),
            "bandwidth": _number("bandwidth", line.ns_per_byte, run),
        }
        for line in more
    ]
    return {
        "latency": _number("latency", latency, run),
        "bandwidth": _number("bandwidth", first.ns_per_byte, run),
        **({"occupancy": _number("occupancy", first.occupancy, run)} if first.occupancy.value else {}),
        **({"regime": regimes} if regimes else {}),
    }


def _number(key: str, fit: Fit, run: str) -> dict[str, Any]:
    rate = key.endswith(("bandwidth", "rate"))
    if rate:
        fit = Fit(*(max(ns, FASTEST_NS_PER_BYTE) for ns in (fit.value, fit.low, fit.high)))
    return number(fit, _EVIDENCE[key], run, rate=rate)


_EVIDENCE = {
    "start": "short messages in a row against half a ping-pong",
    "notice_start": "a notice starts like a message: short messages in a row against half a ping-pong",
    "latency": "half a ping-pong of short messages",
    "occupancy": "messages in a row by size",
    "bandwidth": "messages in a row by size",
    **dict.fromkeys(_BEGIN, "plain algorithms by size"),
}


def fit(points: Sequence[Point], name: str, of: str, run: str, hierarchy: Hierarchy = FLAT) -> Model:
    """The model of the machine with these points, fitted to those that are `seen`."""
    seen = [point for point in points if point.seen]
    by_distance = {d: [p for p in seen if _distance(p, hierarchy) == d] for d in hierarchy.distances}
    sweeps = {d: (_sweep(its, "ping_pong"), _sweep(its, "pairs")) for d, its in by_distance.items()}
    sweeps = {d: pair for d, pair in sweeps.items() if pair[0] and len(pair[1]) >= MIN_POINTS} or sweeps
    nearest, *farther = sweeps
    ping_pongs, rows = sweeps[nearest]
    if not ping_pongs or len(rows) < MIN_POINTS:
        raise StoreError(
            f"run {run}: {len(ping_pongs)} ping-pongs and {len(rows)} sizes of messages in a row between two ranks are "
            f"seen; 1 and {MIN_POINTS} are needed: run the suite `fit` with a longer --time-budget, or "
            "`dissect` at a higher level"
        )
    found = _regimes(rows)
    start, latency = _short(ping_pongs, found[0], rows[0].question.messages)
    levels = [Level(nearest, latency, _lines(found))]
    levels += [_farther(distance, *sweeps[distance], start) for distance in farther]
    *nearer, last = levels
    ranks = max([point.question.ranks for point in points] + [hierarchy.ranks])
    begin = constants(_BEGIN)
    model = Model(slug(name), of, run, ranks, start, last.latency, last.lines, begin, tuple(nearer), hierarchy)
    return _with_arithmetic(model, [point for point in seen if isinstance(point.question, Collective)])


def slug(name: str) -> str:
    """A name that a machine file may have."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "host"


def simulated_ns(question: Scheduled, machine: _native.Machine, prepared: dict) -> float:
    """Time of an experiment on `machine`; `prepared` keeps schedules between calls."""
    key = question.key
    if key not in prepared:
        prepared[key] = schedules.lowered(schedules.of(question), machine, None)
    return ask(machine, prepared[key], schedules.how(question)).slowest.ns


def _sweep(points: Sequence[Point], pattern: str) -> list[Point]:
    """The longest sweep of a pattern between two ranks, by ascending size."""
    sweeps: dict[tuple, list[Point]] = {}
    for point in points:
        e = point.question
        if e.algorithm_key == pattern and e.ranks == 2 and not e.both_ways and e.size_bytes:
            sweeps.setdefault(point.sweep, []).append(point)
    longest = max(sweeps.values(), key=len, default=[])
    return sorted(longest, key=lambda point: point.question.size_bytes)


def _distance(point: Point, hierarchy: Hierarchy) -> str:
    """What the first two ranks of an experiment share."""
    a, b = (point.question.placement or (0, 1))[:2]
    return hierarchy.shared(a, b)


def _farther(name: str, ping_pongs: list[Point], rows: list[Point], start: Fit) -> Level:
    """Messages between ranks that are farther apart; the nearest ranks have given the software's `start`."""
    found = _regimes(rows)
    own_start, latency = _short(ping_pongs, found[0], rows[0].question.messages)
    # A longer start between these ranks occupies the source, as the bytes do.
    more = max(0.0, own_start.value - start.value)
    beside = Fit(more, max(0.0, own_start.low - start.high), max(more, own_start.high - start.low))
    lines = tuple(replace(line, occupancy=_plus(line.occupancy, beside)) for line in _lines(found))
    return Level(name, latency, lines)


def _plus(a: Fit, b: Fit) -> Fit:
    return Fit(a.value + b.value, a.low + b.low, a.high + b.high)


def _regimes(rows: Sequence[Point]) -> list[Regime]:
    """The regimes of one message of a row, by size."""
    columns = [(p.question.size_bytes, p.question.messages, p.time_ns, p.error_ns) for p in rows]
    sizes, counts, times_ns, errors_ns = np.array(columns, dtype=float).T
    return regimes(sizes, times_ns / counts, errors_ns / counts)


def _short(ping_pongs: Sequence[Point], first: Regime, in_a_row: int) -> tuple[Fit, Fit]:
    """`start` and L of the shortest messages, whose bytes cost less than a tenth of the rest."""
    short = [p for p in ping_pongs if p.question.size_bytes * first.ns_per_byte.value < first.start_ns.value / 10]
    trips = [(p.time_ns / (2 * p.question.messages), p.error_ns / (2 * p.question.messages)) for p in short]
    half, error = np.median(trips or [(first.start_ns.value, first.start_ns.value)], axis=0)
    rest = 1 - 1 / in_a_row if in_a_row > 1 else 0.5  # one message cannot separate the two: halves

    def latency(half_ns: float, line_ns: float) -> float:
        return float(np.clip((half_ns - line_ns) / rest, 0.0, half_ns)) if in_a_row > 1 else half_ns * rest

    row, least = first.start_ns, max(0.0, half - error)
    middle, low, high = latency(half, row.value), latency(least, row.high), latency(half + error, row.low)
    start = Fit(float(half - middle), float(max(0.0, half - high)), float(max(0.0, half - low)))
    return start, Fit(middle, low, high)


def _lines(found: Sequence[Regime]) -> tuple[Line, ...]:
    """Occupancy is the start beyond that of the first line, and at least so large that no longer message is faster."""
    first, *later = found
    lines = [Line(0, Fit(0.0, 0.0, 0.0), first.ns_per_byte)]
    for regime in later:
        before = lines[-1]
        # The first byte is free in loggp, and numbers leave with six digits.
        ends_at = (before.occupancy.value + regime.from_bytes * before.ns_per_byte.value) * (1 + 1e-5)
        least = max(0.0, ends_at - (regime.from_bytes - 1) * regime.ns_per_byte.value * (1 - 1e-5))
        start = regime.start_ns
        ends = (max(least, float(v) - first.start_ns.value) for v in (start.value, start.low, start.high))
        lines.append(Line(regime.from_bytes, Fit(*ends), regime.ns_per_byte))
    return tuple(lines)


def _with_arithmetic(model: Model, points: Sequence[Point]) -> Model:
    """The model with the costs of combining and copying, fitted to plain algorithms."""
    from scipy.optimize import least_squares

    keys, prepared = list(_BEGIN), {}
    if len(points) <= len(keys):
        return model
    errors = np.array([point.error_ns / point.time_ns for point in points])

    def trial(logs: np.ndarray) -> Model:
        return replace(model, arithmetic=constants(dict(zip(keys, np.exp(logs).tolist(), strict=True))))

    def residuals(logs: np.ndarray) -> np.ndarray:
        machine = trial(logs).machine()
        times = [simulated_ns(point.question, machine, prepared) for point in points]
        return np.log(np.array(times) / [point.time_ns for point in points]) / errors

    begin = np.log(list(_BEGIN.values()))
    lowest = np.log(list(_LEAST.values()))
    # Robust: one disturbed experiment must not change the rates of the machine.
    found = least_squares(
        residuals, begin, bounds=(lowest, lowest + np.log(1e8)), loss="soft_l1", diff_step=0.02, max_nfev=60
    )
    return replace(model, arithmetic=with_intervals(keys, found, len(points)))
