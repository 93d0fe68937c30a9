"""From times to rules: from which size on which algorithm, and why.

There are as few rules as the times allow. At each size, every algorithm qualifies that is not *separably* slower than
the fastest: slower by `LEAST_GAIN` or more and, where both were measured, with disjoint intervals. A rule goes on
while one algorithm qualifies at all of its sizes, so noise never switches.

A measured value without an interval, or with a wide one, counts as one of grade `fair`. So no rule names an algorithm
that was measured slower than another one by more than (1 + FAIR) / (1 - FAIR), 22 %, and a rule that rests on such
values says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from linkwright.base.stats.grade import FAIR, precision
from linkwright.executors import is_modelled

# A smaller gain is not worth a rule, however exact the values are.
LEAST_GAIN = 0.02
# Sizes below are alike: latency decides them, so a sweep from here on stands for them.
SMALL_BYTES = 64
# What a reason adds where values have no interval, or a wide one.
ROUGHLY = ", by imprecise values"


@dataclass(frozen=True)
class Time:
    """A time with its 95 % interval, all in ns; `rough` if the interval is assumed, because none is as narrow."""

    value: float
    low: float
    high: float
    rough: bool = False

    @classmethod
    def of(cls, row: dict[str, Any]) -> Time:
        """From a result row."""
        value = row["value"]
        if is_modelled(row["executor"]):
            return cls(value, value, value)
        precise = precision(value, row["ci_low"], row["ci_high"])
        if precise is None or precise > FAIR:
            return cls(value, value * (1 - FAIR), value * (1 + FAIR), rough=True)
        return cls(value, row["ci_low"], row["ci_high"])

    def separably_faster(self, other: Time) -> bool:
        """Whether neither noise nor a trifle explains the difference."""
        return self.high < other.low and other.value >= self.value * (1 + LEAST_GAIN)


BySize = dict[int, dict[str, Time]]


@dataclass(frozen=True)
class Rule:
    """One algorithm for some sizes that follow each other, and why, in words."""

    size_bytes: int  # from which on
    algorithm: str
    why: str
    sizes: tuple[int, ...] = ()  # that have times, in bytes


@dataclass(frozen=True)
class Table:
    """The rules of one collective over one number of ranks, by size."""

    collective: str
    ranks: int
    rules: tuple[Rule, ...]
    times: BySize

    @property
    def least(self) -> int:
        """The smallest size in bytes that has a time; 0 also stands for all below the smallest step of a sweep."""
        return min(self.times) if min(self.times) > SMALL_BYTES else 0

    def since(self, place: int) -> int:
        """The first size in bytes of the rule at `place`."""
        return self.rules[place].size_bytes if place else self.least

    def until(self, place: int) -> int:
        """The last size in bytes of the rule at `place`: up to the next rule, or the largest that has a time."""
        return self.rules[place + 1].size_bytes - 1 if place + 1 < len(self.rules) else max(self.times)


# Collective, algorithm and ranks -> whether the runtime has the algorithm.
Known = Callable[[str, str, int], object]


def tables(rows: Iterable[dict[str, Any]], known: Known, collectives: Iterable[str]) -> list[Table]:
    """The rules that the times in `rows` make, by collective in this order, then by ranks."""
    found: dict[str, dict[int, BySize]] = {}
    for row in rows:
        if row["metric"] != "time" or not row["value"] or not known(row["collective"], row["algorithm"], row["ranks"]):
            continue
        cell = found.setdefault(row["collective"], {}).setdefault(row["ranks"], {}).setdefault(row["size_bytes"], {})
        time = Time.of(row)
        cell[row["algorithm"]] = min(cell.get(row["algorithm"], time), time, key=lambda one: one.value)
    return [
        Table(collective, ranks, tuple(_rules(by_size)), dict(sorted(by_size.items())))
        for collective in collectives
        for ranks, by_size in sorted(found.get(collective, {}).items())
    ]


def _rules(by_size: BySize) -> Iterator[Rule]:
    """The fewest rules under which no size has an algorithm that is separably slower than another one."""
    before = None
    for sizes in _stretches(by_size):
        name = _chosen([by_size[size] for size in sizes])
        if before is None:
            yield Rule(0, name, _first([by_size[size] for size in sizes], name), tuple(sizes))
        else:
            yield Rule(sizes[0], name, _gain(by_size[sizes[0]], name, before), tuple(sizes))
        before = name


def _stretches(by_size: BySize) -> list[list[int]]:
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


def _beaten(time: Time, times: dict[str, Time]) -> bool:
    return any(other.separably_faster(time) for other in times.values())


def _chosen(stretch: list[dict[str, Time]]) -> str:
    """Of the algorithms that qualify at every size, the one with the shortest times on the whole."""
    names = [name for name in stretch[0] if all(name in t and not _beaten(t[name], t) for t in stretch)]
    return min(names, key=lambda name: (geometric_mean(times[name].value for times in stretch), name))


def _first(stretch: list[dict[str, Time]], name: str) -> str:
    """What speaks for the algorithm of the first rule."""
    others = {other for times in stretch for other in times} - {name}
    beaten = [o for o in others if any(o in t and t[name].separably_faster(t[o]) for t in stretch)]
    if not others:
        return "the only one with a time"
    if not beaten:
        return "nothing is separable"
    rough = any(t[o].rough or t[name].rough for o in beaten for t in stretch if o in t)
    return f"separably faster than {len(beaten)} of {len(others)} others{ROUGHLY * rough}"


def _gain(times: dict[str, Time], name: str, before: str) -> str:
    """What speaks for a switch."""
    if before not in times:
        return f"{before} was not timed here"
    rough = times[before].rough or times[name].rough
    return f"{times[before].value / times[name].value - 1:.0%} faster than {before}{ROUGHLY * rough}"
