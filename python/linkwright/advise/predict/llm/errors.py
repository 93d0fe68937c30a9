"""How far published runs are from what this package says of them: one table, `errors.toml`, with status and source.

    published / predicted     the middle, and what nine in ten lie between

Training steps get their range from it, and kernels of inference engines their time: the library's choice is simulated,
and a kernel takes its usual multiple of that.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Published over predicted: the middle, and the ends between which nine in ten lie."""

    usual: float
    low: float
    high: float
    rows: int
    status: str
    source: str


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((resources.files(__package__) / "errors.toml").read_text(encoding="utf-8"))


def spread(*keys: str) -> Spread:
    """Return the spread at these keys of the table, such as `("step", "dense")`."""
    found = _table()
    for key in keys:
        found = found[key]
    return Spread(**found)


def of_step(experts: bool, per_node: int) -> Spread:
    """Return the spread of the throughput of training, with or without experts, on nodes of so many GPUs."""
    return spread("step", "dense" if not experts else "experts" if per_node <= 8 else "experts_in_a_rack")


def of_allreduce(size_bytes: int, known: bool) -> Spread:
    """Return the spread of an engine's all-reduce; unless it is `known` to run over NVLink, up to the library's own."""
    bands = [Spread(**{key: value for key, value in row.items() if key != "up_to"}) for row in _table()["allreduce"]]
    size = next(place for place, row in enumerate(_table()["allreduce"]) if size_bytes <= row.get("up_to", size_bytes))
    own, library = bands[size], bands[-1]
    return own if known else Spread(library.usual, own.low, library.high, 0, "assumed", library.source)
