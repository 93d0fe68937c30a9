"""The axes of a probe in a suite, expanded for one machine.

    working_set = { min = "4K", max = "8 * last_cache", factor = 2 }      a sweep of sizes
    pages = ["4K", "2M"]                                                  a list of values
    neighbours = [0, "others"]                                            counts, or words that a machine fills in
    threads = "doubling"

A size may be a multiple of `last_cache`, a count one of `all`, `others` (all but one) and `doubling` (1, 2, 4 ... all),
and `all` stands for every word of an axis of words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from linkwright import units
from linkwright.errors import SuiteError
from linkwright.experiment import Experiment
from linkwright.probes import Axis, Probe, Value

_MULTIPLE = re.compile(r"(\d+)\s*\*\s*last_cache", re.ASCII)


def experiments(
    part: str, probe: Probe, axes: dict[str, object], ranks: int, last_cache: int, placements: list[tuple[int, ...]]
) -> Iterator[Experiment]:
    """Every combination of the values of the axes, on every placement (on none: topology order)."""
    values = [
        _values(part, probe.axis(key), stated, ranks, last_cache) if key in axes else [probe.axis(key).read(default)]
        for key, stated, default in ((axis.key, axes.get(axis.key), axis.default) for axis in probe.axes)
    ]
    for key in axes:
        probe.axis(key)
    for chosen in itertools.product(*values):
        assigned = dict(zip((axis.key for axis in probe.axes), chosen, strict=True))
        for placement in placements or [None]:
            size = assigned[probe.size_axis] if probe.size_axis else None
            named = tuple(
                f"{axis.key}={axis.text(assigned[axis.key])}"
                for axis in probe.axes
                if axis.key == probe.size_axis or axis.text(assigned[axis.key]) != axis.default
            )
            together = int(assigned.get("threads", len(placement) if placement else 1))
            yield Experiment(
                part, None, probe.key, together, size, dtype=None, placement=placement,
                axes=tuple(assigned.items()), named=named,
            )  # fmt: skip


def label(probe: Probe, assigned: dict[str, Value]) -> str:
    """The values that have no column of their own: `order=random pages=4K`."""
    own = (axis for axis in probe.axes if axis.key not in (probe.size_axis, "threads"))
    return " ".join(f"{axis.key}={axis.text(assigned[axis.key])}" for axis in own)


def _values(part: str, axis: Axis, stated: object, ranks: int, last_cache: int) -> list[Value]:
    if isinstance(stated, dict):
        return _sweep(part, axis, stated, last_cache)
    found: list[Value] = []
    for text in stated if isinstance(stated, list) else [stated]:
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
    if axis.kind != "bytes" or stated.keys() != {"min", "max", "factor"}:
        raise SuiteError(f"{part}: axis {axis.key}: a sweep of sizes is {{ min = .., max = .., factor = .. }}")
    low, high = (_size(axis, str(stated[end]), last_cache) for end in ("min", "max"))
    return list(units.size_sweep(low, max(low, high), stated["factor"]))


def _size(axis: Axis, text: str, last_cache: int) -> int:
    multiple = _MULTIPLE.fullmatch(text.strip())
    return int(multiple[1]) * last_cache if multiple else int(axis.read(text))
