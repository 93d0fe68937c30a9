"""Which expert on which rank: the placement that makes dispatch and combine fast.

    load of a rank = sum over sources s and experts x that it serves to s of the tokens of s that want x

1. copies     `redundant` more copies, one after the other of the expert with the most tokens for each of its copies; a
              source uses one copy of an expert, on its own node where the shares of the copies allow it
2. partition  as many experts on each rank, those with the most tokens first, each on the rank with the least load
3. swaps      two experts change places while that unloads the busiest rank, then while it unloads the busiest node
              without a busier rank. Load of a node is what comes from other nodes. A second plan unloads nodes first.
4. time       dispatch and combine are simulated, each with its fastest algorithm, for the plans and the plain order

The fastest placement wins; the plain order, if no other is faster. The result is the same every time.

Source: Graham, "Bounds on multiprocessing timing anomalies" (SIAM J. Appl. Math. 1969), for 2; DeepSeek-AI,
"DeepSeek-V3 technical report" (2024), section 3.4, for redundant experts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linkwright import _native
from linkwright.ask.answer import Answer, How, ask
from linkwright.ask.exchange import UnevenExchange, token_of
from linkwright.ask.question import DTYPES
from linkwright.base.errors import ShapeError, WaivedError
from linkwright.base.units import Time

Counts = npt.NDArray[np.int64]
Run = Callable[[_native.Schedule], Answer]
# Swaps of one search, so that it ends.
MOST_SWAPS = 4096
# What comes back from the experts.
COMBINED = "bf16"


class TokenExchange(NamedTuple):
    """One of the two exchanges, simulated.

    Attributes:
        algorithm: the fastest one.
        time_us: its simulated time, in microseconds.
        limit_us: what no algorithm with the same copies goes below, in microseconds; None if no limit is known.
        link: the link that moves data for the longest time.
        link_us: for how long it does, in microseconds.
    """

    algorithm: str
    time_us: float
    limit_us: float | None
    link: str
    link_us: float


class PlacedExperts(NamedTuple):
    """A placement and what it costs.

    Attributes:
        experts: those of each rank, with copies.
        rank: the busiest rank.
        rank_tokens: its load, in tokens.
        node: the busiest node.
        node_tokens: what other nodes send it, in tokens.
        dispatch: tokens to experts.
        combine: results back to tokens.
    """

    experts: tuple[tuple[int, ...], ...]
    rank: int
    rank_tokens: int
    node: int
    node_tokens: int
    dispatch: TokenExchange
    combine: TokenExchange

    @property
    def time_us(self) -> float:
        """Both exchanges, one after the other."""
        return self.dispatch.time_us + self.combine.time_us


class ExpertPlan(NamedTuple):
    """The answer.

    Attributes:
        plain: experts in order, without copies.
        planned: the fastest placement that was found; `plain`, if none is faster.
        least_tokens: a load that the busiest rank of no placement goes below.
        redundant: copies of experts that were allowed.
    """

    plain: PlacedExperts
    planned: PlacedExperts
    least_tokens: int
    redundant: int = 0


@dataclass(frozen=True)
class ExpertTokens:
    """What ranks want of experts, and how it travels.

    Attributes:
        wanted: tokens of each rank (row) that want each expert.
        elements: of a token on its way to experts, of one byte if packed.
        dtype: of these elements.
        hidden: elements of a token on its way back.
        routing: what was drawn, so that a token may go to a rank once; without it, once for each expert.
        tokens: of one rank, if drawn.
        grid: ranks of a node x nodes, if there are several nodes.
    """

    wanted: Counts
    elements: int
    dtype: str
    hidden: int
    routing: tuple[int, int, int, int, int] | None = None  # of `Schedule.build`, with tokens of one element
    tokens: int = 0
    grid: tuple[int, ...] | None = None

    @property
    def ranks(self) -> int:
        """Ranks that have tokens and experts."""
        return len(self.wanted)

    @property
    def columns(self) -> int:
        """Ranks of a node."""
        return self.grid[0] if self.grid else self.ranks


def routed(
    ranks: int, tokens: int, experts: int, topk: int, routing: str, hidden: int, dtype: str, seed: int,
    grid: tuple[int, ...] | None,
) -> ExpertTokens:  # fmt: skip
    """Draw what ranks with `tokens` each want; see `linkwright.ask.exchange` for the other arguments.

    Raises:
        ShapeError: experts, top-k, routing or hidden make no sense together.
    """
    elements, travels = token_of(hidden, dtype)
    drawn = UnevenExchange((), experts, topk, 1, routing, seed).shape["routing"]
    wanted = np.array(_native.expert_loads(ranks, tokens, drawn), np.int64).reshape(ranks, experts)
    return ExpertTokens(wanted, elements, travels, hidden, drawn, tokens, grid)


def counted(
    counts: Sequence[Sequence[int]], ranks: int, hidden: int, dtype: str, grid: tuple[int, ...] | None
) -> ExpertTokens:
    """Take the tokens of each rank (row) for each expert, or one row of all ranks together, spread evenly.

    Raises:
        ShapeError: there are neither one row nor as many as ranks, or hidden does not suit `dtype`.
    """
    elements, travels = token_of(hidden, dtype)
    wanted = np.array(counts, np.int64)
    if len(wanted) == 1:
        first = np.arange(wanted.shape[1])  # the rank that gets the first token that is left over
        turn = (np.arange(ranks)[:, None] - first) % ranks
        wanted = wanted // ranks + (turn < wanted % ranks)
    if len(wanted) != ranks:
        raise ShapeError(f"counts of {len(wanted)} ranks for {ranks}; give a row for each rank, or one row")
    return ExpertTokens(wanted, elements, travels, hidden, grid=grid)


def plan(
    machine: _native.Machine, tokens: ExpertTokens, redundant: int = 0, endpoints: Sequence[int] | None = None
) -> ExpertPlan:
    """Return the fastest placement that is found for `tokens` on `machine`, with `redundant` copies of experts.

    `endpoints` has that of each rank; without it they are the first ones.

    Raises:
        ShapeError: experts, with their copies, are not as many on each rank, or have more copies than ranks.
    """
    experts = tokens.wanted.shape[1]
    if redundant > experts * (tokens.ranks - 1):
        raise ShapeError(
            f"{redundant} copies of {experts} experts on {tokens.ranks} ranks: a rank has an expert once; use at most "
            f"{experts * (tokens.ranks - 1)}"
        )
    for count, what in ((experts, "experts"), (experts + redundant, "experts with their copies")):
        if count % tokens.ranks:
            more = -count % tokens.ranks
            cure = f"use --redundant {redundant + more}" if redundant else f"use {count + more} experts"
            raise ShapeError(f"{count} {what} on {tokens.ranks} ranks: every rank must hold the same number; {cure}")
    loads = tokens.wanted.sum(axis=0)
    search = _Search(tokens.wanted, tokens.columns, _copies(loads, redundant, tokens.ranks))
    plain = np.arange(experts).reshape(tokens.ranks, -1)
    owners = np.arange(experts) // plain.shape[1]
    run = functools.partial(ask, machine, how=How(links=True, placement=endpoints))
    start = _sided(run, tokens, plain.tolist(), np.tile(owners, (tokens.ranks, 1)))
    found = search.run()
    if redundant:  # copies cost combines, so that fewer can be faster
        found += _Search(tokens.wanted, tokens.columns, _copies(loads, 0, tokens.ranks)).run()
    sides = [_sided(run, tokens, *one) for one in found]
    return ExpertPlan(start, min([start, *sides], key=lambda side: side.time_us), search.least(), redundant)


def _copies(loads: Counts, redundant: int, ranks: int) -> Counts:
    """Copies of each expert."""
    copies = np.ones(len(loads), np.int64)
    for _ in range(redundant):
        copies[np.where(copies < ranks, loads / copies, -1).argmax()] += 1
    return copies


class _Search:
    """Copies of experts on the ranks: copy i is of expert `of[i]`, on rank `at[i]`."""

    def __init__(self, wanted: Counts, columns: int, copies: Counts) -> None:
        self._wanted, self._columns, self._copies = wanted, columns, copies
        self._ranks, self._nodes = len(wanted), len(wanted) // columns
        self._of = np.repeat(np.arange(len(copies)), copies)
        self._load = (wanted.sum(axis=0) / copies)[self._of]
        by_node = wanted.reshape(self._nodes, columns, -1).sum(axis=1)
        # What a copy on each node (row) gets from the others.
        self._remote = ((wanted.sum(axis=0) - by_node) / copies)[:, self._of]

    def run(self) -> list[tuple[list[list[int]], Counts]]:
        """The plans: the experts of each rank, and the rank that serves each expert (column) to each source."""
        rank_first, node_first = self._partition(), self._partition()
        self._unload(rank_first, self._by_rank)
        self._unload(rank_first, self._by_node)
        if self._nodes > 1:
            self._unload(node_first, self._by_node)
            self._unload(node_first, self._by_rank)
        plans = [rank_first] if np.array_equal(rank_first, node_first) else [rank_first, node_first]
        return [(self._experts(at), self._owners(at)) for at in plans]

    def least(self) -> int:
        """What the busiest rank has at least: its part of all, or the fullest expert with the emptiest others."""
        each = len(self._of) // self._ranks
        alone = float(self._load.max())
        if len(self._of) == len(self._copies):
            alone += float(np.sort(self._load)[: each - 1].sum())
        return int(np.ceil(max(alone, self._wanted.sum() / self._ranks) - 1e-6))

    def _partition(self) -> Counts:
        each = len(self._of) // self._ranks
        at = np.full(len(self._of), -1)
        load, free = np.zeros(self._ranks), np.full(self._ranks, each)
        for copy in np.argsort(-self._load, kind="stable"):
            taken = np.isin(np.arange(self._ranks), at[self._of == self._of[copy]])
            # A rank that has the expert already takes another copy only if no other has room.
            at[copy] = rank = np.lexsort((load, taken, free == 0))[0]
            load[rank] += self._load[copy]
            free[rank] -= 1
        return at

    def _unload(self, at: Counts, gain: Callable[[Counts], tuple[int, int] | None]) -> None:
        """Swap two copies as long as that gains."""
        for _ in range(MOST_SWAPS):
            pair = gain(at)
            if pair is None:
                return
            a, b = pair
            at[a], at[b] = at[b], at[a]

    def _rank_loads(self, at: Counts) -> npt.NDArray[np.float64]:
        return np.bincount(at, self._load, self._ranks).astype(np.float64, copy=False)

    def _by_rank(self, at: Counts) -> tuple[int, int] | None:
        """The swap that leaves the busiest rank and its partner with the least load."""
        load = self._rank_loads(at)
        busiest = int(load.argmax())
        mine, others = np.flatnonzero(at == busiest), np.flatnonzero(at != busiest)
        moved = self._load[mine][:, None] - self._load[others]
        after = np.maximum(load[busiest] - moved, load[at[others]] + moved)
        return self._best(at, mine, others, after, load[busiest])

    def _by_node(self, at: Counts) -> tuple[int, int] | None:
        """The swap that leaves the busiest node and its partner with the least load, and no rank busier than any is."""
        load, node = self._rank_loads(at), at // self._columns
        remote = self._remote[node, np.arange(len(at))]
        loads = np.bincount(node, remote, self._nodes)
        busiest = int(loads.argmax())
        mine, others = np.flatnonzero(node == busiest), np.flatnonzero(node != busiest)
        here = self._remote[busiest][others] - remote[mine][:, None]
        there = self._remote[node[others]][:, mine].T - remote[others]
        after = np.maximum(loads[busiest] + here, loads[node[others]] + there)
        moved = self._load[mine][:, None] - self._load[others]
        ranks = np.maximum(load[at[mine]][:, None] - moved, load[at[others]] + moved)
        return self._best(at, mine, others, np.where(ranks <= load.max(), after, np.inf), loads[busiest])

    def _best(
        self, at: Counts, mine: Counts, others: Counts, after: npt.NDArray[np.float64], now: float
    ) -> tuple[int, int] | None:
        if not after.size:
            return None
        held = {(rank, expert) for rank, expert in zip(at.tolist(), self._of.tolist(), strict=True)}
        for place in np.argsort(after, axis=None, kind="stable")[:64]:
            a, b = mine[place // len(others)], others[place % len(others)]
            if after.flat[place] >= now * (1 - 1e-9):
                return None
            if (at[b], self._of[a]) not in held and (at[a], self._of[b]) not in held:
                return int(a), int(b)
        return None

    def _experts(self, at: Counts) -> list[list[int]]:
        return [self._of[at == rank].tolist() for rank in range(self._ranks)]

    def _owners(self, at: Counts) -> Counts:
        """The copy of each source: on its own rank, then its node, then the emptiest, up to the share of a copy."""
        owners = np.zeros(self._wanted.shape, np.int64)
        for expert, copies in enumerate(self._copies.tolist()):
            ranks = np.sort(at[self._of == expert])
            owners[:, expert] = ranks[0]
            tokens = self._wanted[:, expert]
            served = np.zeros(copies)
            for source in np.argsort(-tokens, kind="stable") if copies > 1 else ():
                full = served + tokens[source] > tokens.sum() / copies
                away = np.where(ranks == source, 0, 1 + (ranks // self._columns != source // self._columns))
                chosen = np.lexsort((served, away, full))[0]
                served[chosen] += tokens[source]
                owners[source, expert] = ranks[chosen]
        return owners


def _sided(run: Run, tokens: ExpertTokens, experts: list[list[int]], owners: Counts) -> PlacedExperts:
    """Simulate both exchanges of a placement."""
    ranks, columns = tokens.ranks, tokens.columns
    pairs = np.zeros((ranks, ranks), np.int64)
    np.add.at(pairs, (np.arange(ranks)[:, None], owners), tokens.wanted)
    load = pairs.sum(axis=0)
    nodes = np.arange(ranks) // columns
    remote = np.bincount(nodes, np.where(nodes[:, None] != nodes, pairs, 0).sum(axis=0))
    there = _exchange(run, tokens, "dispatch", owners, pairs, tokens.elements, tokens.dtype)
    back = _exchange(run, tokens, "combine", owners, pairs.T, tokens.hidden, COMBINED)
    busiest = int(load.argmax()), int(load.max()), int(remote.argmax()), int(remote.max())
    return PlacedExperts(tuple(map(tuple, experts)), *busiest, there, back)


def _exchange(
    run: Run,
    tokens: ExpertTokens,
    collective: str,
    owners: Counts,
    pairs: Counts,
    elements: int,
    dtype: str,
) -> TokenExchange:
    """The fastest algorithm of one exchange."""
    about: dict[str, Any]
    if tokens.routing:
        experts, topk, _, skew, seed = tokens.routing
        about = {"routing": (experts, topk, elements, skew, seed), "owners": owners.ravel().tolist()}
        whole = tokens.tokens * elements
    else:
        collective = "alltoallv"
        about = {"counts": (pairs * elements).ravel().tolist()}
        whole = int(pairs.sum(axis=1).max()) * elements
    # A node of one rank has no other to hand tokens on to: what follows rails is then direct.
    grid = tokens.grid if tokens.columns > 1 else None
    found = []
    for key in (row["key"] for row in _native.algorithms() if row["collective"] == collective):
        try:
            schedule = _native.Schedule.build(key, tokens.ranks, whole, element_bytes=DTYPES[dtype], grid=grid, **about)
        except WaivedError:
            continue
        found.append(_simulated(run, key, schedule))
    return min(found, key=lambda one: one.time_us)


def _simulated(run: Run, key: str, schedule: _native.Schedule) -> TokenExchange:
    answer = run(schedule)
    links, limit = answer.links, answer.bound
    name, busy = "-", 0
    if len(links.busy_ps):
        at = int(links.busy_ps.argmax())
        name, busy = links.name[at], int(links.busy_ps[at])
    return TokenExchange(key.partition("/")[2], answer.time.us, limit.time.us if limit else None, name, Time(busy).us)
