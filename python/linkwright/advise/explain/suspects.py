"""Which faults give the numbers of a log: each is simulated, alone and, where one leaves much, two together.

cases of all hypotheses -> the likeliest of each kind, on a few sizes -> whole curves -> likelihood (`posterior`)
likelihood x how common the kind is, over the sum of all and of an unknown fault      -> probability
what the log states                                          -> stands first, and other faults are tried on top
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from linkwright.formats.logs import Facts

from .hypotheses import Case, cases
from .posterior import Observed
from .system import FEW_NODES, System, few

ALIKE = 0.02  # of a time: curves nearer than this are one
# ln of how much more probable a log makes its cause than another one, on average, below which it cannot tell them apart
INDISTINCT = math.log(2)
LEAST_SIZES = 0.5  # of the sizes that a hypothesis has to serve
LEFT = 1.15  # the factor that a single fault may leave, before two are tried
SURE = 0.7  # the probability from which on the first cause is called certain
WHOLE = 6  # sizes of a whole curve
CASES = 2  # of a kind, whose whole curves are simulated
# The factor by which a cause may be apart, and the power of that of the healthy machine: of a fault of a factor of
# ten, three quarters more is known well.
WITHIN, OF_HEALTHY = 1.5, 0.25
# The factor, and the power of that of the healthy machine, by which what the log states brings the curve nearer, to be
# a cause; and the power that it may leave, to stand before itself with another fault on top.
MATTERS, OF_APART, MOSTLY = 1.05, 0.15, 0.5
MOST_NODES = 8  # on which choices of the library are simulated, which depend on how many there are
BASES = 2  # of the likeliest faults, to have another on top
BEHIND = 5.0  # ln(probability) of a kind behind the first, whose whole curve is still simulated
MOST_FAR = 3  # faults to remark where none is a cause
LEAST = 0.01  # of the probability, to be listed
UNKNOWN = 0.1  # how common a fault is that is not simulated, over all that are
# Faults of the launch, which go together with any other.
_CHOICES = ("algorithm", "protocol")
_OF_A_LAUNCH = (*_CHOICES, "one process")
_GIVEN = {"missing ports", *_OF_A_LAUNCH}  # what a site has or a user asked for, rather than what is wrong


@dataclass(frozen=True)
class Suspect:
    """Hypotheses with one simulated curve.

    Attributes:
        cases: what would be wrong; more than one where times cannot tell them apart.
        times: size -> us.
        distance: the factor by which its curve and the log's remain apart.
        weight: ln(likelihood x how common it is).
        probability: among all that were simulated, and an unknown fault; 1 of what the log states.
    """

    cases: tuple[Case, ...]
    times: Mapping[int, float]
    distance: float
    weight: float
    probability: float = 1.0

    @property
    def stated(self) -> str:
        """What the log says that proves it; empty where it does not."""
        return self.cases[0].stated


@dataclass(frozen=True)
class CauseSearch:
    """The log that is to be explained, and what simulates faults for it.

    Attributes:
        log: its times next to those of the healthy machine.
        system: the healthy machine.
        listed: whether its nodes may have no more network ports than the log lists, which are then no fault.
    """

    log: Observed
    system: System
    listed: bool = False

    @property
    def sizes(self) -> list[int]:
        """Those that are simulated."""
        return list(self.log.healthy)

    @property
    def screened(self) -> list[int]:
        """The sizes by which kinds are chosen: the ends, and the one between where the log is farthest off."""

        def off(size: int) -> float:
            return abs(math.log(self.log.measured[size] / self.log.healthy[size]))

        return sorted({*few(self.sizes, 2), max(self.sizes[1:-1], key=off, default=self.sizes[-1])})

    @functools.cached_property
    def _known(self) -> dict[tuple[object, ...], dict[int, float]]:
        return {}

    def _times(self, system: System, sizes: Sequence[int]) -> dict[int, float]:
        """Size -> us; what two systems do alike is simulated once: Ring by choice, by force, and of other versions."""
        own = system.having(algorithm=system.algorithm.partition("-")[0])
        found: dict[int, float] = {}
        for size in sizes:
            chosen = system.choice(size)
            key = (own, size, chosen) if chosen else (system, size)
            if key not in self._known:
                self._known[key] = system.times([size])
            found |= self._known[key]
        return found

    @functools.cached_property
    def _reduced(self) -> dict[int, System]:
        return {nodes: self.system.having(nodes=nodes) for nodes in (FEW_NODES, MOST_NODES)}

    def simulated(self, case: Case, sizes: Sequence[int], *, screening: bool = False) -> dict[int, float]:
        """The times of a case.

        On many nodes it is simulated on fewer, and takes as many times as long as the healthy machine as it does
        there: rates of links and ports weigh on each node alike. Choices of the library depend on the number of nodes
        (steps of a ring), so they are only screened on few.
        """
        choice = set(case.kind.split(" + ")) & {*_OF_A_LAUNCH, "version"}
        nodes = min(self.system.nodes, MOST_NODES if choice and not screening else FEW_NODES)
        if nodes == self.system.nodes:
            return self._times(case.system, sizes)
        slow = self._times(case.system.having(nodes=nodes), sizes)
        whole = self._times(self._reduced[nodes], sizes)
        return {size: self.log.healthy[size] * slow[size] / whole[size] for size in slow.keys() & whole.keys()}

    def suspect(self, case: Case, times: Mapping[int, float], common: float = 0.0) -> Suspect:
        """A case with its curve; `common` is ln(how common it is), besides that of its kind."""
        found, apart = self.log.fit(times, case.strength, case.noise)
        return Suspect((case,), times, apart, found + math.log(case.common) + common)


def suspects(asked: CauseSearch, facts: Facts, *, slow: bool) -> tuple[list[Suspect], list[Suspect]]:
    """Return the faults that give the numbers; if there are none, the nearest ones, too far for a cause.

    Args:
        asked: the log that is to be explained.
        facts: what else it says.
        slow: whether its verdict is not fine, so that a cause need not be likelier than the healthy machine.
    """
    healthy, apart = asked.log.fit(asked.log.healthy)
    proved = stated(asked, facts)
    if proved and proved.distance <= LEFT:
        return [proved], []
    # What the log states holds for every other fault, which is named with it.
    base = proved.cases[0] if proved else None
    others = [case for case in cases(base.system if base else asked.system, facts) if not case.stated]
    singles = _likeliest([case.on_top_of(base) for case in others] if base else others, asked)
    found = [*singles, *([] if base else _doubles(singles, facts, asked))]
    ranked = _merged(_weighed(found, healthy), asked.log)
    before = proved.weight if proved else healthy
    # A second fault on top of one that is likelier by itself says nothing new.
    alone = {case.kind: one.weight for one in ranked for case in one.cases}
    near = [
        one
        for one in ranked
        if one.distance <= _within(one, apart)
        and one.probability >= LEAST
        and all(alone.get(kind, one.weight) <= one.weight for kind in one.cases[0].kind.split(" + "))
    ]
    better = [one for one in near if one.weight > before]
    # Something is wrong, so what comes nearer than a healthy machine is listed, too, if nothing proves another cause.
    causes = better if proved or not slow else [one for one in near if one.weight > before or one.distance < apart]
    first = [proved] if proved else []
    given = proved and asked.listed and set(proved.cases[0].kind.split(" + ")) <= _GIVEN
    behind = proved and (given or proved.distance > apart**MOSTLY)
    listed = [*causes, *first] if behind else [*first, *causes]
    far = [] if listed else [one for one in ranked if one.distance < apart and not _two(one)]
    return listed, sorted(far, key=lambda one: one.distance)[:MOST_FAR]


def stated(asked: CauseSearch, facts: Facts) -> Suspect | None:
    """Return all faults that the log states, if they bring the healthy curve nearer to its own."""
    proved = _proved(asked, facts)
    apart = asked.log.fit(asked.log.healthy)[1]
    return proved if proved and proved.distance * max(MATTERS, apart**OF_APART) <= apart else None


def _within(one: Suspect, apart: float) -> float:
    """The factor by which a cause may be apart; two faults at once would fit nearly any curve that is far off."""
    return WITHIN if _two(one) else max(WITHIN, apart**OF_HEALTHY)


def _two(one: Suspect) -> bool:
    return " + " in one.cases[0].kind


def _weighed(found: Sequence[Suspect], healthy: float) -> list[Suspect]:
    """With probabilities, among each other, the healthy machine and an unknown fault."""
    unknown = math.log(UNKNOWN * math.fsum(one.cases[0].common for one in found)) if found else 0.0
    most = max([healthy, unknown, *(one.weight for one in found)])
    whole = math.fsum(math.exp(weight - most) for weight in (healthy, unknown, *(one.weight for one in found)))
    return [replace(one, probability=math.exp(one.weight - most) / whole) for one in found]


def _proved(asked: CauseSearch, facts: Facts) -> Suspect | None:
    """All that the log states, at once."""
    found: Suspect | None = None
    seen: set[str] = set()
    while True:
        base = found.cases[0] if found else None
        proving = [
            case
            for case in cases(base.system if base else asked.system, facts)
            if case.stated and case.kind not in seen
        ]
        likeliest = _likeliest(proving, asked)
        if not likeliest:
            return found
        (case,) = likeliest[0].cases
        seen.add(case.kind)
        found = replace(likeliest[0], cases=(case.on_top_of(base) if base else case,))


def _doubles(singles: Sequence[Suspect], facts: Facts, asked: CauseSearch) -> list[Suspect]:
    """Two faults where one leaves much: one of the launch on top of one of the likeliest, or of a choice.

    A choice is one of an algorithm and a protocol, so another one replaces it.
    """
    left = min((asked.log.fit(one.times)[1] for one in singles), default=1.0)
    if left <= LEFT or len(asked.sizes) < WHOLE or asked.system.nodes > FEW_NODES:
        return []
    bases = [one.cases[0] for at, one in enumerate(singles) if at < BASES or one.cases[0].kind in _CHOICES]
    found = []
    for below in bases:
        above = [
            case.on_top_of(below)
            for case in cases(below.system, facts)
            if case.kind != below.kind
            and not case.stated
            and case.kind in (_OF_A_LAUNCH[-1:] if below.kind in _CHOICES else _OF_A_LAUNCH)
        ]
        found += _likeliest(above, asked)
    return found


def _likeliest(its: Iterable[Case], asked: CauseSearch) -> list[Suspect]:
    """The likeliest case of each kind, the likeliest kinds first; whole curves of those alone that a few sizes choose.

    A few sizes choose a kind well, but not its case: one process that delays three sizes as much may delay others less.
    A kind with many cases fits more logs, so its weight is the mean of its cases, but for those that change nothing.
    """
    coarse = asked.screened
    kinds: dict[str, list[Suspect]] = {}
    for case in its:
        curve = asked.simulated(case, coarse, screening=True)
        if len(curve) >= LEAST_SIZES * len(coarse) and not _same(curve, asked.log.healthy):
            kinds.setdefault(case.kind, []).append(asked.suspect(case, curve))
    chosen = []
    for screened in kinds.values():
        best, *_ = ordered = sorted(screened, key=lambda one: -one.weight)
        mean = math.fsum(math.exp(one.weight - best.weight) for one in screened) / len(screened)
        chosen.append((best.weight + math.log(mean), math.log(mean), [one.cases[0] for one in ordered[:CASES]]))
    least = max((weight for weight, *_ in chosen), default=0.0) - BEHIND
    whole = (
        max((asked.suspect(case, asked.simulated(case, asked.sizes), mean) for case in its), key=lambda one: one.weight)
        for weight, mean, its in chosen
        if weight > least
    )
    return sorted(whole, key=lambda one: -one.weight)


def _merged(found: Iterable[Suspect], log: Observed) -> list[Suspect]:
    """The likeliest first; kinds that the log cannot tell apart share a place."""
    places: list[Suspect] = []
    for one in sorted(found, key=lambda one: -one.weight):
        same = next((at for at, other in enumerate(places) if _indistinct(other, one, log)), None)
        if same is None:
            places.append(one)
        else:
            both = places[same].probability + one.probability
            also = () if _two(one) else one.cases  # one fault is enough for this curve
            places[same] = replace(places[same], cases=(*places[same].cases, *also), probability=both)
    return sorted(places, key=lambda one: -one.probability)


def _indistinct(one: Suspect, other: Suspect, log: Observed) -> bool:
    """Whether two faults have one curve, for strengths that are as likely, as well as times of a log can tell."""
    if _same(one.times, other.times):
        return True
    strength = max(one.cases[0].strength, other.cases[0].strength)
    return (
        other.probability >= LEAST
        and not (_two(one) or _two(other))
        and log.told_apart(one.times, other.times, strength) < INDISTINCT
    )


def _same(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """Whether two curves agree wherever both have a time, as well as times of a log can tell."""
    return all(abs(one[size] / other[size] - 1) <= ALIKE for size in one.keys() & other.keys())
