"""The metrics of a probe from the row of its time: the time itself, rates from its bytes, columns of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from linkwright.ask.question import Probe
from linkwright.base.stats import bandwidth
from linkwright.executors import probes
from linkwright.store.schema import COMPARED, COMPARED_NAMES

if TYPE_CHECKING:
    from .context import Context, Row

# Columns that tell how far to trust a value.
SAID = ("status", "code", "flags", "reason")
# The value of a column and the ends of its interval.
Column = Mapping[str, float | None]


def derived(
    context: Context,
    question: Probe,
    time: Row,
    bytes_of: Mapping[str, float],
    columns: Mapping[str, Column],
    drawn_w: float | None = None,
) -> Iterable[Row]:
    """Rows of every metric; `bytes_of` one operation are `counted_rate` and `moved_rate`, its work is `work_rate`.

    Rates of work also come per watt: of the power that was drawn, or else of the user's nominal power.
    """
    watts = drawn_w or context.watts
    said = f"at {drawn_w:.4g} W drawn, by NVML's energy counter" if drawn_w else f"at a nominal {watts or 0:g} W"
    common = {key: time[key] for key in (*SAID, "n")}
    for metric in probes.find(question.algorithm).metrics:
        if metric.source == "time":
            values = {key: time[key] for key in ("value", "ci_low", "ci_high", *COMPARED, *COMPARED_NAMES)}
        elif metric.source == "column":
            values = columns.get(metric.key)
        else:
            values = _rate(bytes_of[metric.source], time)
        if values is not None:
            yield context.measured(question, metric.key, unit=metric.unit, **values, **common)
            if watts and metric.source == "work_rate":
                yield _per_watt(context, question, metric, {**values, **common}, watts, said)


def _rate(carried: float, time: Row) -> dict[str, object] | None:
    if not carried:
        return None

    def rate(time_ns: float | None) -> float | None:
        return None if time_ns is None else bandwidth.alg_bw(carried, time_ns)

    # The shortest time is the highest rate.
    return {
        "value": rate(time["value"]),
        "ci_low": rate(time["ci_high"]),
        "ci_high": rate(time["ci_low"]),
        **{key: rate(time[key]) for key in COMPARED},
        **{key: time[key] for key in COMPARED_NAMES},
    }


def _per_watt(
    context: Context, question: Probe, metric: probes.Metric, rate: dict[str, object], watts: float, said: str
) -> Row:
    """Efficiency; the interval is that of the rate."""
    kept = ("value", "ci_low", "ci_high", *COMPARED)
    ends = {key: None if rate[key] is None else rate[key] / watts for key in kept}
    reason = "; ".join(filter(None, [rate["reason"], said]))
    return context.measured(
        question, f"{metric.key}_per_watt", unit=f"{metric.unit}/W", **{**rate, **ends, "reason": reason}
    )
