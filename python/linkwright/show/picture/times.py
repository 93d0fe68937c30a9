"""What happens on a machine over time, as the renderer takes it.

    span_us     the simulated time; `bins` of `bin_us` each cover it
    channels    [name, link of the scene or -2 - node or -1, direction, bytes, mean busy share]
    busy        channels x bins, a byte each, 255 for busy all the time; deflated, in base64
    at          of each rank, the node of the scene that shows its endpoint
    ranks       [rank, name, its first interval]
    states      `intervals` times: begins in us, ends in us (float32), then numbers of STATES (a byte)
    path        of the critical path: [from us, to us, rank, rank, what the time was spent on]
    links       mean busy share of each link of the scene, of its busier direction
    nodes       the same of the ports of each node; null without
    note        what of the ranks is shown, if not all

Links of the simulator in the same place of a large machine are one channel, as busy as the busiest of them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkwright.session.timeline import SPENT, Timeline

from .graph import Graph

MOST_CHANNELS = 3000  # one by one
MOST_RANKS = 256
MOST_INTERVALS = 60_000
MOST_STEPS = 4_000
_LEAST_SPAN = 1e-6  # of a schedule that takes no time


def timed(shown: Graph, timeline: Timeline, ranks: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """A simulation on the nodes and links of a scene; `ranks` has the endpoint of each rank, and its node."""
    places = _Places(shown)
    found = [places.of(name) for name in timeline.links]
    names, targets, carried, busy = _channels(timeline, found, places)
    span_us, bin_us = max(timeline.span_us, _LEAST_SPAN), float(timeline.edges_us[1])
    mean = np.minimum(1.0, busy.sum(axis=1) * (bin_us / span_us))
    links = [0.0] * len(shown.edges)
    nodes: list[float | None] = [None] * len(shown.nodes)
    for (target, _), share in zip(targets, mean.tolist(), strict=True):
        if target >= 0:
            links[target] = max(links[target], round(share, 4))
        elif target < -1:
            nodes[-2 - target] = max(nodes[-2 - target] or 0.0, round(share, 4))
    rows = zip(names, targets, carried.tolist(), mean.tolist(), strict=True)
    return {
        "span_us": span_us,
        "bin_us": bin_us,
        "bins": busy.shape[1],
        "channels": [[name, target, way, amount, round(share, 4)] for name, (target, way), amount, share in rows],
        "busy": _packed(np.clip(np.ceil(busy * 255), 0, 255).astype(np.uint8)),
        "links": links,
        "nodes": nodes,
        "path": _path(timeline),
        "at": [node for _, node in ranks],
        **_states(timeline, [name for name, _ in ranks]),
    }


def _path(timeline: Timeline) -> list[list[Any]]:
    """The steps between ranks; what has no operation, such as a late arrival, has no place."""
    path = timeline.path
    rows = zip(
        path.begin_us.tolist(), path.end_us.tolist(), path.source.tolist(), path.target.tolist(), path.spent.tolist(),
        strict=True,
    )  # fmt: skip
    found = [[begin, end, a, b, SPENT[spent]] for begin, end, a, b, spent in rows if a >= 0 and b >= 0]
    return [[round(begin, 6), round(end, 6), *step] for begin, end, *step in found[:MOST_STEPS]]


class _Places:
    """Where links of the simulator are in a scene: (link or -2 - node or -1, direction)."""

    def __init__(self, shown: Graph) -> None:
        self._shown = shown
        self._edge = {(edge.a, edge.b): number for number, edge in enumerate(shown.edges)}

    def of(self, name: str) -> tuple[int, int]:
        ends = self._shown.links.get(name)
        if ends is None:
            return -1, 0
        if ends[0] == ends[1]:
            return -2 - ends[0], 0
        forward = self._edge.get(ends)
        return (forward, 0) if forward is not None else (self._edge.get((ends[1], ends[0]), -1), 1)

    def name(self, target: int, way: int) -> str:
        """Of a place that several links share."""
        nodes = self._shown.nodes
        if target < 0:
            return f"inside {nodes[-2 - target].name}"
        edge = self._shown.edges[target]
        ends = (edge.b, edge.a) if way else (edge.a, edge.b)
        return f"{nodes[ends[0]].name} -> {nodes[ends[1]].name}"


def _channels(
    timeline: Timeline, found: Sequence[tuple[int, int]], places: _Places
) -> tuple[list[str], list[tuple[int, int]], npt.NDArray[Any], npt.NDArray[Any]]:
    """Names, places, bytes and busy shares of all links; of a large machine, by place."""
    busy = np.asarray(timeline.busy, dtype=np.float32)
    carried = np.asarray(timeline.bytes, dtype=np.int64)
    if len(found) <= MOST_CHANNELS:
        return list(timeline.links), list(found), carried, busy
    order = sorted({place for place in found if place[0] != -1})
    number = {place: row for row, place in enumerate(order)}
    into = np.array([number.get(place, -1) for place in found])
    largest, total = np.zeros((len(order), busy.shape[1]), np.float32), np.zeros(len(order), np.int64)
    np.maximum.at(largest, into[into >= 0], busy[into >= 0])
    np.add.at(total, into[into >= 0], carried[into >= 0])
    return [places.name(*place) for place in order], order, total, largest


def _packed(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 6)).decode("ascii")


def _states(timeline: Timeline, names: Sequence[str]) -> dict[str, Any]:
    """The intervals of the ranks that are shown: all, or as many as can be told apart, evenly spread."""
    ranks = np.unique(timeline.rank)
    chosen = ranks if len(ranks) <= MOST_RANKS else ranks[np.linspace(0, len(ranks) - 1, MOST_RANKS).astype(int)]
    kept = np.isin(timeline.rank, chosen)
    rank, state, begin, end = (a[kept] for a in (timeline.rank, timeline.state, timeline.begin_us, timeline.end_us))
    if len(rank) > MOST_INTERVALS:
        rank, state, begin, end = _coarse(rank, state, begin, end, timeline.span_us)
    first = np.searchsorted(rank, chosen)
    packed = begin.astype("<f4").tobytes() + end.astype("<f4").tobytes() + state.astype(np.uint8).tobytes()
    return {
        "intervals": len(rank),
        "states": _packed(np.frombuffer(packed, np.uint8)),
        "ranks": [[r, names[r], at] for r, at in zip(chosen.tolist(), first.tolist(), strict=True)],
        "note": f"{len(chosen)} of {len(ranks):,}, evenly spread" if len(chosen) < len(ranks) else "",
    }


def _coarse(
    rank: npt.NDArray[Any], state: npt.NDArray[Any], begin: npt.NDArray[Any], end: npt.NDArray[Any], span: float
) -> tuple[npt.NDArray[Any], ...]:
    """In each of a thousand moments what a rank does then, equal neighbours as one."""
    steps = max(50, MOST_INTERVALS // max(1, len(np.unique(rank))))
    at = np.arange(steps) * span / steps
    parts = []
    for one in np.unique(rank):
        mine = rank == one
        index = np.searchsorted(begin[mine], at, side="right") - 1
        inside = (index >= 0) & (end[mine][np.maximum(index, 0)] > at)
        does = np.where(inside, state[mine][np.maximum(index, 0)].astype(int), -1)
        turns = np.flatnonzero(np.r_[True, does[1:] != does[:-1]])
        ends = np.r_[at[turns[1:]], span]
        shown = does[turns] >= 0
        parts.append((np.full(shown.sum(), one), does[turns][shown], at[turns][shown], ends[shown]))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
