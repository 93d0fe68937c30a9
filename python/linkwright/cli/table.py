"""The live table on stdout, with the columns of nccl-tests first, so that existing parsers work.

    size count type redop root time algbw busbw #wrong | interval | spread over ranks | limit, hops, load

A line is printed as soon as its number is final. Lines without a row of numbers begin with `#`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping

import click

from linkwright import probes, units
from linkwright.cli.output import Progress, say
from linkwright.executors import Target
from linkwright.experiment import DTYPES, Experiment
from linkwright.suite.budget import Plan
from linkwright.suite.rows import Row
from linkwright.suite.watcher import Watcher

Metrics = dict[str, Row]


def _us(row: Row | None, key: str = "value") -> str:
    return "-" if row is None or row[key] is None else f"{row[key] / 1e3:.2f}"


def _count(row: Row | None) -> str:
    return "-" if row is None else f"{row['value']:.4g}" if row["value"] < 1e6 else f"{row['value']:.3e}"


def _of_limit(metrics: Metrics) -> str:
    time = metrics["time"]
    return "-" if not time["limit"] or not time["value"] else f"{100 * time['limit'] / time['value']:.1f}"


def _share(metrics: Metrics) -> str:
    share = metrics.get("critical_share")
    return "-" if share is None else f"{100 * share['value']:.0f}% {share['reason']}"


# Flags that the status shows, because a reader must know them at once.
_MARKS = ("oversubscribed", "unpinned", "unchecked", "no-arithmetic", "folded")


def _flags(time: Row) -> list[str]:
    return str(time["flags"] or "").split(",")


def _status(metrics: Metrics) -> str:
    time = metrics["time"]
    flags = _flags(time)
    return ",".join([str(time["status"]), *(mark for mark in _MARKS if mark in flags)])


# (header, unit, width, text of the metrics of one experiment); columns to the right of those of nccl-tests.
Column = tuple[str, str, int, Callable[[Metrics], str]]
MEASURED: tuple[Column, ...] = (
    ("low", "(us)", 10, lambda m: _us(m["time"], "ci_low")),
    ("high", "(us)", 10, lambda m: _us(m["time"], "ci_high")),
    ("launches", "", 9, lambda m: "-" if m["time"]["n"] is None else str(m["time"]["n"])),
    ("limit", "(%)", 6, _of_limit),
    ("status", "", 11, _status),
)
MODELLED: tuple[Column, ...] = (
    ("mean", "(us)", 10, lambda m: _us(m.get("time_rank_mean"))),
    ("min", "(us)", 10, lambda m: _us(m.get("time_rank_min"))),
    ("median", "(us)", 10, lambda m: _us(m.get("time_rank_median"))),
    ("p95", "(us)", 10, lambda m: _us(m.get("time_rank_p95"))),
    ("limit", "(us)", 10, lambda m: _us(m["time"], "limit")),
    ("by", "", 8, lambda m: str(m["time"]["limit_name"] or "-")),
    ("limit", "(%)", 6, _of_limit),
    ("hops", "(max)", 5, lambda m: _count(m.get("hops_max"))),
    ("hops", "(mean)", 6, lambda m: _count(m.get("hops_mean"))),
    ("byte-hops", "", 10, lambda m: _count(m.get("byte_hops"))),
    ("load", "(peak)", 6, lambda m: _count(m.get("peak_link_load"))),
    ("critical", "(share)", 18, _share),
    ("status", "", 11, _status),
)


class LiveTable(Watcher):
    """Prints the rows of a session as they become final, and progress on stderr.

    `kept`: the rows are also written elsewhere, so work continues even if the reader of these lines goes away.
    """

    def __init__(self, kept: bool = True) -> None:
        self._echo = say if kept else click.echo
        self._progress = Progress(0, "")
        self._begin(())

    def _begin(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self._heading = ""
        self._left_out: dict[tuple[str, str], list[str]] = {}
        self._matrix: list[Row] = []
        self._bimodal = 0
        self._dropped: Counter[str] = Counter()  # samples set aside, by reason
        self._disturbed: dict[str, str] = {}  # experiment -> what disturbed every launch

    def target(self, target: Target, experiments: list[Experiment]) -> None:
        """Announce a target and begin its table."""
        self.finish()
        self._begin(MODELLED if target.modelled else MEASURED)
        self._progress = Progress(len(experiments), target.name)
        how = "modelled, deterministic" if target.modelled else "measured, time of the slowest rank"
        self._echo(f"# {target.name}: {target.machine_name}; {how}; {len(experiments)} experiments")
        if target.partial:
            self._echo(f"# {target.partial}")
        if target.modelled:
            fitted, numbers = target.machine.fitted, len(target.machine.numbers())
            paths = dict.fromkeys(e.path or target.machine.paths[0] for e in experiments)
            self._echo(
                f"# constants: fabric {target.machine.fabric}, path {', '.join(paths)}, {numbers} numbers "
                f"of which {fitted} fitted; `linkwright machines show {target.name}` lists them"
            )
        if all(experiment.probe for experiment in experiments):
            return  # their lines have no columns
        head = f"#{'size':>11} {'count':>11} {'type':>6} {'redop':>6} {'root':>5} {'time':>10} {'algbw':>8}"
        unit = f"#{'(B)':>11} {'(elements)':>11} {'':>6} {'':>6} {'':>5} {'(us)':>10} {'(GB/s)':>8}"
        head += f" {'busbw':>8} {'#wrong':>6}"
        unit += f" {'(GB/s)':>8} {'':>6}"
        self._echo(head + "".join(f" {name:>{width}}" for name, _, width, _ in self._columns))
        self._echo((unit + "".join(f" {unit:>{width}}" for _, unit, width, _ in self._columns)).rstrip())

    def planned(self, plan: Plan, budget_s: float) -> None:
        """Say before the run what fits into the time budget."""
        for line in plan.words(budget_s):
            self._echo(f"# {line}")

    def progress(self, launch: int, done: int, text: str) -> None:
        """Move the bar on stderr."""
        self._progress.show(done, text)

    def dropped(self, counts: Mapping[str, int]) -> None:
        """Count the samples that the guards set aside."""
        self._dropped.update({reason: count for reason, count in counts.items() if count})

    def rows(self, experiment: Experiment, found: list[Row]) -> None:
        """Print the line of one experiment; one line sums up all cells of a matrix."""
        metrics = {str(row["metric"]): row for row in found}
        time = metrics["time"]
        if experiment.placement:
            self._matrix += [metrics.get("latency", time)] if time["value"] is not None else []
        else:
            self._end_matrix()
        if time["value"] is None:
            self._left_out.setdefault((str(time["status"]), str(time["reason"])), []).append(experiment.key)
            return
        self._bimodal += "mode1" in metrics
        self._note_disturbance(experiment, metrics)
        heading = f"# {experiment.part}: {experiment.algorithm_key}, {experiment.ranks} ranks"
        if "latency" in metrics and not experiment.probe:
            trips = "a round trip" if experiment.messages == 1 else f"{experiment.messages} round trips"
            heading += f"; time is that of {trips}, latency half of one"
        if experiment.probe:
            own = "" if experiment.part == experiment.probe else f"{experiment.part}: "
            heading = f"# {own}probe {experiment.probe}"
        if heading != self._heading:
            self._heading = heading
            self._write(heading)
        if not experiment.placement:
            self._write(_probe_line(experiment, metrics) if experiment.probe else self._line(experiment, metrics))

    def finish(self) -> None:
        """End the table of a target: sum up the matrices, and list what was left out with its reason."""
        self._end_matrix()
        self._progress.close()
        for (status, reason), keys in self._left_out.items():
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            self._echo(f"# {status}: {keys[0]}{more}: {reason}")
        if self._bimodal:
            self._echo(
                f"# {self._bimodal} experiments have two modes; the table gives the larger one, "
                "the results both with their shares"
            )
        if self._dropped:
            counts = ", ".join(f"{count} {reason}" for reason, count in self._dropped.most_common())
            self._echo(f"# samples set aside: {counts}")
        if self._disturbed:
            (key, reason), count = next(iter(self._disturbed.items())), len(self._disturbed)
            more = f" and {count - 1} more" if count > 1 else ""
            self._echo(f"# no undisturbed launch: {key}{more}: {reason}")

    def _note_disturbance(self, experiment: Experiment, metrics: Metrics) -> None:
        """Note an experiment without an undisturbed launch."""
        time = metrics["time"]
        if "disturbed" in _flags(time):
            self._disturbed[experiment.key] = str(time["reason"])

    def _line(self, experiment: Experiment, metrics: Metrics) -> str:
        rate = metrics.get("alg_bw") or metrics.get("bandwidth")
        bus = metrics.get("bus_bw")
        checked = "unchecked" not in _flags(metrics["time"])
        values = (
            f"{experiment.size_bytes:>12} {experiment.size_bytes // DTYPES[experiment.dtype]:>11}",
            f"{experiment.dtype:>6} {experiment.op or 'none':>6} {_root(experiment):>5}",
            f"{_us(metrics['time']):>10} {_gb(rate):>8} {_gb(bus):>8}",
            f"{'0' if checked and self._columns is MEASURED else '-':>6}",
        )
        return " ".join(values) + "".join(f" {text(metrics):>{width}}" for _, _, width, text in self._columns)

    def _end_matrix(self) -> None:
        if self._matrix:
            times = sorted(row["value"] for row in self._matrix)
            low, middle, high = (units.format_time(times[i]) for i in (0, len(times) // 2, -1))
            metric = self._matrix[0]["metric"]
            metric = "latency (half a round trip)" if metric == "latency" else metric
            self._write(
                f"# {metric} of {len(times)} pairs of endpoints: fastest {low}, median {middle}, slowest {high}"
            )
        self._matrix = []

    def _write(self, line: str) -> None:
        self._progress.print(line, self._echo)


def _probe_line(experiment: Experiment, metrics: Metrics) -> str:
    """A probe does not fit the columns of nccl-tests: `# working_set=64K  latency 3.69 ns [3.66, 3.71]  ok`."""
    own = [metrics[m.key] for m in probes.find(experiment.algorithm).metrics if m.key in metrics]
    words = ["  ".join(experiment.named) or "defaults", *(_with_interval(row) for row in own), _status(metrics)]
    return "#   " + "  ".join(words)


def _with_interval(row: Row) -> str:
    unit = str(row["unit"])
    plain = functools.partial(units.format_scaled, unit="" if unit == "1" else unit)
    shown = {"ns": units.format_time, "B/s": units.format_rate}.get(unit, plain)
    ends = "" if row["ci_low"] is None else f" [{shown(row['ci_low'])}, {shown(row['ci_high'])}]"
    share = f" {100 * row['value'] / row['limit']:.0f} % of limit" if row["limit"] and unit.endswith("/s") else ""
    return f"{row['metric']} {shown(row['value'])}{ends}{share}"


def _gb(row: Row | None) -> str:
    return "-" if row is None or row["value"] is None else f"{row['value'] / 1e9:.2f}"


def _root(experiment: Experiment) -> int:
    """The root, or -1 for a collective without one, as nccl-tests prints it."""
    from linkwright import _native

    rooted = {row["key"] for row in _native.collectives() if row["rooted"]}
    return experiment.root if experiment.collective in rooted else -1
