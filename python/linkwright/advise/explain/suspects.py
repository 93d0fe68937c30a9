"""Which faults give the numbers of a log: each is simulated, alone and, where one leaves much, two together.

    cases of all hypotheses -> the nearest of each kind, on a few sizes -> whole curves -> distance to the log
    what the log states     -> stands first, and other faults are tried on top of it

The distance of two curves is the root of the mean square of ln(time / time) over all sizes; nothing is fitted. It is
shown as the factor that it stands for: 1.10 is ten percent apart. A verdict on large sizes is explained by large sizes:
there a size weighs as much as it shows the rate of links, because the launch, which decides small ones, differs between
sites by more than most faults change it.
"""

from __future__ import annotations

import math
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
SHAPE = 4  # sizes that have a shape
WHOLE = 6  # sizes of a whole curve
BLURRED = 1.2  # the model's error: with fewer sizes, distances below this are alike
LIGHTEST = 0.25  # weight of a size
FEW_NODES = 4  # faults of a machine with more are simulated on so many
BASES = 2  # of the nearest faults, to have another on top
OTHERS = 1.2  # odds of what is no choice of the library, where only small sizes are slow
SCREENED = 3  # sizes by which kinds are chosen
FOLLOWED = 8  # kinds whose whole curves are simulated
MOST_FAR = 3  # faults to remark where none is a cause
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
    blur: float = 1.0  # distances below this are alike
    odds: float = 1.0  # in this log, besides those of the case

    @property
    def stated(self) -> str:
        """What the log says that proves it; empty where it does not."""
        return self.cases[0].stated

    @property
    def near(self) -> bool:
        """Whether its curve is near enough for a cause."""
        return bool(self.stated) or self.distance <= self.cases[0].within

    @property
    def rank(self) -> float:
        """The distance, as far as it tells faults apart, times how seldom the fault is the cause."""
        return max(self.distance, self.blur) * self.cases[0].odds * self.odds

    @property
    def order(self) -> tuple[bool, float, float]:
        """What the log states comes first, then the nearest, rare faults behind."""
        return not self.stated, self.rank, self.distance


@dataclass(frozen=True)
class Observed:
    """The log that is to be explained.

    Attributes:
        measured: size -> us.
        sizes: those that are simulated.
        judged: those of them that show rates.
        weights: size -> how much it counts.
        healthy: size -> us of the healthy machine.
        reduced: the healthy machine with few nodes.
        choices_first: whether choices of the library are the likeliest causes, because only small sizes are slow.
    """

    measured: Mapping[int, float]
    sizes: Sequence[int]
    judged: Sequence[int]
    weights: Mapping[int, float]
    healthy: Mapping[int, float]
    reduced: System
    choices_first: bool = False

    @property
    def screened(self) -> int:
        """How many sizes choose the kinds that are followed."""
        return SCREENED if len(self.sizes) > SHAPE else 2

    def off(self, times: Mapping[int, float]) -> float:
        """The distance of a simulated curve."""
        return distance(times, self.measured, self.weights)

    def simulated(self, case: Case, sizes: Sequence[int]) -> dict[int, float]:
        """The times of a case. On many nodes a fault of the machine is simulated on few, where it takes as many times
        as long as the healthy machine; what the library chooses depends on how many there are.
        """
        kinds = set(case.kind.split(" + "))
        if case.system.nodes <= FEW_NODES or kinds & {*_OF_A_LAUNCH, "version"}:
            return case.system.times(sizes)
        slow, whole = case.system.having(nodes=FEW_NODES).times(sizes), self.reduced.times(sizes)
        return {size: self.healthy[size] * slow[size] / whole[size] for size in slow.keys() & whole.keys()}

    def suspect(self, case: Case, times: Mapping[int, float]) -> Suspect:
        """A case with its curve."""
        other = self.choices_first and not set(case.kind.split(" + ")) & set(_OF_A_LAUNCH)
        return Suspect(
            (case,), times, self.off(times), 1.0 if len(self.sizes) >= SHAPE else BLURRED, OTHERS if other else 1.0
        )


def distance(
    curve: Mapping[int, float], measured: Mapping[int, float], weights: Mapping[int, float] | None = None
) -> float:
    """Return the factor by which two curves are apart; sizes without a weight count once."""
    by = {size: (weights or {}).get(size, 1.0) for size in curve}
    squares = (by[size] * math.log(time / measured[size]) ** 2 for size, time in curve.items())
    return math.exp(math.sqrt(math.fsum(squares) / math.fsum(by.values())))


