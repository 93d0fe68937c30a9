"""From samples or from a simulation to tidy rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from linkwright import probes
from linkwright.stats import bandwidth
from linkwright.stats.summary import Summary, enough_launches, summarise, tolerance_of
from linkwright.store import peace, schema

from . import axes, probe_rows
from .experiment import Experiment
from .probe import moved

Row = dict[str, object]


@dataclass(frozen=True)
class Context:
    """What every row of a run on one target has in common."""

    run: str
    suite: str
    machine: str
    executor: str
    endpoint_names: tuple[str, ...]
    watts: float | None = None  # nominal power, where the user gave it
    # The experiment of the last row with what its rows have in common: they come one after the other.
    _last: list = field(default_factory=list, compare=False, repr=False)

    def row(self, experiment: Experiment, metric: str, **values: object) -> Row:
        """A row about `experiment`; the unit follows from the metric, unless a probe says it."""
        if not self._last or self._last[0] is not experiment:
            self._last[:] = experiment, self._common(experiment)
        unit = schema.METRICS[metric][0] if metric in schema.METRICS else None
        return schema.changed(self._last[1], **{"metric": metric, "unit": unit, "status": None, **values})

    def _common(self, experiment: Experiment) -> Row:
        placement = experiment.placement
        named = [self.endpoint_names[i] for i in placement] if placement else []
        return schema.row(
            run=self.run,
            experiment=experiment.key,
            suite=self.suite,
            machine=self.machine,
            executor=self.executor,
            collective=experiment.collective,
            algorithm=experiment.algorithm,
            ranks=experiment.ranks,
            size_bytes=experiment.size_bytes,
            dtype=experiment.dtype,
            op=experiment.op,
            placement="->".join(named) if named else "topology",
            issue=experiment.issue,
            path=experiment.path,
            axes=_axes_of(experiment),
            status="ok",
        )


def _axes_of(experiment: Experiment) -> str | None:
    if experiment.axes is None:
        return None
    return axes.label(probes.find(experiment.algorithm), dict(experiment.axes)) or None


def without_value(context: Context, experiment: Experiment, status: str, reason: str) -> list[Row]:
    """The row of an experiment that gave no number: `waived` or `failed`."""
    return [context.row(experiment, "time", status=status, reason=reason)]


@dataclass(frozen=True)
class Simulated:
    """What a simulation found, in the units of the rows."""

    rank_times_ns: np.ndarray
    time_ns: float
    limit_ns: float | None
    limit_name: str | None
    counts: dict[str, float]  # metric -> value: hops, byte-hops, load
    critical_share: float | None
    critical_cause: str | None


def of_simulation(
    context: Context,
    experiment: Experiment,
    metrics: Sequence[str],
    found: Simulated,
    notes: Sequence[str] = (),
) -> list[Row]:
    """Rows of a modelled experiment: exact, so without interval; `notes` are what a reader must know of it."""
    reasons = [*([] if experiment.arithmetic else ["without arithmetic"]), *notes]
    ok = {"status": "ok", "reason": "; ".join(reasons) or None}
    rows = [
        context.row(experiment, "time", value=found.time_ns, limit=found.limit_ns, limit_name=found.limit_name, **ok)
    ]
    rows += _derived(context, experiment, metrics, rows[0])
    if experiment.placement:
        return rows  # one of thousands of cells of a matrix: its time is what it is for
    ranks = found.rank_times_ns
    spread = {
        "time_rank_mean": ranks.mean(),
        "time_rank_min": ranks.min(),
        "time_rank_median": np.median(ranks),
        "time_rank_p95": np.percentile(ranks, 95),
    }
    rows += [context.row(experiment, m, value=float(v), **ok) for m, v in {**spread, **found.counts}.items()]
    if found.critical_share is not None:
        share = {"value": found.critical_share, "status": "ok", "reason": found.critical_cause}
        rows.append(context.row(experiment, "critical_share", **share))
    return rows


def of_modelled_probe(context: Context, experiment: Experiment, found: probes.Modelled) -> list[Row]:
    """Rows of a probe that a described machine answers: exact, so without interval."""
    time = context.row(experiment, "time", value=found.time_ns, status="ok")
    columns = {metric: {"value": value} for metric, value in found.columns.items()}
    carried = {"counted_rate": found.counted_bytes, "moved_rate": found.moved_bytes, "work_rate": found.work}
    return [time, *probe_rows.derived(context, experiment, time, carried, columns)]


@dataclass(frozen=True)
class Measured:
    """All launches of one experiment."""

    launches: tuple[np.ndarray, ...]  # samples of the slowest rank
    first_ns: float
    dropped: dict[str, int]  # reason -> samples
    notes: tuple[str, ...]  # what a reader must know of the values
    probes: tuple[tuple[float | None, float | None], ...] = ()  # a ping-pong before and after, in ns, by launch
    in_a_row: tuple[tuple[float, float], ...] = ()  # first and last of five without a barrier, in ns, by launch
    clocks_hz: tuple[float, ...] = ()  # of the slowest processor after the experiment, by launch
    unrest: str | None = None  # what went on in every launch, where none was left in peace
    # Error of the ranks' clocks in ns and how they start together, by launch; empty where they share one clock.
    syncs: tuple[tuple[float, str], ...] = ()
    carried: dict[str, float] = field(default_factory=dict)  # by kind of rate: bytes, work of one operation of a probe
    columns: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)  # other metrics of a probe, by launch
    limit: tuple[float, str] | None = None  # that whoever measured knows, in ns, with its name
    watts: float | None = None  # drawn meanwhile, median of the launches that saw it

    @classmethod
    def of(cls, records: Sequence[dict]) -> Measured | None:
        """From the records of launches, as the journal holds them; None where none kept a sample."""
        kept, set_aside = peace.counting(records)
        if not kept:
            return None
        columns = [record.get("columns", {}) for record in kept]
        return cls(
            launches=tuple(np.array(record["values_ns"]) for record in kept),
            first_ns=kept[0]["first_ns"],
            dropped=_with_set_aside(dropped_samples(records), set_aside),
            notes=tuple(dict.fromkeys(note for record in kept for note in record["notes"])),
            probes=tuple(tuple(record.get("probe_ns", (None, None))) for record in kept),
            in_a_row=tuple(tuple(record["row_ns"]) for record in kept if record.get("row_ns")),
            clocks_hz=tuple(record["clock_hz"] for record in kept if record.get("clock_hz")),
            unrest=_unrest(kept) if peace.disturbed(kept[0]) else None,
            syncs=tuple((record["residual_ns"], record["sync"]) for record in kept if "sync" in record),
            carried={
                "counted_rate": kept[0].get("counted_bytes", 0),
                "moved_rate": kept[0].get("moved_bytes", 0),
                "work_rate": kept[0].get("work", 0),
            },
            columns={
                metric: tuple(np.array(its[metric]) for its in columns if metric in its)
                for metric in dict.fromkeys(itertools.chain(*columns))
            },
            limit=(kept[0]["limit_ns"], kept[0]["limit_name"]) if "limit_ns" in kept[0] else None,
            watts=_median(record.get("watts") for record in kept),
        )

    def summary(self) -> Summary:
        """The statistics of the samples."""
        return summarise(self.launches)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value]
    return float(np.median(known)) if known else None


def _probe_medians(found: Measured) -> dict[str, float]:
    """Median of the probes before and after, over launches; empty where there were none."""
    sides = zip(("probe_before", "probe_after"), zip(*found.probes, strict=True), strict=False)
    medians = {name: _median(values) for name, values in sides}
    return {name: value for name, value in medians.items() if value}


def _row_medians(found: Measured) -> dict[str, float]:
    """Median over launches of the first and the last of a row; empty where none could be timed."""
    if not found.in_a_row:
        return {}
    first, last = np.median(found.in_a_row, axis=0)
    return {"time_row_first": float(first), "time_row_last": float(last)}


def dropped_samples(records: Sequence[dict]) -> dict[str, int]:
    """Samples dropped over all launches, by reason."""
    dropped: dict[str, int] = {}
    for record in records:
        for reason, count in record["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + count
    return dropped


def _unrest(records: Sequence[dict]) -> str:
    """What went on, where it did so in every launch."""
    busy = max(record.get("foreign") or 0 for record in records)
    change = max((record.get("clock_change") or 0 for record in records), key=abs)
    load = f"others kept up to {busy:g} processors busy" if busy else ""
    moved = f"the clock of a processor changed by up to {change:+.1%}" if change else ""
    return f"{' or '.join(filter(None, [load, moved]))} {peace.IN_EVERY_LAUNCH}"


def _with_set_aside(dropped: dict[str, int], set_aside: Sequence[dict]) -> dict[str, int]:
    """What the guards dropped, and the samples of launches that were set aside whole."""
    dropped = {**dropped, **dict.fromkeys(peace.REASONS, 0)}
    for record in set_aside:
        dropped[peace.disturbed(record)] += len(record["values_ns"])
    return dropped


def settled(measured: Measured, size_bytes: int | None) -> bool:
    """Whether enough launches agree closely enough to stop."""
    summary = measured.summary()
    return measured.unrest is None and enough_launches(summary.launches) and summary.converged(tolerance_of(size_bytes))


def of_samples(
    context: Context,
    experiment: Experiment,
    metrics: Sequence[str],
    found: Measured,
    limit: tuple[float, str] | None = None,
) -> list[Row]:
    """Rows of a measured experiment: the median with its interval, its limit (ns, name), the spread, the modes."""
    summary = found.summary()
    ok = settled(found, experiment.size_bytes)
    reasons = [*found.notes, *filter(None, [moved(found.probes)])]
    if not ok:
        reasons.insert(0, _why_unconverged(found, summary, experiment))
    if len(summary.modes) == 2:
        reasons.append(" and ".join(f"{m.median:.4g} ns in {m.share:.0%}" for m in summary.modes) + " of launches")
    common = {
        "status": "ok" if ok else "unconverged",
        "reason": "; ".join(reasons) or None,
        "n": summary.launches,
    }
    bound = dict(zip(("limit", "limit_name"), limit, strict=True)) if limit else {}
    time = context.row(
        experiment, "time", value=summary.median, ci_low=summary.ci_low, ci_high=summary.ci_high, **bound, **common
    )
    if experiment.probe:
        columns = {metric: _column(launches) for metric, launches in found.columns.items()}
        rows = [time, *probe_rows.derived(context, experiment, time, found.carried, columns, found.watts)]
    else:
        rows = [time, *_derived(context, experiment, metrics, time)]
    spread = {
        "time_min": summary.min,
        "time_p95": summary.p95,
        "time_p99": summary.p99,
        "time_max": summary.max,
        "time_first": found.first_ns,
        "samples": float(summary.samples),
        **_probe_medians(found),
        **_row_medians(found),
        **({"clock": float(np.median(found.clocks_hz))} if found.clocks_hz else {}),
    }
    rows += [context.row(experiment, metric, value=value, **common) for metric, value in spread.items()]
    dropped = ", ".join(f"{count} {reason}" for reason, count in found.dropped.items() if count) or None
    rows.append(
        context.row(experiment, "dropped", value=float(sum(found.dropped.values())), status="ok", reason=dropped)
    )
    if found.syncs:
        methods = ", ".join(dict.fromkeys(method for _, method in found.syncs))
        worst = max(error for error, _ in found.syncs)
        rows.append(context.row(experiment, "sync_residual", value=worst, status="ok", reason=methods))
    if len(summary.modes) == 2:
        for number, mode in enumerate(summary.modes, 1):
            rows.append(context.row(experiment, f"mode{number}", value=mode.median, **common))
            rows.append(context.row(experiment, f"mode{number}_share", value=mode.share, **common))
    return rows


def _column(launches: Sequence[np.ndarray]) -> dict[str, float | None]:
    summary = summarise(launches)
    return {"value": summary.median, "ci_low": summary.ci_low, "ci_high": summary.ci_high}


def _why_unconverged(found: Measured, summary: Summary, experiment: Experiment) -> str:
    if found.unrest:
        return found.unrest
    if summary.ci_low is None:
        return f"{summary.launches} launches in the time budget; an interval needs 6"
    half_width = (summary.ci_high - summary.ci_low) / 2 / summary.median
    return f"interval +-{half_width:.1%}, wanted {tolerance_of(experiment.size_bytes):.0%}"


def _derived(context: Context, experiment: Experiment, metrics: Sequence[str], time: Row) -> Iterable[Row]:
    """Latency and rates follow from the row of the time, interval and limit included."""
    copied = {key: time[key] for key in ("status", "reason", "n", "limit_name")}
    ends = {key: time[key] for key in ("value", "limit")}
    for metric in metrics:
        if metric == "latency":
            halves = {key: _half(time[key]) for key in ("value", "ci_low", "ci_high", "limit")}
            yield context.row(experiment, metric, **halves, **copied)
        elif metric in ("bandwidth", "alg_bw", "bus_bw"):
            rates = {key: _rate(metric, experiment, ns) for key, ns in ends.items()}
            # The shortest time is the highest rate.
            rates["ci_low"] = _rate(metric, experiment, time["ci_high"])
            rates["ci_high"] = _rate(metric, experiment, time["ci_low"])
            if rates["value"] is not None:
                yield context.row(experiment, metric, **rates, **copied)


def _half(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / 2


def _rate(metric: str, experiment: Experiment, time_ns: float | None) -> float | None:
    if time_ns is None or (experiment.collective and experiment.ranks == 1):
        return None  # one rank moves nothing, so it has no rate
    if metric == "bus_bw":
        return bandwidth.bus_bw(experiment.collective or "", experiment.ranks, experiment.size_bytes, time_ns)
    size = experiment.size_bytes
    if metric == "bandwidth":
        size *= experiment.messages * (experiment.ranks // 2)
    return bandwidth.alg_bw(size, time_ns)
