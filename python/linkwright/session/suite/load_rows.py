"""Rows about the load that a traffic pattern puts on a machine: rates of single endpoints, latencies of messages.

endpoint_rate_min ... max    bytes that an endpoint sends, over its own time: does every sender get its share?
message_min ... max          percentiles of the latencies of all messages: how long is the tail?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from linkwright.base.lazy import np
from linkwright.base.stats.quantile import percentiles, quantile
from linkwright.base.stats.summary import summarise
from linkwright.base.units import NS_PER_S

Columns = Mapping[str, float | None]

# Metric -> percentile of the latencies of messages.
PERCENTILES = {
    "message_min": 0, "message_p5": 5, "message_p25": 25, "message_p50": 50, "message_p75": 75, "message_p95": 95,
    "message_p99": 99, "message_max": 100,
}  # fmt: skip
_OF_RATES = {"endpoint_rate_min": 0, "endpoint_rate_median": 50, "endpoint_rate_max": 100}


def modelled(sent_bytes: np.ndarray, rank_ns: np.ndarray, latencies_ns: np.ndarray) -> Iterator[tuple[str, Columns]]:
    """Metrics and their values of one simulation."""
    for metric, value in {**_rates(sent_bytes, rank_ns), **_of(percentiles(latencies_ns))}.items():
        yield metric, {"value": value}


def measured(
    sent_bytes: np.ndarray, ranks_ns: Sequence[np.ndarray], messages_ns: Sequence[np.ndarray]
) -> Iterator[tuple[str, Columns]]:
    """Metrics with their intervals over launches: the times of ranks, and the percentiles of each launch."""
    yield from _over([_rates(sent_bytes, ranks) for ranks in ranks_ns])
    yield from _over([_of(found) for found in messages_ns])


def _rates(sent_bytes: np.ndarray, rank_ns: np.ndarray) -> dict[str, float]:
    """The rates of the endpoints that send, in bytes per second."""
    sent = sent_bytes[: len(rank_ns)]
    sends = (sent > 0) & (rank_ns > 0)
    if not sends.any():
        return {}
    rates = np.sort(sent[sends] / rank_ns[sends] * NS_PER_S)
    return {metric: quantile(rates, percent / 100) for metric, percent in _OF_RATES.items()}


def _of(found: Sequence[float]) -> dict[str, float]:
    return {metric: float(found[place]) for metric, place in PERCENTILES.items()} if len(found) else {}


def _over(launches: Iterable[Mapping[str, float]]) -> Iterator[tuple[str, Columns]]:
    """The median of each metric over launches, with its interval."""
    found = list(launches)
    for metric in found[0] if found else ():
        summary = summarise([np.array([launch[metric]]) for launch in found if metric in launch])
        yield metric, {"value": summary.median, "ci_low": summary.ci_low, "ci_high": summary.ci_high}
