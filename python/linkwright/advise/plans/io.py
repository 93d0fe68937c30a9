"""Which transport completes a request and its reply soonest, and what each one costs.

On a described machine, the probe `round_trip` answers exactly for the requested sizes. A run answers from its measured
round trips: at these sizes if it has them, otherwise by interpolation between the sizes on either side, linear in the
bytes of each direction, because a round trip is a start-up plus a cost per byte. Sizes beyond those measured are
refused, because the answer would be a guess.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linkwright.base.errors import StoreError, UsageError, WaivedError
from linkwright.base.units import format_size, parse_size

PROBE = "round_trip"
_MEAN, _P99, _MEDIAN = "round_trip_mean", "round_trip_p99", "round_trip_p50"
Sizes = tuple[int, int]


@dataclass(frozen=True)
class Choice:
    """One transport at the requested sizes."""

    transport: str
    mean_ns: float
    p99_ns: float
    between: bool = False  # interpolated between measured sizes


def on_model(machine, in_bytes: int, out_bytes: int) -> list[Choice]:
    """Every transport of a described machine, the fastest first."""
    from linkwright import _native

    about = next(probe for probe in _native.probes() if probe["key"] == PROBE)
    words = next(axis["words"] for axis in about["axes"] if axis["key"] == "transport")
    found, refusals = [], {}
    for word in words:
        try:
            columns = _modelled(machine, transport=word, in_bytes=in_bytes, out_bytes=out_bytes)
        except WaivedError as error:
            refusals[word] = error
        else:
            found.append(Choice(word, columns[_MEAN], columns[_P99]))
    if not found:
        # Why a transport that the machine has refuses these sizes explains more than that it lacks the others.
        raise next((refusals[word] for word in refusals if _exists(machine, word)), refusals[words[0]])
    return _ranked(found)


def _modelled(machine, **axes: str | int) -> dict[str, float]:
    from linkwright import _native

    return _native.model_probe(machine, PROBE, axes)["columns"]


def _exists(machine, transport: str) -> bool:
    """Whether the machine has this transport, which then serves the default sizes."""
    try:
        return bool(_modelled(machine, transport=transport))
    except WaivedError:
        return False


def from_rows(rows: Iterable[Mapping[str, object]], in_bytes: int, out_bytes: int, run: str) -> list[Choice]:
    """Every transport measured in a run, the fastest first; `rows` are those of its results."""
    tables: dict[str, dict[str, dict[Sizes, float]]] = {}
    for row in rows:
        if row["algorithm"] != PROBE or row["value"] is None or row["metric"] not in (_MEAN, _P99, _MEDIAN):
            continue
        axes = dict(pair.split("=", 1) for pair in str(row["axes"] or "").split())
        metrics = tables.setdefault(axes.get("transport", "user_buffers"), {})
        sizes = int(row["size_bytes"] or 64), parse_size(axes.get("out_bytes", "64"))
        metrics.setdefault(str(row["metric"]), {})[sizes] = float(row["value"])
    if not tables:
        raise StoreError(
            f"{run}: holds no measured round trips; measure some with "
            f"`linkwright run {PROBE} -x in_bytes=64..16K -x out_bytes=64..16K`"
        )
    found = []
    for transport, metrics in tables.items():
        times = metrics.get(_MEAN) or metrics.get(_MEDIAN, {})
        mean, p99 = (_between(cells, in_bytes, out_bytes) for cells in (times, metrics.get(_P99, {})))
        if mean is not None:
            between = (in_bytes, out_bytes) not in times
            found.append(Choice(transport, mean, math.nan if p99 is None else p99, between))
    if not found:
        raise UsageError(f"{run}: {_extent(tables)}; ask for sizes between these, or measure others")
    return _ranked(found)


def _ranked(found: list[Choice]) -> list[Choice]:
    return sorted(found, key=lambda choice: (choice.mean_ns, choice.transport))


def _extent(tables: Mapping[str, Mapping[str, Mapping[Sizes, float]]]) -> str:
    sizes = [sizes for metrics in tables.values() for cells in metrics.values() for sizes in cells]
    spans = [f"{format_size(min(each))} to {format_size(max(each))} B" for each in zip(*sizes, strict=True)]
    return f"round trips are measured for {spans[0]} in and {spans[1]} out"


def _between(cells: Mapping[Sizes, float], in_bytes: int, out_bytes: int) -> float | None:
    """The value at these sizes, bilinear between the four around them; None outside the measured range."""
    around = [_neighbours({pair[k] for pair in cells}, size) for k, size in enumerate((in_bytes, out_bytes))]
    if not all(around):
        return None
    corners = [((i, o), share_in * share_out) for (i, share_in), (o, share_out) in itertools.product(*around)]
    if any(sizes not in cells for sizes, _ in corners):
        return None
    return sum(share * cells[sizes] for sizes, share in corners)


def _neighbours(sizes: set[int], size: int) -> list[tuple[int, float]]:
    """The sizes on either side with their weights: one if `size` itself is measured, none outside the range."""
    if size in sizes:
        return [(size, 1.0)]
    below, above = [s for s in sizes if s < size], [s for s in sizes if s > size]
    if not below or not above:
        return []
    low, high = max(below), min(above)
    share = (size - low) / (high - low)
    return [(low, 1 - share), (high, share)]
