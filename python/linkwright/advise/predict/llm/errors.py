"""How far published runs are from what this package says of them: one table, `errors.toml`, with status and source.

    published / predicted     the middle, and what nine in ten lie between

Training steps get their range from it, and kernels of inference engines their time: the library's choice is simulated,
and a kernel takes its usual multiple of that.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from linkwright.base import toml
from linkwright.libraries import tolerance


@dataclass(frozen=True)
class Spread:
    """Published over predicted: the middle, and the ends between which nine in ten lie."""

    usual: float
    low: float
    high: float
    rows: int
    status: str
    source: str


_table = functools.partial(toml.data_file, __file__, "errors.toml")


def spread(*keys: str) -> Spread:
    """Return the spread at these keys of the table, such as `("step", "dense")`."""
    found = _table()
    for key in keys:
        found = found[key]
    return Spread(**found)


def of_step(experts: bool, per_node: int) -> Spread:
    """Return the spread of the throughput of training, with or without experts, on nodes of so many GPUs."""
    return spread("step", "dense" if not experts else "experts" if per_node <= 8 else "experts_in_a_rack")


def bands() -> list[float]:
    """Return the largest bytes of each band of all-reduces."""
    return [row.get("up_to", float("inf")) for row in _table()["allreduce"]]


def of_allreduce(size_bytes: int, known: bool) -> Spread:
    """Return the spread of an engine's all-reduce on one node; a wide one unless its kernels there are `known`."""
    rows = [Spread(**{key: value for key, value in row.items() if key != "up_to"}) for row in _table()["allreduce"]]
    own, library = rows[next(place for place, most in enumerate(bands()) if size_bytes <= most)], rows[-1]
    return own if known else Spread(library.usual, own.low, library.high, 0, "assumed", library.source)


def of_library(nodes: int, size_bytes: int) -> Spread:
    """Return the spread of the library's own collectives on several nodes: eight published times in ten."""
    low, high = tolerance.spread(nodes, size_bytes)
    return Spread(1.0, low, high, 0, "derived", "study `modern`: published healthy systems")