def suspects(system: System, facts: Facts, log: Observed, healthy: float) -> tuple[list[Suspect], list[Suspect]]:
    """Return the faults that give the numbers; if there are none, the nearest ones, too far for a cause.

    Args:
        system: as it should be.
        facts: what the log says.
        log: what is to be explained.
        healthy: the distance of the healthy machine.
    """
    proved = _proved(system, facts, log)
    base = proved.cases[0].system if proved else system
    if proved and min(proved.distance, _at(log.judged, proved.times, log.measured)) <= LEFT:
        return [proved], []
    # What the log states holds for every other fault, which is named with it where it matters.
    matters = proved and math.log(proved.distance) < NEARER * math.log(healthy)
    others = (case for case in cases(base, facts) if not case.stated and (len(log.sizes) >= WHOLE or not case.shape))
    others = (case.on_top_of(proved.cases[0]) for case in others) if proved and matters else others
    # On top of what the log states, a fault has to bring the curve nearer.
    before = proved.distance if proved and matters else healthy
    singles = _nearest(others, log)
    nearer = [one for one in singles if math.log(one.distance) < NEARER * math.log(before)]
    found = [*([proved] if proved and matters else []), *nearer]
    best = min((one.distance for one in found), default=1.0)
    if best > LEFT and not matters and len(log.sizes) >= WHOLE and system.nodes <= FEW_NODES:
        found += _doubles(singles, facts, log, best)
    ranked = _merged(found)
    listed = [one for one in ranked if one.near]
    far = [] if listed else [one for one in ranked if one.cases[0].within >= WITHIN]
    return listed, sorted(far, key=lambda one: one.distance)[:MOST_FAR]


def _at(sizes: Sequence[int], curve: Mapping[int, float], measured: Mapping[int, float]) -> float:
    """The distance at some sizes alone."""
    some = {size: curve[size] for size in sizes if size in curve}
    return distance(some, measured) if some else math.inf


def _proved(system: System, facts: Facts, log: Observed) -> Suspect | None:
    """All that the log states, at once."""
    found: Suspect | None = None
    seen: set[str] = set()
    while True:
        base = found.cases[0].system if found else system
        stated = [case for case in cases(base, facts) if case.stated and case.kind not in seen]
        nearest = _nearest(stated, log)
        if not nearest:
            return found
        seen.add(nearest[0].cases[0].kind)
        if found:
            (case,) = nearest[0].cases
            nearest[0] = replace(nearest[0], cases=(case.on_top_of(found.cases[0]),))
        found = nearest[0]


def _doubles(singles: Sequence[Suspect], facts: Facts, log: Observed, best: float) -> list[Suspect]:
    """Two faults that together are much nearer than each alone: one of the launch on top of one of the nearest, or of
    another of the launch.
    """
    doubles = []
    bases = [one.cases[0] for at, one in enumerate(singles) if at < BASES or one.cases[0].kind in _OF_A_LAUNCH]
    for below in bases:
        above = (
            case.on_top_of(below)
            for case in cases(below.system, facts)
            if case.kind != below.kind and case.kind in _OF_A_LAUNCH and not case.stated
        )
        doubles += _nearest(above, log)
    return [one for one in doubles if math.log(one.distance) < NEARER * math.log(best)]


def _nearest(its: Iterable[Case], log: Observed) -> list[Suspect]:
    """The nearest case of each kind, the nearest kinds first; whole curves of those alone that a few sizes choose."""
    coarse = few(log.sizes, log.screened)
    nearest: dict[str, Suspect] = {}
    for case in its:
        curve = log.simulated(case, coarse)
        if len(curve) < LEAST_SIZES * len(coarse):
            continue
        found = log.suspect(case, curve)
        if case.kind not in nearest or found.distance < nearest[case.kind].distance:
            nearest[case.kind] = found
    chosen = sorted(nearest.values(), key=lambda one: one.order)[:FOLLOWED]
    whole = (log.suspect(one.cases[0], log.simulated(one.cases[0], log.sizes)) for one in chosen)
    return sorted(whole, key=lambda one: one.distance)


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
