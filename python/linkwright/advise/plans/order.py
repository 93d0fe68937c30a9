"""Which rank on which endpoint: the order with the least load of the busiest link.

    load of a link = sum over flows whose route has it of bytes / rate

Routes are those of the simulator, found by one message between two endpoints. A rate is that of the machine file where
it states the link, otherwise that at which the message held the link. The order is found in three stages:

1. starts: every nesting of the axes, then seeded shuffles; each is improved by swaps of two ranks until none helps
2. up to `MOST_EXACT` ranks, branch and bound over all orders; it proves the best one if it ends within its steps
3. elsewhere a bound says how far the best one can be: some flow must leave a block of endpoints (a node, say) if
   those of at least its bytes join more ranks than the block holds, and a flow costs no less than its cheapest route

The result is the same every time; a seed changes the shuffles.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkwright import _native
from linkwright.ask.answer import How, ask
from linkwright.base import units
from linkwright.base.units import US_PER_S

from .traffic import Flows, as_goal

# Swaps that are tried in all, routes that are looked up for them, and steps of branch and bound.
SWAPS, LOOKUPS, STEPS = 20_000, 12_000, 100_000
# Most ranks for branch and bound; most for which every pair of endpoints is routed for the bound.
MOST_EXACT, MOST_ROUTED = 16, 128
_MESSAGE = 1 << 20  # bytes of the message that finds a route
_EQUAL = 1e-9  # loads that differ by less, relatively, are equal
Load = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Order:
    """Where the ranks go, and how good that is.

    Attributes:
        endpoints: the endpoint of each rank.
        peak_us: load of the busiest link, in microseconds.
        identity_peak_us: the same of rank i on the i-th endpoint that takes part.
        bound_us: what no order goes below.
        exact: whether no order is better.
        busiest: the name of the busiest link.
        time_us: all flows at once, simulated in this order.
        identity_time_us: the same of rank i on the i-th endpoint that takes part.
    """

    endpoints: tuple[int, ...]
    peak_us: float
    identity_peak_us: float
    bound_us: float
    exact: bool
    busiest: str
    time_us: float
    identity_time_us: float

    @property
    def gap(self) -> float:
        """How far the peak may be above the best one, as a share of the bound; infinite without a bound."""
        if self.exact:
            return 0.0
        return self.peak_us / self.bound_us - 1 if self.bound_us else float("inf")


class Routes:
    """Microseconds of each link for each byte between two endpoints."""

    def __init__(self, machine: _native.Machine) -> None:
        self._machine = machine
        self._pair = _native.Schedule.pattern("pairs", 2, _MESSAGE, element_bytes=1)
        self.names: list[str] = self._simulate(0, 1).name if machine.ranks > 1 else []
        self.stated = _stated_us(machine)
        self.looked_up = 0
        self.of = functools.cache(self._of)

    def _simulate(self, source: int, target: int) -> _native.Links:
        return ask(self._machine, self._pair, How(placement=[source, target], links=True)).links

    def _of(self, source: int, target: int) -> tuple[npt.NDArray[np.int64], Load]:
        """Links of a route, and their cost for a byte."""
        self.looked_up += 1
        found = self._simulate(source, target)
        used = np.flatnonzero(found.bytes)
        held = units.in_us(found.busy_ps[used]) / _MESSAGE
        stated = np.array([self.stated.get(self.names[link], np.nan) for link in used.tolist()])
        return used, np.where(np.isnan(stated), held, stated)

    def dearest(self, source: int, target: int) -> float:
        """The cost of a byte on the slowest link of a route."""
        return float(self.of(source, target)[1].max(initial=0.0))


def _stated_us(machine: _native.Machine) -> dict[str, float]:
    """Microseconds for a byte of each link that the machine file states, in both directions."""
    network = machine.network()
    if network is None:
        return {}
    rates: dict[str, int] = {}
    names, edges = network["nodes"]["name"], network["edges"]
    for a, b, rate in zip(edges["a"], edges["b"], edges["bytes_per_s"], strict=True):
        for name in (f"{names[a]} -> {names[b]}", f"{names[b]} -> {names[a]}"):
            rates[name] = rates.get(name, 0) + (rate or 0)
    return {name: US_PER_S / rate for name, rate in rates.items() if rate}


class Search:
    """The search for one machine and its flows, over the endpoints `seats`; by default over the first ones."""

    def __init__(
        self, machine: _native.Machine, flows: Flows, ranks: int, seed: int = 0, seats: Sequence[int] | None = None
    ) -> None:
        self.machine, self.flows, self.ranks = machine, flows, ranks
        self._seats = tuple(seats or range(ranks))  # endpoints that take part; an order has their indices
        self.routes = Routes(machine)
        self._random = random.Random(seed)
        self._of_rank: list[list[tuple[int, int, int]]] = [[] for _ in range(ranks)]
        for (a, b), moved in flows.items():
            self._of_rank[a].append((a, b, moved))
            self._of_rank[b].append((a, b, moved))
        self._left, self._lookups = SWAPS, LOOKUPS

    def run(self, starts: Iterable[Sequence[int]]) -> Order:
        """The best order that is found."""
        identity = list(range(self.ranks))
        bound = self.bound_us()
        self._lookups = self.routes.looked_up + LOOKUPS  # those of the bound are not counted
        best = identity
        for start in itertools.chain([identity], starts, self._shuffles()):
            if self._spent() or self.peak_us(best) <= bound * (1 + _EQUAL):
                break
            improved = self._improve(list(start))
            best = min(best, improved, key=self._value)
        exact = self.peak_us(best) <= bound * (1 + _EQUAL)
        if not exact and self.ranks <= MOST_EXACT:
            best, exact = _Branches(self, best).run()
        if self.peak_us(best) >= self.peak_us(identity) * (1 - _EQUAL):
            best = identity  # nothing is moved for nothing
        return self._order(tuple(best), bound, exact)

    def load(self, order: Sequence[int]) -> Load:
        """The load of every link in microseconds."""
        load = np.zeros(len(self.routes.names))
        self.add(load, ((a, b, moved) for (a, b), moved in self.flows.items()), order)
        return load

    def add(self, load: Load, flows: Iterable[tuple[int, int, int]], order: Sequence[int], sign: int = 1) -> None:
        """Add flows to a load, or take them off."""
        for a, b, moved in flows:
            links, cost = self.routes.of(self._seats[order[a]], self._seats[order[b]])
            load[links] += sign * moved * cost

    def peak_us(self, order: Sequence[int]) -> float:
        """The load of the busiest link in microseconds."""
        return float(self.load(order).max(initial=0.0))

    def touching(self, *ranks: int) -> list[tuple[int, int, int]]:
        """The flows of some ranks, each once."""
        return list(dict.fromkeys(flow for rank in ranks for flow in self._of_rank[rank]))

    def _value(self, order: Sequence[int]) -> tuple[float, float]:
        return _value(self.load(order))

    def _shuffles(self) -> Iterator[list[int]]:
        while True:
            order = list(range(self.ranks))
            self._random.shuffle(order)
            yield order

    def _improve(self, order: list[int]) -> list[int]:
        """Swap ranks as long as that helps."""
        load = self.load(order)
        value, going = _value(load), True
        while going:
            going = False
            pairs = list(itertools.combinations(range(self.ranks), 2))
            self._random.shuffle(pairs)
            for a, b in pairs:
                if self._spent():
                    return order
                self._left -= 1
                changed = load.copy()
                own = self.touching(a, b)
                self.add(changed, own, order, -1)
                order[a], order[b] = order[b], order[a]
                self.add(changed, own, order)
                if _value(changed) < value:
                    load, value, going = self.load(order), _value(changed), True
                else:
                    order[a], order[b] = order[b], order[a]
        return order

    def _spent(self) -> bool:
        """Whether the search must end; what it may cost is counted, so that it is the same on any machine."""
        return self._left <= 0 or self.routes.looked_up >= self._lookups

    def bound_us(self) -> float:
        """What no order goes below: the cheapest way to carry the flow that has to leave a block."""
        bound = 0.0
        for block in self._blocks():
            cheapest = self._cheapest(block)
            room = max(Counter(seat // block for seat in self._seats).values())
            for moved in sorted(set(self.flows.values()), reverse=True):
                if self._largest_cluster(moved) > room:
                    bound = max(bound, moved * cheapest)
                    break
        return bound

    def _blocks(self) -> list[int]:
        """Endpoints of one part of the machine at each level; 1 is a single endpoint."""
        sizes = [count for _, count in self.machine.levels()]
        return [int(np.prod(sizes[at:])) for at in range(1, len(sizes))] + [1] if sizes else [1]

    def _cheapest(self, block: int) -> float:
        """The least cost of a byte between endpoints of different blocks."""
        if self.machine.ranks > MOST_ROUTED:
            return min(self.routes.stated.values(), default=0.0)
        pairs = itertools.permutations(range(self.machine.ranks), 2)
        return min((self.routes.dearest(x, y) for x, y in pairs if x // block != y // block), default=0.0)

    def _largest_cluster(self, least: int) -> int:
        """The most ranks that flows of at least so many bytes join."""
        leader = list(range(self.ranks))

        def of(rank: int) -> int:
            while leader[rank] != rank:
                rank = leader[rank]
            return rank

        for (a, b), moved in self.flows.items():
            if moved >= least:
                leader[of(a)] = of(b)
        sizes = np.bincount([of(rank) for rank in range(self.ranks)])
        return int(sizes.max(initial=0))

    def _order(self, endpoints: tuple[int, ...], bound: float, exact: bool) -> Order:
        identity = tuple(range(self.ranks))
        load = self.load(endpoints)
        peak = float(load.max(initial=0.0))
        busiest = self.routes.names[int(load.argmax())] if len(load) else "-"
        times = [self._simulated_us(order) for order in (endpoints, identity)]
        endpoints = tuple(self._seats[index] for index in endpoints)
        return Order(endpoints, peak, self.peak_us(identity), peak if exact else bound, exact, busiest, *times)

    def _simulated_us(self, order: Sequence[int]) -> float:
        """All flows at once."""
        schedule = _native.read_schedule(as_goal(self.flows, self.ranks), "flows.goal")
        return ask(self.machine, schedule, How(placement=[self._seats[index] for index in order])).time.us


def _value(load: Load) -> tuple[float, float]:
    """What is less is better: the peak, then how uneven the loads are."""
    return round(float(load.max(initial=0.0)), 6), round(float(load @ load), 6)


class _Branches:
    """Branch and bound: ranks are placed one by one, and a part whose peak is no better than the best is left."""

    def __init__(self, search: Search, best: Sequence[int]) -> None:
        self._search, self._best = search, list(best)
        self._least = search.peak_us(best)
        self._left = STEPS
        # Ranks with much traffic first, so that branches end early.
        self._queue = sorted(range(search.ranks), key=lambda rank: -sum(flow[2] for flow in search.touching(rank)))

    def run(self) -> tuple[list[int], bool]:
        """The best order, and whether all were looked at."""
        self._place(0, [-1] * self._search.ranks, np.zeros(len(self._search.routes.names)))
        return self._best, self._left > 0

    def _place(self, depth: int, placed: list[int], load: Load) -> None:
        search = self._search
        if depth == search.ranks:
            self._least, self._best = float(load.max(initial=0.0)), list(placed)
            return
        rank = self._queue[depth]
        known = [flow for flow in search.touching(rank) if all(placed[end] >= 0 or end == rank for end in flow[:2])]
        for endpoint in range(search.ranks):
            if endpoint in placed or self._left <= 0:
                continue
            self._left -= 1
            grown = load.copy()
            placed[rank] = endpoint
            search.add(grown, known, placed)
            if grown.max(initial=0.0) < self._least * (1 - _EQUAL):
                self._place(depth + 1, placed, grown)
            placed[rank] = -1
