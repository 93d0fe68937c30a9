"""`--wide`: the columns of nccl-tests first, so that existing parsers work, then all others, in lines of any length.

    size count type redop root time algbw busbw #wrong | interval | spread over ranks | limit, hops, load

A line is printed as soon as its number is final. Lines without a row of numbers begin with `#`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright.ask.question import Collective, Pattern, Probe, Question, Scheduled, collectives
from linkwright.base.units import GIGA, NS_PER_US
from linkwright.executors import probes
from linkwright.session.suite.context import Row
from linkwright.show import shown

Metrics = dict[str, Row]
_ENDS = ("ci_low", "ci_high")
# Flags that the status shows, because a reader must know them at once.
MARKS = ("oversubscribed", "unpinned", "unchecked", "no-arithmetic", "folded", "disturbed")


def flags(time: Row) -> list[str]:
    """The flags of a row that a reader must know at once."""
    found = str(time["flags"] or "").split(",")
    return [mark for mark in MARKS if mark in found]


def percent(share: object) -> str:
    """`1.2` from 0.012: a column headed by `%` has no sign of its own."""
    return "-" if not isinstance(share, float) else f"{100 * share:,.0f}" if share >= 1 else f"{100 * share:.1f}"


def share_of(time: Row, bound: str) -> float | None:
    """The share of a bound on the time, the column `bound`, that was reached."""
    return time[bound] / time["value"] if time[bound] and time["value"] else None


def _us(row: Row | None, key: str = "value") -> str:
    return "-" if row is None or row[key] is None else f"{row[key] / NS_PER_US:.2f}"


def _gb(row: Row | None) -> str:
    return "-" if row is None or row["value"] is None else f"{row['value'] / GIGA:.2f}"


def _count(row: Row | None) -> str:
    return "-" if row is None else f"{row['value']:.4g}" if row["value"] < 1e6 else f"{row['value']:.3e}"


def _share(metrics: Metrics) -> str:
    share = metrics.get("critical_share")
    return "-" if share is None else f"{100 * share['value']:.0f}% {share['reason']}"


def _status(metrics: Metrics) -> str:
    time = metrics["time"]
    return ",".join([str(time["status"]), *flags(time)])


# (header, unit, width, text of the metrics of one experiment); columns to the right of those of nccl-tests.
Column = tuple[str, str, int, Callable[[Metrics], str]]
MEASURED: tuple[Column, ...] = (
    ("low", "(us)", 10, lambda m: _us(m["time"], "ci_low")),
    ("high", "(us)", 10, lambda m: _us(m["time"], "ci_high")),
    ("+-", "(%)", 6, lambda m: percent(m["time"]["precision"])),
    ("grade", "", 7, lambda m: str(m["time"]["grade"] or "-")),
    ("launches", "", 9, lambda m: "-" if m["time"]["n"] is None else str(m["time"]["n"])),
    ("limit", "(%)", 6, lambda m: percent(share_of(m["time"], "limit"))),
    ("best", "(%)", 6, lambda m: percent(share_of(m["time"], "best_seen"))),
    ("status", "", 11, _status),
)
MODELLED: tuple[Column, ...] = (
    ("mean", "(us)", 10, lambda m: _us(m.get("time_rank_mean"))),
    ("min", "(us)", 10, lambda m: _us(m.get("time_rank_min"))),
    ("median", "(us)", 10, lambda m: _us(m.get("time_rank_median"))),
    ("p95", "(us)", 10, lambda m: _us(m.get("time_rank_p95"))),
    ("limit", "(us)", 10, lambda m: _us(m["time"], "limit")),
    ("by", "", 8, lambda m: str(m["time"]["limit_name"] or "-")),
    ("limit", "(%)", 6, lambda m: percent(share_of(m["time"], "limit"))),
    ("bound", "(us)", 10, lambda m: _us(m["time"], "bound")),
    ("by", "", 8, lambda m: str(m["time"]["bound_name"] or "-")),
    ("hops", "(max)", 5, lambda m: _count(m.get("hops_max"))),
    ("hops", "(mean)", 6, lambda m: _count(m.get("hops_mean"))),
    ("byte-hops", "", 10, lambda m: _count(m.get("byte_hops"))),
    ("load", "(peak)", 6, lambda m: _count(m.get("peak_link_load"))),
    ("critical", "(share)", 18, _share),
    ("status", "", 11, _status),
)


def columns(modelled: bool) -> tuple[Column, ...]:
    """The columns to the right of those of nccl-tests."""
    return MODELLED if modelled else MEASURED


def heads(modelled: bool) -> list[str]:
    """The two lines above the columns."""
    head = f"#{'size':>11} {'count':>11} {'type':>6} {'redop':>6} {'root':>5} {'time':>10} {'algbw':>8}"
    unit = f"#{'(B)':>11} {'(elements)':>11} {'':>6} {'':>6} {'':>5} {'(us)':>10} {'(GB/s)':>8}"
    head += f" {'busbw':>8} {'#wrong':>6}"
    unit += f" {'(GB/s)':>8} {'':>6}"
    more = columns(modelled)
    return [
        head + "".join(f" {name:>{width}}" for name, _, width, _ in more),
        (unit + "".join(f" {of:>{width}}" for _, of, width, _ in more)).rstrip(),
    ]


def round_trips(question: Question, metrics: Metrics) -> str | None:
    """What `time` and `latency` mean of a pattern that goes to and fro; None of anything else."""
    if "latency" not in metrics or not isinstance(question, Pattern):
        return None
    trips = "a round trip" if question.messages == 1 else f"{question.messages} round trips"
    return f"time is that of {trips}, latency half of one"


def heading(question: Question, metrics: Metrics) -> str:
    """The line above those of one algorithm or probe."""
    if not isinstance(question, Scheduled):
        own = "" if question.part == question.what else f"{question.part}: "
        return f"# {own}probe {question.what}"
    meaning = round_trips(question, metrics)
    return f"# {question.part}: {question.algorithm_key}, {question.ranks} ranks" + (f"; {meaning}" if meaning else "")


def line(question: Scheduled, metrics: Metrics, modelled: bool) -> str:
    """The line of a collective or a pattern."""
    rate = metrics.get("alg_bw") or metrics.get("bandwidth")
    checked = not modelled and "unchecked" not in flags(metrics["time"])
    values = (
        f"{question.size_bytes:>12} {question.elements:>11}",
        f"{question.dtype:>6} {question.op or 'none':>6} {_root(question):>5}",
        f"{_us(metrics['time']):>10} {_gb(rate):>8} {_gb(metrics.get('bus_bw')):>8}",
        f"{'0' if checked else '-':>6}",
    )
    return " ".join(values) + "".join(f" {text(metrics):>{width}}" for _, _, width, text in columns(modelled))


def probe_line(question: Probe, metrics: Metrics, asked: Sequence[str]) -> str:
    """A probe does not fit the columns of nccl-tests: `# working_set=64K  latency 3.69 ns [3.66, 3.71]  ok`."""
    probe = probes.find(question.algorithm)
    own = [metrics[m.key] for m in probe.metrics if m.key in metrics]
    axes = [f"{key}={text}" for key, text in axis_texts(probe, question).items() if key in asked]
    named = list(dict.fromkeys([*question.named, *axes]))
    return "#   " + "  ".join(["  ".join(named) or "defaults", *map(_with_interval, own), _status(metrics)])


def axis_texts(probe: probes.ProbeKind, question: Probe) -> dict[str, str]:
    """The value of every axis of a probe as people write it."""
    return {key: probe.axis(key).text(value) for key, value in question.axes}


def _with_interval(row: Row) -> str:
    ends = (
        "" if row["ci_low"] is None else " [{}, {}]".format(*(shown.value({**row, "value": row[end]}) for end in _ENDS))
    )
    reached = f" {100 * row['value'] / row['limit']:.0f} % of limit" if row["limit"] and _is_rate(row) else ""
    return f"{row['metric']} {shown.value(row)}{ends}{reached}"


def _is_rate(row: Row) -> bool:
    return str(row["unit"]).endswith("/s")


def _root(question: Scheduled) -> int:
    """The root, or -1 for a collective without one, as nccl-tests prints it."""
    rooted = isinstance(question, Collective) and collectives()[question.collective]["rooted"]
    return question.root if rooted else -1
