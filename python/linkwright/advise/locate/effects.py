"""The rate of every cell of a test, on the machine as described and with each of its places slow.

    healthy    max-min fair shares of all messages of the test
    slow       a link with `share` of its rate is shared by water filling: each message gets at most what it had, and
               no more than the level at which the link is full; the slowest link of a message decides

Messages elsewhere may gain from those that become slower; that is neglected. `linkwright.ask` confirms what is found.

    contended  a cell that shares a full link, or whose acknowledgements cross one that others may fill: these return
               on the route of the opposite message and queue behind data. TCP then gives it any share of its rate
    quiet      a test of messages that share no link in either direction: made for each link that one message fills
               and that no other test crosses without contention
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .parts import Component, Flags, Floats, HostLayout, Ints, Pair, RouteTable
from .rounds import Cell, Test

# Shares of its rate that a slow place may have left: 2 % stands for less, and above 90 % noise hides it. Neighbours are
# nearer to each other than twice the noise, so that one of them explains any share.
SHARES = np.geomspace(0.02, 0.9, 64)
_ALONE = 0.99  # of a message's rate alone: one that has less shares a link
MOST_QUIET = 16  # tests without contention that are added
_LEAST = 0.01  # of the logarithm of a rate: less is no effect


@dataclass(frozen=True)
class Spot:
    """Parts that no test tells apart.

    Attributes:
        parts: the smallest first.
        part: that with the narrowest links, which shows a fault first.
    """

    parts: tuple[Component, ...]
    part: Component


@dataclass(frozen=True)
class Effects:
    """Rates of the cells of a test.

    Attributes:
        base: logarithm of each cell's rate in bytes per second.
        place, cell: what is slower where: one entry for each place that a cell feels.
        drop: of each entry, what is added to the logarithm for each of `SHARES`.
        base_shared, shared: whether the cell is contended, healthy and slow.
    """

    base: Floats
    place: Ints
    cell: Ints
    drop: Floats
    base_shared: Flags
    shared: Flags

    def of(self, place: int) -> slice:
        """The entries of a place."""
        return slice(*np.searchsorted(self.place, [place, place + 1]))


class FaultModel:
    """Effects of all places on tests.

    Args:
        layout: of the machine.
        library: tests that may be run.
        others: tests that were run, of any messages.
    Attributes:
        deepest: of each place and each of `SHARES`, the least of `Effects.drop` in any test of the library.
        powers: what tests can say of each place and share, by test, repeats and noise; kept by `posterior`.
        everywhere: whether all cells of the library feel a place, as the only switch of a star.
    """

    def __init__(self, layout: HostLayout, library: Sequence[Test], others: Sequence[Test] = ()) -> None:
        self.layout, self.library = layout, list(library)
        every = dict.fromkeys(flow for test in (*self.library, *others) for flow in test.flows)
        every |= dict.fromkeys((b, a) for a, b in every)  # the routes of acknowledgements
        self._number: dict[Pair, int] = {flow: at for at, flow in enumerate(every)}
        self.routes = layout.routes(list(every))
        self._first = np.searchsorted(self.routes.pair, np.arange(len(self._number) + 1))
        self.places = _places(layout.parts(), self.routes, len(self._number))
        ends = [(link, at) for at, place in enumerate(self.places) for link in place.part.links]
        links = np.array(sorted(ends), dtype=np.int64).reshape(-1, 2)
        self._of_link = links[:, 1]
        self._link_first = np.searchsorted(links[:, 0], np.arange(len(self.routes.rates) + 1))
        self._of: dict[Test, Effects] = {}
        self.powers: dict[tuple[Test, int, float], npt.NDArray[np.float32]] = {}
        self.library += self._quiet_tests()
        self.effects = [self.of(test) for test in self.library]
        self.deepest = np.zeros((len(self.places), len(SHARES)))
        felt = np.zeros(len(self.places))
        for one in self.effects:
            places, first, count = np.unique(one.place, return_index=True, return_counts=True)
            felt[places] += count
            if len(places):
                self.deepest[places] = np.minimum(self.deepest[places], np.minimum.reduceat(one.drop, first))
        self.everywhere = felt == sum(len(one.base) for one in self.effects)

    def of(self, test: Test) -> Effects:
        """The effects on a test of the library or of the others."""
        if test not in self._of:
            self._of[test] = self._effects(test)
        return self._of[test]

    def most(self, test: Test) -> Floats:
        """Bytes per second that the narrowest link of each cell carries; infinite where no link bounds it."""
        uses = self.routes.rates[self.routes.link] / self.routes.times
        return np.array(
            [min((uses[self._uses(flow)].min(initial=np.inf) for flow in cell), default=np.inf) for cell in test.cells]
        )

    def _effects(self, test: Test) -> Effects:
        flows = [self._number[flow] for flow in test.flows]
        owner = np.repeat(np.arange(len(test.cells)), [len(cell) for cell in test.cells])
        uses = np.concatenate([np.arange(self._first[flow], self._first[flow + 1]) for flow in flows])
        flow = np.repeat(np.arange(len(flows)), np.diff(self._first)[flows])
        link, times = self.routes.link[uses], self.routes.times[uses]
        alone = self.routes.alone[flows]
        rate = fair_shares(flow, link, times, alone, self.routes.rates)
        base = np.full(len(test.cells), np.inf)
        np.minimum.at(base, owner, rate)
        levels = _levels(flow, link, times, rate, self.routes.rates, self.routes.efficiency[flows])
        slow = np.log(np.maximum(levels, 1.0)) - np.log(base[owner[flow]])[:, None]
        behind, contended = (np.zeros(len(base), bool) for _ in range(2))
        np.logical_or.at(behind, owner, self._behind_data(test, link, times * alone[flow]))
        np.logical_or.at(contended, owner, rate < _ALONE * alone)
        _, at, count = np.unique(link, return_inverse=True, return_counts=True)
        shared = (count[at] > 1) | behind[owner[flow]]
        entries = _gathered(len(base), owner[flow], np.minimum(slow, 0.0), shared, self._placed(link))
        return Effects(np.log(base), *entries[:3], contended | behind, entries[3])

    def _uses(self, flow: Pair) -> slice:
        """The uses of links of a message in `routes`."""
        number = self._number[flow]
        return slice(int(self._first[number]), int(self._first[number + 1]))

    def _behind_data(self, test: Test, link: Ints, offered: Floats) -> Flags:
        """Of each message, whether its acknowledgements cross a link that others could fill.

        Where both ways are measured at once, as by nccl-tests, the opposite data belong to every result.
        """
        count = len(self.routes.rates)
        full = np.bincount(link, offered, count) > _ALONE * self.routes.rates
        flows = set(test.flows)
        return np.array(
            [(b, a) not in flows and bool(full[self.routes.link[self._uses((b, a))]].any()) for a, b in test.flows]
        )

    def _quiet_tests(self) -> list[Test]:
        """Tests without contention, for links that one message fills and that no test of the library crosses so."""
        routes = self.routes
        fills = routes.alone[routes.pair] > SHARES[-1] * routes.rates[routes.link] / routes.times
        exchanges: dict[tuple[Cell, ...], set[int]] = {}
        clean: set[int] = set()
        for test in self.library:
            of: dict[tuple[int, ...], list[Cell]] = {}
            for cell, contended in zip(test.cells, self.of(test).base_shared.tolist(), strict=True):
                of.setdefault(tuple(sorted(cell[0])), []).append(cell)
                if not contended:
                    clean |= self._filled(cell, fills)
            for cells in of.values():
                exchanges.setdefault(tuple(cells), set().union(*(self._filled(cell, fills) for cell in cells)))
        found: list[Test] = []
        wanted = set().union(*exchanges.values()) - clean
        order = sorted(exchanges, key=lambda cells: sum(len(self._crossed(cell)) for cell in cells))
        while wanted and len(found) < MOST_QUIET:
            used: set[int] = set()
            chosen: list[Cell] = []
            for cells in order:
                crossed = set().union(*(self._crossed(cell) for cell in cells))
                if exchanges[cells] & wanted and not crossed & used:
                    used |= crossed
                    wanted -= exchanges[cells]
                    chosen += cells
            if not chosen:
                break
            found.append(Test(f"quiet {len(found) + 1}", tuple(chosen)))
        return found

    def _filled(self, cell: Cell, fills: Flags) -> set[int]:
        """The links that a message of a cell fills alone."""
        spans = [self._uses(flow) for flow in cell]
        return {link for span in spans for link in self.routes.link[span][fills[span]].tolist()}

    def _crossed(self, cell: Cell) -> set[int]:
        """The links of a cell and of its acknowledgements."""
        return {
            link for a, b in cell for way in ((a, b), (b, a)) for link in self.routes.link[self._uses(way)].tolist()
        }

    def _placed(self, link: Ints) -> tuple[Ints, Ints]:
        """(use, place) of every place that has the link of a use."""
        counts = np.diff(self._link_first)[link]
        use = np.repeat(np.arange(len(link)), counts)
        within = np.arange(len(use)) - np.repeat(np.cumsum(counts) - counts, counts)
        return use, self._of_link[self._link_first[link[use]] + within]


def _gathered(
    cells: int, cell: Ints, slow: Floats, shared: Flags, placed: tuple[Ints, Ints]
) -> tuple[Ints, Ints, Floats, Flags]:
    """Place, cell and the least rate of each cell for each place, and whether one of its links is shared."""
    use, place = placed
    felt = slow[use, 0] < -_LEAST
    use, place = use[felt], place[felt]
    key = place * cells + cell[use]
    order = np.argsort(key, kind="stable")
    keys, first = np.unique(key[order], return_index=True)
    drop = np.minimum.reduceat(slow[use[order]], first) if len(keys) else np.zeros((0, len(SHARES)))
    both = np.logical_or.reduceat(shared[use[order]], first) if len(keys) else np.zeros(0, bool)
    return keys // cells, keys % cells, drop, both


def fair_shares(flow: Ints, link: Ints, times: Floats, alone: Floats, rates: Floats) -> Floats:
    """Max-min fair rates of messages that each may have `alone` by itself.

    Args:
        flow, link, times: one entry for each use.
        alone: the most of each message.
        rates: of the links.
    """
    found = alone.copy()
    used = np.unique(link)
    at = np.searchsorted(used, link)
    left, active = rates[used].copy(), np.ones(len(alone), bool)
    while active.any():
        load = np.bincount(at, times * active[flow], len(used))
        level = np.divide(left, load, out=np.full(len(used), np.inf), where=load > 0)
        share = np.full(len(alone), np.inf)
        np.minimum.at(share, flow, level[at])
        least = min(share[active].min(), alone[active].min())
        done = active & ((share <= least * (1 + 1e-9)) | (alone <= least * (1 + 1e-9)))
        found[done] = np.minimum(least, alone[done])
        left -= np.bincount(at, times * (done * found)[flow], len(used))
        left, active = np.maximum(left, 0), active & ~done
    return found


def _levels(flow: Ints, link: Ints, times: Floats, rate: Floats, rates: Floats, efficiency: Floats) -> Floats:
    """Of each use, the most its message gets if the link has each of `SHARES` of its rate."""
    demand = (times * rate[flow])[:, None]
    found = np.repeat(rate[flow][:, None], len(SHARES), axis=1)
    order = np.argsort(link, kind="stable")
    ids, first, count = np.unique(link[order], return_index=True, return_counts=True)
    # A message alone on the link.
    found = np.minimum(found, (rates[link] / times * efficiency[flow])[:, None] * SHARES)
    for one, begin, many in zip(ids[count > 1], first[count > 1], count[count > 1], strict=True):
        uses = order[begin : begin + many]
        wants = np.sort(demand[uses, 0])
        before = np.concatenate([[0.0], np.cumsum(wants)[:-1]])
        room = (rates[one] * SHARES)[:, None]
        # The level if all smaller demands are met: the first that does not exceed the next demand holds.
        level = (room - before) / np.arange(many, 0, -1)
        fits = level <= wants
        at = fits.argmax(axis=1)
        top = np.where(fits.any(axis=1), level[np.arange(len(SHARES)), at], np.inf)
        found[uses] = np.minimum(found[uses], np.maximum(top, 0.0) / times[uses, None])
    return found


def _places(parts: Iterable[Component], routes: RouteTable, pairs: int) -> list[Spot]:
    """Parts by the messages that cross them; parts that no message crosses are left out."""
    draw = np.random.default_rng(0).integers(1, 1 << 62, pairs, dtype=np.uint64)
    order = np.argsort(routes.link, kind="stable")
    first = np.searchsorted(routes.link[order], np.arange(len(routes.rates) + 1))
    crossing = routes.pair[order]
    alike: dict[int, list[Component]] = {}
    for part in parts:
        its = np.concatenate([crossing[first[link] : first[link + 1]] for link in sorted(part.links)] or [crossing[:0]])
        if len(its):
            alike.setdefault(int(draw[np.unique(its)].sum()), []).append(part)
    rates = routes.rates

    def narrowest(part: Component) -> float:
        return min(float(rates[link]) for link in part.links if first[link] < first[link + 1])

    return [Spot(tuple(its), min(its, key=narrowest)) for its in alike.values()]
