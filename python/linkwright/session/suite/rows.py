"""From samples or from a simulation to tidy rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linkwright.ask import schedules
from linkwright.ask.answer import Answer, Limit
from linkwright.ask.question import Collective, Continued, Probe, Program, Question, Scheduled
from linkwright.base.lazy import np
from linkwright.base.stats import bandwidth
from linkwright.base.stats.summary import Summary, summarise
from linkwright.base.units import in_ns
from linkwright.executors import probes
from linkwright.executors.measured import Measured, median
from linkwright.executors.threads import canary
from linkwright.store.record import NO_ARITHMETIC, Note
from linkwright.store.schema import COMPARED, COMPARED_NAMES

from . import load_rows, probe_rows
from .context import Context, Row
from .probe_rows import SAID

TRAFFIC = Note("traffic", "traffic: order is proved, contents have no meaning")


def without_value(context: Context, question: Question, status: str, reason: str, code: str | None = None) -> list[Row]:
    """The row of an experiment that gave no number: of any status but `ok`."""
    return [context.row(question, "time", status=status, reason=reason, code=code)]


@dataclass(frozen=True)
class Line:
    """What a larger problem is continued from besides its own answer: it has times alone, since nothing else was
    counted. The `limit` is that of the larger problem, which no simulation has seen."""

    others: tuple[Answer, ...]
    stated: Continued
    limit: Limit | None


def of_simulation(
    context: Context,
    question: Scheduled,
    metrics: Sequence[str],
    answer: Answer,
    notes: Sequence[Note] = (),
    line: Line | None = None,
) -> list[Row]:
    """Rows of a modelled experiment: exact, so without interval; `notes` are caveats."""
    ok = _said([*_of_kind(question), *([] if question.arithmetic else [NO_ARITHMETIC]), *notes])
    time_ns, scale = answer.slowest.ns, 1.0
    limit, bound, counts = answer.limit, answer.bound, _counts(answer)
    if line:
        longer_ns, time_ns = time_ns, schedules.line(line.stated, answer, line.others).ns
        scale = time_ns / longer_ns
        limit, bound, counts = line.limit, None, {}
    known = {
        "limit": limit and limit.time.ns, "limit_name": limit and limit.name,
        "bound": bound and bound.time.ns, "bound_name": bound and bound.name, "launch_ns": _launch_ns(question),
    }  # fmt: skip
    rows = [context.row(question, "time", value=time_ns, **known, **ok)]
    rows += _derived(context, question, metrics, rows[0], answer.counts.bytes)
    if question.placement:
        return rows  # one of thousands of cells of a matrix: its time is what it is for
    of_ranks = answer.spread
    spread = {
        "time_rank_mean": of_ranks.mean_ps,
        "time_rank_min": of_ranks.least_ps,
        "time_rank_median": of_ranks.median_ps,
        "time_rank_p95": of_ranks.p95_ps,
    }
    rows += [context.row(question, metric, value=in_ns(ps) * scale, **ok) for metric, ps in spread.items()]
    rows += [context.row(question, metric, value=value, **ok) for metric, value in counts.items()]
    if answer.how.messages:
        took = in_ns(answer.ranks.finish_ps - answer.ranks.start_ps) * scale
        loads = load_rows.modelled(answer.messages.sent_bytes, took, in_ns(answer.messages.latency_ps))
        rows += [context.row(question, metric, **columns, **ok) for metric, columns in loads]
    shares = answer.critical
    if not line and any(shares.values()):
        cause = max(shares, key=shares.__getitem__)
        rows.append(context.row(question, "critical_share", value=shares[cause], status="ok", reason=cause))
    return rows


def _launch_ns(question: Scheduled) -> float:
    """What a modelled time holds for the start of a library."""
    return in_ns(question.own.launch_ps) if question.own else 0.0


def of_launches(
    context: Context, question: Scheduled, metrics: Sequence[str], answers: Sequence[Answer], notes: Sequence[Note] = ()
) -> list[Row]:
    """Rows of a modelled experiment that noise made differ from launch to launch, in the columns of measured ones."""
    summary = summarise([np.array([answer.slowest.ns]) for answer in answers])
    arithmetic = [] if question.arithmetic else [NO_ARITHMETIC]
    common = _said([*_of_kind(question), *arithmetic, *notes, *_of_modes(summary)]) | {"n": summary.launches}
    known: Row = {"launch_ns": _launch_ns(question)}
    for name in ("limit", "bound"):
        # Of random ways and arrivals each launch has its own; the least holds for all.
        if found := [least for answer in answers if (least := getattr(answer, name))]:
            least = min(found, key=lambda one: one.time.ns)
            known |= {name: least.time.ns, f"{name}_name": least.name}
    ends = {"value": summary.median, "ci_low": summary.ci_low, "ci_high": summary.ci_high}
    time = context.measured(question, "time", **ends, **known, **common)
    rows = [time, *_derived(context, question, metrics, time, answers[0].counts.bytes)]
    rows += [context.row(question, metric, value=value, **common) for metric, value in _spread(summary).items()]
    return [*rows, *_modes(context, question, summary, common)]


def _of_modes(summary: Summary) -> list[Note]:
    """The caveat on launches that form two groups."""
    each = " and ".join(f"{mode.median:.4g} ns in {mode.share:.0%}" for mode in summary.modes)
    return [Note("two-modes", f"{each} of launches")] if len(summary.modes) > 1 else []


def _spread(summary: Summary) -> dict[str, float]:
    """Metrics of all samples, and their number."""
    return {
        "time_min": summary.min,
        "time_p95": summary.p95,
        "time_p99": summary.p99,
        "time_max": summary.max,
        "samples": float(summary.samples),
    }


def _modes(context: Context, question: Question, summary: Summary, common: Row) -> Iterable[Row]:
    """The two groups of launches, where there are two."""
    for number, mode in enumerate(summary.modes if len(summary.modes) == 2 else (), 1):
        low, high = mode.interval or (None, None)
        shown = {"value": mode.median, "ci_low": low, "ci_high": high}
        yield context.measured(question, f"mode{number}", **shown, **common)
        yield context.row(question, f"mode{number}_share", value=mode.share, **common)


def _counts(answer: Answer) -> dict[str, float]:
    """By metric."""
    counts = answer.counts
    return {
        "hops_max": float(counts.hops_max),
        "hops_mean": counts.hops_mean,
        "byte_hops": float(counts.byte_hops),
        "peak_link_load": float(counts.peak_load),
    }


def of_modelled_probe(context: Context, question: Probe, found: probes.Modelled) -> list[Row]:
    """Rows of a probe that a described machine answers: exact, so without interval."""
    time = context.row(question, "time", value=found.time_ns, status="ok")
    columns = {metric: {"value": value} for metric, value in found.columns.items()}
    carried = {"counted_rate": found.counted_bytes, "moved_rate": found.moved_bytes, "work_rate": found.work}
    return [time, *probe_rows.derived(context, question, time, carried, columns)]


def _canary_medians(found: Measured) -> dict[str, float]:
    """Median of the canaries before and after, over launches; empty if there were none."""
    sides = zip(("canary_before", "canary_after"), zip(*found.canaries, strict=True), strict=False)
    medians = {name: median(values) for name, values in sides}
    return {name: value for name, value in medians.items() if value}


def _row_medians(found: Measured) -> dict[str, float]:
    """Median over launches of the first and the last of a row; empty if none could be timed."""
    if not found.in_a_row:
        return {}
    first, last = np.median(found.in_a_row, axis=0)
    return {"time_row_first": float(first), "time_row_last": float(last)}


def of_samples(
    context: Context,
    question: Question,
    metrics: Sequence[str],
    found: Measured,
    best: tuple[float, str] | None = None,
) -> list[Row]:
    """Rows of a measured experiment: the median with its interval, what the host gave at `best` (ns, name), the spread,
    the modes."""
    summary = found.summary()
    moved = canary.moved(found.canaries)
    notes = [*found.notes, *([Note("moved", moved)] if moved else []), *_of_modes(summary)]
    common = _said([*_of_kind(question), *([found.disturbance] if found.disturbance else []), *notes])
    common |= {"n": summary.launches}
    known = dict(zip(("limit", "limit_name"), found.limit, strict=True)) if found.limit else {}
    if best:
        # The value itself has been seen, however noise hid what it follows from.
        known |= {"best_seen": min(best[0], summary.median), "best_seen_name": best[1]}
    time = context.measured(
        question, "time", value=summary.median, ci_low=summary.ci_low, ci_high=summary.ci_high, **known, **common
    )
    if isinstance(question, Probe):
        columns = {metric: _column(launches) for metric, launches in found.columns.items()}
        rows = [time, *probe_rows.derived(context, question, time, found.carried, columns, found.watts)]
    else:
        moved = 0 if isinstance(question, Collective) else schedules.moved_bytes(question)
        rows = [time, *_derived(context, question, metrics, time, moved)]
        rows += _loads(context, question, found, common)
    spread = {
        **_spread(summary),
        "time_first": found.first_ns,
        **_canary_medians(found),
        **_row_medians(found),
        **({"clock": float(np.median(found.clocks_hz))} if found.clocks_hz else {}),
    }
    rows += [context.row(question, metric, value=value, **common) for metric, value in spread.items()]
    dropped = ", ".join(f"{count} {reason}" for reason, count in found.dropped.items() if count) or None
    rows.append(context.row(question, "dropped", value=float(sum(found.dropped.values())), status="ok", reason=dropped))
    if found.starts:
        methods = ", ".join(dict.fromkeys(method for _, method in found.starts))
        worst = max(error for error, _ in found.starts)
        rows.append(context.row(question, "sync_residual", value=worst, status="ok", reason=methods))
    return [*rows, *_modes(context, question, summary, common)]


def _loads(context: Context, question: Question, found: Measured, common: Row) -> Iterable[Row]:
    """Rates of endpoints and latencies of messages of a pattern; not of one of many pairs of endpoints."""
    if isinstance(question, Collective) or question.placement:
        return
    sent = schedules.of(question).sent_bytes()
    for metric, columns in load_rows.measured(sent, found.rank_ns, found.message_ns):
        yield context.measured(question, metric, **columns, **common)


def _of_kind(question: Question) -> tuple[Note, ...]:
    """What any value of the experiment says."""
    return (TRAFFIC,) if isinstance(question, Program) else ()


def _column(launches: Sequence[np.ndarray]) -> dict[str, float | None]:
    summary = summarise(launches)
    return {"value": summary.median, "ci_low": summary.ci_low, "ci_high": summary.ci_high}


def _said(notes: Sequence[Note]) -> Row:
    """Status, flags and reason of a row that has a value."""
    flags = dict.fromkeys(note.code for note in notes if note.code != "remark")
    return {
        "status": "ok",
        "code": None,
        "flags": ",".join(flags) or None,
        "reason": "; ".join(note.text for note in notes) or None,
    }


def _derived(
    context: Context, question: Question, metrics: Sequence[str], time: Row, pattern_bytes: int
) -> Iterable[Row]:
    """Latency and rates follow from the row of the time, with its interval and what it is compared with."""
    moved = question.size_bytes if isinstance(question, Collective) else pattern_bytes
    copied = {key: time[key] for key in (*SAID, "n", *COMPARED_NAMES)}
    ends = {key: time[key] for key in ("value", *COMPARED)}
    for metric in metrics:
        if metric == "latency":
            trips = 2 * question.messages
            one_way = {key: time[key] and time[key] / trips for key in ("value", "ci_low", "ci_high", *COMPARED)}
            yield context.measured(question, metric, **one_way, **copied)
        elif metric in ("bandwidth", "alg_bw", "bus_bw"):
            rates = {key: _rate(metric, question, moved, ns) for key, ns in ends.items()}
            # The shortest time is the highest rate.
            rates["ci_low"] = _rate(metric, question, moved, time["ci_high"])
            rates["ci_high"] = _rate(metric, question, moved, time["ci_low"])
            if rates["value"] is not None:
                yield context.measured(question, metric, **rates, **copied)


def _rate(metric: str, question: Question, moved: int, time_ns: float | None) -> float | None:
    collective = question.what if isinstance(question, Collective) else ""
    if time_ns is None or (collective and question.ranks == 1):
        return None  # one rank moves nothing, so it has no rate
    if metric == "bus_bw":
        return bandwidth.bus_bw(collective, question.ranks, question.size_bytes, time_ns)
    return bandwidth.alg_bw(moved, time_ns)
