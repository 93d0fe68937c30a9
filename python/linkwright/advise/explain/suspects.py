"""Which faults give the numbers of a log: each is simulated, alone and, where one leaves much, two together.

    cases of all hypotheses -> the nearest of each kind, on a few sizes -> whole curves -> distance to the log
    what the log states     -> stands first, and other faults are tried on top of it

The distance of two curves is the root of the mean square of ln(time / time) over all sizes; nothing is fitted. It is
shown as the factor that it stands for: 1.10 is ten percent apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from linkwright.formats.logs import Facts

from .hypotheses import Case, cases
from .hypotheses.kind import WITHIN
from .system import System, few

NEARER = 0.8  # of the healthy machine's ln(distance), to be a hypothesis
ALIKE = 0.01  # of a time: curves nearer than this are one
LEAST_SIZES = 0.5  # of the sizes that a hypothesis has to serve
LEFT = 1.15  # the factor that a single fault may leave, before two are tried
RARE = 1.15  # a common fault comes before a rare one that is nearer by less
SCREENED = 3  # sizes by which kinds are chosen
FOLLOWED = 8  # kinds whose whole curves are simulated
# Faults of the launch, which go together with any other.
_OF_A_LAUNCH = ("algorithm", "protocol", "one process")


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

    @property
    def stated(self) -> str:
        """What the log says that proves it; empty where it does not."""
        return self.cases[0].stated

    @property
    def near(self) -> bool:
        """Whether its curve is near enough for a cause."""
        return bool(self.stated) or self.distance <= self.cases[0].within

    @property
    def order(self) -> tuple[bool, float]:
        """What the log states comes first, then the nearest, rare faults behind."""
        return not self.stated, self.distance * (RARE if self.cases[0].rare else 1.0)


def distance(curve: Mapping[int, float], measured: Mapping[int, float]) -> float:
    """Return the factor by which two curves are apart."""
    logs = [math.log(time / measured[size]) for size, time in curve.items()]
    return math.exp(math.sqrt(statistics.fmean(x * x for x in logs)))


def suspects(
    system: System,
    facts: Facts,
    measured: Mapping[int, float],
    sizes: Sequence[int],
    judged: Sequence[int],
    healthy: float,
) -> tuple[list[Suspect], Suspect | None]:
    """Return the faults that give the numbers, and the nearest one of all, if it is too far for a cause.

    Args:
        system: as it should be.
        facts: what the log says.
        measured: size -> us.
        sizes: those that are simulated.
        judged: those of them that show rates.
        healthy: the distance of the healthy machine.
    """
    proved = _proved(system, facts, measured, sizes)
    base = proved.cases[0].system if proved else system
    if proved and min(proved.distance, _at(judged, proved.times, measured)) <= LEFT:
        return [proved], None
    # What the log states holds for every other fault, which is named with it where it matters.
    matters = proved and math.log(proved.distance) < NEARER * math.log(healthy)
    others = (case for case in cases(base, facts) if not case.stated)
    others = (case.on_top_of(proved.cases[0]) for case in others) if proved and matters else others
    # On top of what the log states, a fault has to bring the curve nearer.
    before = proved.distance if proved and matters else healthy
    nearer = [one for one in _nearest(others, measured, sizes) if math.log(one.distance) < NEARER * math.log(before)]
    found = [*([proved] if proved and matters else []), *nearer]
    best = min((one.distance for one in found), default=1.0)
    if best > LEFT and not matters:
        found += _doubles(found, facts, measured, sizes, best)
    ranked = _merged(found)
    listed = [one for one in ranked if one.near]
    far = [] if listed else [one for one in ranked if one.cases[0].within >= WITHIN]
    return listed, min(far, key=lambda one: one.distance, default=None)


def _at(sizes: Sequence[int], curve: Mapping[int, float], measured: Mapping[int, float]) -> float:
    """The distance at some sizes alone."""
    some = {size: curve[size] for size in sizes if size in curve}
    return distance(some, measured) if some else math.inf


def _proved(system: System, facts: Facts, measured: Mapping[int, float], sizes: Sequence[int]) -> Suspect | None:
    """All that the log states, at once."""
    found: Suspect | None = None
    seen: set[str] = set()
    while True:
        base = found.cases[0].system if found else system
        stated = [case for case in cases(base, facts) if case.stated and case.kind not in seen]
        nearest = _nearest(stated, measured, sizes)
        if not nearest:
            return found
        seen.add(nearest[0].cases[0].kind)
        if found:
            (case,) = nearest[0].cases
            nearest[0] = replace(nearest[0], cases=(case.on_top_of(found.cases[0]),))
        found = nearest[0]


def _doubles(
    found: Sequence[Suspect], facts: Facts, measured: Mapping[int, float], sizes: Sequence[int], best: float
) -> list[Suspect]:
    """Two faults that together are much nearer than each alone: one of the launch on top of one of the nearest."""
    doubles = []
    for below in (one.cases[0] for one in sorted(found, key=lambda one: one.distance)[:2]):
        above = (
            case.on_top_of(below)
            for case in cases(below.system, facts)
            if case.kind != below.kind and case.kind in _OF_A_LAUNCH and not case.stated
        )
        doubles += _nearest(above, measured, sizes)
    return [one for one in doubles if math.log(one.distance) < NEARER * math.log(best)]


def _nearest(its: Iterable[Case], measured: Mapping[int, float], sizes: Sequence[int]) -> list[Suspect]:
    """The nearest case of each kind, the nearest kinds first; whole curves of those alone that a few sizes choose."""
    coarse = few(sizes, SCREENED)
    nearest: dict[str, Suspect] = {}
    for case in its:
        curve = case.system.times(coarse)
        if len(curve) < LEAST_SIZES * len(coarse):
            continue
        found = Suspect((case,), curve, distance(curve, measured))
        if case.kind not in nearest or found.distance < nearest[case.kind].distance:
            nearest[case.kind] = found
    chosen = sorted(nearest.values(), key=lambda one: one.order)[:FOLLOWED]
    whole = [replace(one, times=one.cases[0].system.times(sizes)) for one in chosen]
    return sorted((replace(one, distance=distance(one.times, measured)) for one in whole), key=lambda one: one.distance)


def _merged(found: Iterable[Suspect]) -> list[Suspect]:
    """In their order; kinds with one curve cannot be told apart by times, and share a place unless the log tells."""
    places: list[Suspect] = []
    for one in sorted(found, key=lambda one: one.order):
        same = next((at for at, other in enumerate(places) if _same(one.times, other.times)), None)
        if same is None:
            places.append(one)
        elif not places[same].stated:
            places[same] = replace(places[same], cases=(*places[same].cases, *one.cases))
    return places


def _same(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """Whether two curves agree wherever both have a time, as well as times of a log can tell."""
    return all(abs(one[size] / other[size] - 1) <= ALIKE for size in one.keys() & other.keys())
