"""Which transport brings a request to the other side and the reply back soonest, and what each costs.

Two sources, one answer: the probe `round_trip` on a described machine, exactly at the sizes asked for; or the round
trips that a run has measured, at these sizes where it has them, else between the sizes on either side (linear in the
bytes of each direction, since a round trip is a start-up and a cost per byte; a result beyond the sizes measured would
be a guess and is refused).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from linkwright.errors import StoreError, UsageError, WaivedError
from linkwright.units import format_size

PROBE = "round_trip"
_MEAN, _P99, _MEDIAN = "round_trip_mean", "round_trip_p99", "round_trip_p50"
Sizes = tuple[int, int]


@dataclass(frozen=True)
class Choice:
    """One transport at the sizes asked for."""

    transport: str
    mean_ns: float
    p99_ns: float
    between: bool = False  # whether it lies between measured sizes


def on_model(machine, in_bytes: int, out_bytes: int) -> list[Choice]:
    """Every transport of a described machine, the fastest first."""
    from linkwright import _native

    about = next(probe for probe in _native.probes() if probe["key"] == PROBE)
    words = next(axis["words"] for axis in about["axes"] if axis["key"] == "transport")
    found, refusals = [], []
    for word in words:
        axes = {"transport": word, "in_bytes": in_bytes, "out_bytes": out_bytes}
        try:
            columns = _native.model_probe(machine, PROBE, axes)["columns"]
        except WaivedError as error:
            refusals.append(error)
            continue
        found.append(Choice(word, columns[_MEAN], columns[_P99]))
    if not found:
        # A machine that knows some transport refuses others for being absent, which explains nothing.
        told = [error for error in refusals if "has no transport" not in str(error)]
        raise (told or refusals)[0]
    return _ranked(found)


def from_rows(rows: Iterable[Mapping[str, object]], in_bytes: int, out_bytes: int, run: str) -> list[Choice]:
    """Every transport measured in a run, the fastest first; `rows` are those of its results."""
    tables: dict[str, dict[str, dict[Sizes, float]]] = {}
    for row in rows:
        if row["algorithm"] != PROBE or row["value"] is None or row["metric"] not in (_MEAN, _P99, _MEDIAN):
            continue
        axes = dict(pair.split("=", 1) for pair in str(row["axes"] or "").split())
        transport = axes.get("transport", "user_buffers")
        out = int(_size(axes.get("out_bytes", "64")))
        metric = tables.setdefault(transport, {}).setdefault(str(row["metric"]), {})
        metric[int(row["size_bytes"] or 64), out] = float(row["value"])
    if not tables:
        raise StoreError(
            f"{run}: holds no measured round trips; measure some with "
            f"`linkwright probe {PROBE} -x in_bytes=64..16K -x out_bytes=64..16K`"
        )
    found = []
    for transport, metrics in tables.items():
        mean = _between(metrics.get(_MEAN) or metrics.get(_MEDIAN, {}), in_bytes, out_bytes)
        p99 = _between(metrics.get(_P99, {}), in_bytes, out_bytes)
        if mean is not None:
            exact = (in_bytes, out_bytes) in (metrics.get(_MEAN) or metrics.get(_MEDIAN, {}))
            found.append(Choice(transport, mean, p99 if p99 is not None else float("nan"), not exact))
    if not found:
        raise UsageError(f"{run}: {_extent(tables)}; ask for sizes between these, or measure others")
    return _ranked(found)


def _size(text: str) -> int:
    from linkwright.units import parse_size

    return parse_size(text)


def _ranked(found: list[Choice]) -> list[Choice]:
    return sorted(found, key=lambda choice: (choice.mean_ns, choice.transport))


def _extent(tables: Mapping[str, Mapping[str, Mapping[Sizes, float]]]) -> str:
    sizes = [sizes for metrics in tables.values() for cells in metrics.values() for sizes in cells]
    spans = [f"{format_size(min(each))} to {format_size(max(each))} B" for each in zip(*sizes, strict=True)]
    return f"round trips are measured for {spans[0]} in and {spans[1]} out"


def _between(cells: Mapping[Sizes, float], in_bytes: int, out_bytes: int) -> float | None:
    """The value at these sizes, bilinear between the four around them; None beyond what is there."""
    around = [_neighbours({pair[k] for pair in cells}, size) for k, size in enumerate((in_bytes, out_bytes))]
    if not all(around):
        return None
    total = 0.0
    for (i, share_in), (o, share_out) in itertools.product(*around):
        if (i, o) not in cells:
            return None
        total += share_in * share_out * cells[i, o]
    return total


def _neighbours(sizes: set[int], size: int) -> list[tuple[int, float]]:
    """The sizes on either side with their weights; one where it is there, none beyond."""
    if size in sizes:
        return [(size, 1.0)]
    below, above = [s for s in sizes if s < size], [s for s in sizes if s > size]
    if not below or not above:
        return []
    low, high = max(below), min(above)
    share = (size - low) / (high - low)
    return [(low, 1 - share), (high, share)]
