"""The axes of a probe in a suite, expanded for one machine.

    working_set = { min = "4K", max = "8 * last_cache", factor = 2 }      a sweep of sizes
    pages = ["4K", "2M"]                                                  a list of values
    neighbours = [0, "others"]                                            counts, or words that depend on the machine
    threads = "doubling"

A size may be a multiple of `last_cache`. A count may be `all`, `others` (all but one) or `doubling` (1, 2, 4 ... all).
On an axis of words, `all` stands for every word.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from linkwright.ask.question import Probe
from linkwright.base import units
from linkwright.base.errors import FileError
from linkwright.executors.probes import Axis, ProbeKind, Value

# Axes that are the column `ranks` of a row.
_RANKS = ("threads", "ranks")
_MULTIPLE = re.compile(r"(\d+)\s*\*\s*last_cache", re.ASCII)


def questions(
    part: str,
    probe: ProbeKind,
    axes: Mapping[str, object],
    ranks: int,
    last_cache: int,
    placements: Sequence[tuple[int, ...] | None],
) -> Iterator[Probe]:
    """Every combination of the values of the axes, on every placement; `(None,)` is topology order only."""
    for key in axes:
        probe.axis(key)
    values = [
        _values(part, axis, axes[axis.key], ranks, last_cache) if axis.key in axes else [axis.read(axis.default)]
        for axis in probe.axes
    ]
    for chosen, placement in itertools.product(itertools.product(*values), placements):
        assigned = dict(zip((axis.key for axis in probe.axes), chosen, strict=True))
        shown = {axis: axis.text(assigned[axis.key]) for axis in probe.axes}
        named = [axis for axis, text in shown.items() if axis.key == probe.size_axis or text != axis.default]
        yield Probe(
            part, probe.key, int(next((assigned[key] for key in _RANKS if key in assigned), len(placement or (0,)))),
            assigned[probe.size_axis] if probe.size_axis else None, placement=placement,
            axes=tuple(assigned.items()), named=tuple(f"{axis.key}={shown[axis]}" for axis in named),
        )  # fmt: skip


def label(probe: ProbeKind, assigned: dict[str, Value]) -> str:
    """The values without a column of their own: `order=random pages=4K`."""
    own = (axis for axis in probe.axes if axis.key not in (probe.size_axis, *_RANKS))
    return " ".join(f"{axis.key}={axis.text(assigned[axis.key])}" for axis in own)


def _values(part: str, axis: Axis, stated: object, ranks: int, last_cache: int) -> list[Value]:
    if isinstance(stated, dict):
        return _sweep(part, axis, stated, last_cache)
    found: list[Value] = []
    for text in stated:
        if axis.kind == "bytes":
            found.append(_size(axis, str(text), last_cache))
        elif axis.kind == "count" and text in _COUNTS:
            found += _COUNTS[text](ranks)
        elif axis.kind == "word" and text == "all":
            found += axis.words
        else:
            found.append(axis.read(text))
    return list(dict.fromkeys(found))


_COUNTS = {
    "all": lambda ranks: [ranks],
    "others": lambda ranks: [ranks - 1],
    "doubling": lambda ranks: sorted({*(2**k for k in range(31) if 2**k <= ranks), ranks}),
}


def _sweep(part: str, axis: Axis, stated: dict, last_cache: int) -> list[Value]:
    if axis.kind != "bytes":
        raise FileError(f"{part}: axis {axis.key}: only sizes can be swept; list the values")
    ends = [str(stated[end]) for end in ("min", "max")]
    low, high = (_size(axis, text, last_cache) for text in ends)
    # A multiple of a large cache may exceed the end of a sweep, of which its begin is then all.
    if low > high and not any(map(_MULTIPLE.fullmatch, ends)):
        raise FileError(f"{part}: axis {axis.key}: {ends[0]}..{ends[1]} ends before it begins; write the smaller first")
    return list(units.size_sweep(low, max(low, high), stated["factor"]))


def _size(axis: Axis, text: str, last_cache: int) -> int:
    multiple = _MULTIPLE.fullmatch(text.strip())
    return int(multiple[1]) * last_cache if multiple else int(axis.read(text))
