"""Results as a table that fits the terminal: one table for each collective, pattern or probe of a part.

    # simulate: allreduce, 64 ranks, f32 sum, grid=8x8
    #size  algorithm          time      busbw   % of  status
    # (B)                                      limit
       1K  swing_latency   3.69 us  0.55 GB/s   60.2  ok
       1K  ring           52.20 us  38.6 MB/s   49.5  ok

What all experiments of a group share stands in its heading, what they differ in has a column; a column without a value
is left out. For each size the fastest algorithm stands first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from linkwright.ask.question import HOW, Collective, Pattern, Probe, Question, Scheduled
from linkwright.base import units
from linkwright.base.errors import UsageError
from linkwright.base.units import GIGA
from linkwright.executors import probes
from linkwright.libraries import library
from linkwright.show import shown, wide
from linkwright.show.wide import Metrics
from linkwright.store.schema import METRICS

from .columns import Styled, aligned

# Grade or status -> colour. Amber is for wide intervals only.
COLOURS = {"wide": "yellow", "failed": "red", "single": "bright_black", "out-of-time": "bright_black"}
NONE = "-"
SLOW = GIGA / 10  # bytes per second, below which two decimals of GB/s say little
LEAST_GAIN = 0.005  # by which something must be faster to be called so


@dataclass(frozen=True)
class Column:
    """A column of results."""

    key: str
    heads: tuple[str, str]
    text: Callable[[Question, Metrics], str]
    summary: str
    is_text: bool = False


def _field(key: str, summary: str, is_text: bool = False, head: str | None = None) -> Column:
    """A column that shows a field of the question."""

    def text(question: Question, _metrics: Metrics) -> str:
        value = getattr(question, key, None)
        return NONE if value is None else str(value)

    return Column(key, (head or key, ""), text, summary, is_text)


def _of_time(key: str, heads: tuple[str, str], show: Callable[[object], str], summary: str) -> Column:
    """A column that shows a column of the row of the time."""

    def text(_question: Question, metrics: Metrics) -> str:
        value = metrics["time"][key]
        return NONE if value is None else show(value)

    return Column(key, heads, text, summary)


# Metrics in bytes per second, by the column that shows them.
_RATES = {"busbw": "bus_bw", "algbw": "alg_bw", "bandwidth": "bandwidth"}


def _rate(key: str, summary: str, *, with_unit: bool = False) -> Column:
    """A column of rates in GB/s; `with_unit`: each with its unit, since some would be 0.00."""

    def text(_question: Question, metrics: Metrics) -> str:
        row = metrics.get(_RATES[key])
        if row is None or row["value"] is None:
            return NONE
        return units.format_rate(row["value"]) if with_unit else f"{row['value'] / GIGA:.2f}"

    return Column(key, (key, "" if with_unit else "(GB/s)"), text, summary)


def _fitting_rates(column: Column, group: Sequence[Line]) -> Column:
    """The column of rates with a unit in each cell where one of the group is too low for GB/s; others as they are."""
    if column.key not in _RATES:
        return column
    rows = [line.metrics.get(_RATES[column.key]) for line in group]
    slow = any(row is not None and row["value"] and row["value"] < SLOW for row in rows)
    return _rate(column.key, column.summary, with_unit=True) if slow else column


def _metric(key: str) -> Column:
    """A column that shows any metric, with its unit."""
    first, _, rest = key.partition("_") if len(key) > 8 else (key, "", "")

    def text(_question: Question, metrics: Metrics) -> str:
        row = metrics.get(key)
        return NONE if row is None or row["value"] is None else shown.value(row)

    return Column(key, (first, rest.replace("_", " ")), text, key)


def _share(key: str, heads: tuple[str, str], bound: str, summary: str) -> Column:
    return Column(key, heads, lambda _e, metrics: wide.percent(wide.share_of(metrics["time"], bound)), summary)


def _size(question: Question, _metrics: Metrics) -> str:
    return NONE if question.size_bytes is None else units.format_size(question.size_bytes)


def _precision(_question: Question, metrics: Metrics) -> str:
    time = metrics["time"]
    return Styled(wide.percent(time["precision"]), COLOURS.get(str(time["grade"])))


def _status(common: Sequence[str] = ()) -> Column:
    """The column of the status; flags in `common` hold for the whole table, whose heading names them."""

    def text(_question: Question, metrics: Metrics) -> str:
        time = metrics["time"]
        word = str(time["grade"] or time["status"]) if time["status"] == "ok" else str(time["status"])
        marks = [flag for flag in wide.flags(time) if flag not in common]
        return Styled(",".join([word, *marks]), COLOURS.get(word))

    return Column("status", ("status", ""), text, "grade, or why a value is missing; remarks")


def _how(question: Question, _metrics: Metrics) -> str:
    return " ".join(_hows(question)) or NONE


def _hows(question: Question) -> list[str]:
    """What a schedule does differently from the default, in words."""
    if not isinstance(question, Scheduled):
        return []
    # What a library chose says more than the path and the policy that come with it.
    words = [question.chosen] if question.chosen else []
    named = ("skew",) if words else HOW
    words += [f"{name}={getattr(question, name)}" for name in named if getattr(question, name)]
    words += [f"root={question.root}"] if question.root else []
    words += [f"grid={units.format_grid(question.grid)}"] if question.grid else []
    if isinstance(question, Pattern):
        words += [f"x{question.messages}"] if question.messages > 1 else []
        words += ["both-ways"] if question.both_ways else []
    return words


def _launch(launch_ns: object) -> str:
    return units.format_time(float(str(launch_ns))) if launch_ns else "none"


def _axes(question: Question, _metrics: Metrics) -> str:
    return " ".join(question.named if isinstance(question, Probe) else ()) or NONE


COLUMNS: dict[str, Column] = {
    column.key: column
    for column in (
        Column("size", ("size", "(B)"), _size, "bytes; K, M and G are 1024-based"),
        _field("ranks", "ranks that take part"),
        _field("algorithm", "algorithm of the collective, or name of the pattern", is_text=True),
        Column("how", ("how", ""), _how, "choice of a library; policy, path, skew, root, grid, count", is_text=True),
        Column("axes", ("axes", ""), _axes, "axes of a probe", is_text=True),
        Column("time", ("time", ""), _metric("time").text, "time of the slowest rank; of a probe, of one operation"),
        _of_time("launch_ns", ("launch", ""), _launch, "start of the library that the time holds"),
        Column("latency", ("latency", ""), _metric("latency").text, "half a round trip"),
        Column("precision", ("±%", ""), _precision, "half width of the 95 % interval, in percent of the value"),
        _rate("busbw", "bus bandwidth"),
        _rate("algbw", "algorithm bandwidth"),
        _rate("bandwidth", "bandwidth of a pattern"),
        _share("of_limit", ("% of", "limit"), "limit", "percent of the limit of the problem on this machine"),
        _share("of_best_seen", ("% of best", "seen"), "best_seen", "percent of the best measured on this host"),
        _of_time("low", ("low", ""), units.format_time, "lower end of the 95 % interval of the time"),
        _of_time("high", ("high", ""), units.format_time, "upper end of it"),
        _of_time("n", ("launches", ""), str, "launches behind the interval"),
        _of_time("grade", ("grade", ""), str, "tight, fair, wide or single"),
        _of_time("limit", ("limit", ""), units.format_time, "limit of the problem on this machine"),
        _of_time("limit_name", ("limit", "by"), str, "what limits"),
        _of_time("bound", ("bound", ""), units.format_time, "the lower bound of this schedule's own traffic"),
        _of_time("bound_name", ("bound", "by"), str, "what bounds this schedule"),
        _of_time("best_seen", ("best", "seen"), units.format_time, "the best measured on this host"),
        _field("collective", "the collective", is_text=True),
        _field("part", "part of the suite", is_text=True),
        _field("dtype", "data type", head="type"),
        _field("op", "reduction operator", head="redop"),
        _field("root", "root of rooted collectives"),
        _status(),
    )
}  # fmt: skip
# In this order before the status, as far as a group has values for them; those of `ALWAYS` in any case.
DEFAULT = (
    "size", "ranks", "algorithm", "how", "time", "launch_ns", "latency", "precision", "busbw", "bandwidth", "of_limit",
    "of_best_seen",
)  # fmt: skip
ALWAYS = ("size", "time", "status")


def chosen(names: str) -> tuple[str, ...]:
    """The columns that a list such as `size,time,time_p99` names: those of `COLUMNS`, and every metric."""
    asked = tuple(name.strip() for name in names.split(","))
    known = {*COLUMNS, *_metrics()}
    for name in asked:
        if name not in known:
            raise UsageError(
                f"--columns: there is no column `{name}`; choose from {', '.join(COLUMNS)}, or a metric such as "
                "time_p99 (docs/formats.md has them all)"
            )
    return asked


def _metrics() -> Iterable[str]:
    """Every metric, those that only a probe has included."""
    return dict.fromkeys([*METRICS, *(m.key for probe in probes.registry().values() for m in probe.metrics)])


@dataclass(frozen=True)
class Line:
    """One question and what was found."""

    question: Question
    metrics: Metrics

    @property
    def time_ns(self) -> float:
        """The time to sort by; infinite without a value."""
        value = self.metrics["time"]["value"]
        return float("inf") if value is None else value


def key_of(question: Question) -> tuple[str, ...]:
    """What the questions of one table have in common."""
    return question.part, question.what


def lines(group: Sequence[Line], asked: Sequence[str], axes: Sequence[str], width: int) -> list[str]:
    """The heading and the table of a group; `asked`: columns instead of the usual ones, `axes` that are shown."""
    flags = [wide.flags(line.metrics["time"]) for line in group if line.metrics["time"]["value"] is not None]
    common = [flag for flag in wide.MARKS if flags and all(flag in each for each in flags)]
    columns = [_named(name, common) for name in asked] or _usual(group, axes, common)
    columns = [_fitting_rates(column, group) for column in columns]
    probe = isinstance(group[0].question, Probe)
    ordered, fastest = (list(group), set()) if probe else _fastest_first(group)
    rows = [[column.text(line.question, line.metrics) for column in columns] for line in ordered]
    for number in fastest:
        rows[number] = [
            _bold(cell) if column.key in _BOLD else cell for column, cell in zip(columns, rows[number], strict=True)
        ]
    left = [i for i, column in enumerate(columns) if column.is_text or column.key == "status"]
    kept = [i for i, column in enumerate(columns) if column.key == "status"]
    heads = [[column.heads[i] for column in columns] for i in (0, 1)]
    heads = [["#" + head[0], *head[1:]] for head in heads if any(head)]
    # Names tell the lines apart, and are what --algorithm takes.
    first = [i for i, column in enumerate(columns) if column.key == "how"]
    made = aligned(heads, rows, left, width, kept, first)
    meanings = dict.fromkeys(filter(None, (wide.round_trips(line.question, line.metrics) for line in group)))
    top = [_heading(group, common), *(f"# {meaning}" for meaning in meanings)]
    return [*top, *map(_marked, made[: len(heads)]), *made[len(heads) :]]


def picks(group: Sequence[Line]) -> Iterator[str]:
    """For each size, what a library chose and whether something else of its own would have been faster."""
    for line in group:
        at, chosen = line.question, line.question.chosen
        if not chosen or "/" in at.algorithm or line.time_ns == float("inf"):
            continue
        others = [
            other
            for other in group
            if other.question.algorithm.startswith(f"{at.algorithm}/")
            and other.question.algorithm.count("/") == 2
            and (other.question.size_bytes, other.question.ranks) == (at.size_bytes, at.ranks)
        ]
        if not others:
            continue
        best = min(others, key=lambda other: other.time_ns)
        share = 1 - best.time_ns / line.time_ns
        told = f"{best.question.chosen} would take {share:.0%} less" if share > LEAST_GAIN else "the fastest it has"
        yield f"{_size(at, {})}: {at.algorithm} picks {chosen}; {told}"


def _marked(head: str) -> str:
    """The head line with its `#` in the first place."""
    rest = head.lstrip()
    return "#" + " " * (len(head) - len(rest)) + rest[1:]


# What stands out for the fastest of several algorithms.
_BOLD = ("algorithm", "time")


def _bold(cell: str) -> str:
    return Styled(cell, getattr(cell, "colour", None), bold=True)


def _named(name: str, common: Sequence[str]) -> Column:
    return _status(common) if name == "status" else COLUMNS.get(name) or _metric(name)


def _usual(group: Sequence[Line], axes: Sequence[str], common: Sequence[str]) -> list[Column]:
    """The columns of `DEFAULT` that say something about this group, or those of its probe."""
    first = group[0].question
    if isinstance(first, Probe):
        found = _of_probe(probes.find(first.algorithm), group, axes)
    else:
        found = [COLUMNS[name] for name in DEFAULT if not _in_heading(name, group)]
    return [column for column in [*found, _status(common)] if column.key in ALWAYS or _says_something(column, group)]


def _of_probe(probe: probes.ProbeKind, group: Sequence[Line], asked: Sequence[str]) -> list[Column]:
    """A column for each axis that is not at its default or was asked for, and for each metric."""
    named = {text.partition("=")[0] for line in group for text in line.question.named} | set(asked)
    columns = [_axis(probe, axis) for axis in probe.axes if axis.key in named]
    metrics = [_metric(metric.key) for metric in probe.metrics]
    return [*columns, *metrics, *(COLUMNS[name] for name in ("precision", "of_limit", "of_best_seen"))]


def _axis(probe: probes.ProbeKind, axis: probes.Axis) -> Column:
    first, _, rest = axis.key.partition("_")

    def text(question: Question, _metrics: Metrics) -> str:
        return wide.axis_texts(probe, question)[axis.key]

    return Column(axis.key, (first, rest.replace("_", " ")), text, axis.summary, axis.kind == "word")


def _says_something(column: Column, group: Sequence[Line]) -> bool:
    return any(column.text(line.question, line.metrics) != NONE for line in group)


def _in_heading(name: str, group: Sequence[Line]) -> bool:
    """Whether the heading says it for all lines."""
    if name == "algorithm":
        return not isinstance(group[0].question, Collective)
    if name == "launch_ns":
        # A library's time holds its start, a bare schedule's does not: a table with both says so line by line.
        return len({line.metrics["time"]["launch_ns"] not in (0, None) for line in group}) == 1
    if name == "ranks":
        return len({line.question.ranks for line in group}) == 1
    return name == "how" and len({tuple(_hows(line.question)) for line in group}) == 1


def _fastest_first(group: Sequence[Line]) -> tuple[list[Line], set[int]]:
    """The lines by size, the fastest algorithm first, and which of them beat another."""

    def setting(line: Line) -> tuple[object, ...]:
        question = line.question
        # A library chooses path and policy with the algorithm, so its plans compete with everything else. Algorithms
        # on nodes have a grid, and the others serve the same ranks.
        if not isinstance(question, Scheduled) or library.is_plan(question.algorithm):
            return (question.ranks,)
        return (question.ranks, *_hows(replace(question, grid=None)))

    order = {each: number for number, each in enumerate(dict.fromkeys(map(setting, group)))}

    def place(line: Line) -> tuple[int, int]:
        return order[setting(line)], line.question.size_bytes or 0

    ordered = sorted(group, key=lambda line: (place(line), line.time_ns))
    valued = [number for number, line in enumerate(ordered) if line.time_ns < float("inf")]
    rivals = Counter(place(ordered[number]) for number in valued)
    seen: set[tuple[int, int]] = set()
    fastest = set()
    for number in valued:
        where = place(ordered[number])
        if where not in seen and rivals[where] > 1:
            fastest.add(number)
        seen.add(where)
    return ordered, fastest


def _heading(group: Sequence[Line], common: Sequence[str]) -> str:
    first = group[0].question
    part = [] if first.part == first.what else [f"{first.part}:"]
    kind = ["probe"] if isinstance(first, Probe) else []
    words = [" ".join([*part, *kind, first.what])]
    if isinstance(first, Scheduled):
        words += [units.counted(first.ranks, "rank")] if _in_heading("ranks", group) else []
        words += [" ".join(filter(None, [first.dtype, first.op]))]
        words += _hows(first) if _in_heading("how", group) else []
    return f"# {', '.join(words)}" + (f"; {', '.join(common)}" if common else "")
