"""Suites: parts made from values or read from TOML, by the same checks; docs/formats.md has an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from linkwright import _native
from linkwright.ask.exchange import uneven
from linkwright.ask.question import DEFAULT, DTYPES, MAX_RANKS, MOST_MESSAGES, OPS, check_whole
from linkwright.ask.sources import within
from linkwright.base import registry, toml
from linkwright.base.errors import FileError, ShapeError, UsageError
from linkwright.base.files import read_text
from linkwright.base.toml import (
    FLAG,
    LINE,
    LINE_MOST,
    NAME,
    SIZE,
    TEXT,
    Choice,
    Either,
    Key,
    Many,
    Named,
    OneTable,
    Place,
    Tables,
    only,
    whole,
)
from linkwright.base.units import size_sweep
from linkwright.machines import writer
from linkwright.store.schema import METRICS

FORMAT = 1
PLACEMENTS = ("topology", "every_pair", "doubling")
RANKS = ("all", "doubling")
# How thorough a run is; a part is run from its `level` on.
LEVELS = ("quick", "normal", "full")
# A part may have other values for modelled and for measured machines.
KINDS = ("modelled", "measured")


class _Sizes(Either):
    """A list of sizes, or a sweep, which is read as the list that it describes."""

    def __init__(self) -> None:
        sweep = {
            "min": Key(SIZE, "smallest size", required=True),
            "max": Key(SIZE, "largest size", required=True),
            "factor": Key(whole(2), "from each size to the next", required=True),
        }
        super().__init__(Many(SIZE), OneTable(sweep))

    def read(self, key: str, value: object, place: Place) -> object:
        found = super().read(key, value, place)
        if isinstance(found, tuple):
            return found
        try:
            return tuple(size_sweep(found["min"], found["max"], found["factor"]))
        except UsageError as error:
            raise place.wrong(f"{key}: {error}") from error


_RANKS = whole(1, MAX_RANKS)
_AXIS_VALUE = Either(TEXT, whole(0))
_AXIS_SWEEP = OneTable(
    {
        "min": Key(_AXIS_VALUE, "smallest size; a multiple of the last cache is `2 * last_cache`", required=True),
        "max": Key(_AXIS_VALUE, "largest size", required=True),
        "factor": Key(whole(2), "from each size to the next", required=True),
    }
)

AXES = {
    "pattern": Key(
        Choice(lambda: [key.removeprefix("pattern/") for key in registry.keys("patterns")]), "traffic pattern"
    ),
    "probe": Key(
        Choice(lambda: [key.removeprefix("probe/") for key in registry.keys("probes")]),
        "probe, which measures what no schedule can",
    ),
    "axes": Key(Named(Either(Many(_AXIS_VALUE, single=True), _AXIS_SWEEP)), "axis of the probe -> values, or a sweep"),
    "collectives": Key(Many(TEXT, single=True), "collectives by name, or `all`"),
    "algorithms": Key(
        Many(TEXT, single=True),
        "algorithms by name, `all`, `own` (those of the machine's library), or sources such as `own.py:bucket`; "
        "default: the plan of a described machine's library, if it has one and there is no `path` or `issue`, or all",
    ),
    "schedules": Key(Many(TEXT, single=True), "sources that state their own collective"),
    "sizes": Key(_Sizes(), "message sizes: a list, or `{ min, max, factor }`"),
    "rising_to": Key(SIZE, "measured sweeps of a pattern go on to this size while the rate still rises"),
    "ranks": Key(
        Either(Choice(RANKS), Many(whole(1, MAX_RANKS))), "ranks that take part; `doubling` is 2, 4, 8 ... all"
    ),
    "placement": Key(Choice(PLACEMENTS), "where ranks are: in topology order, or two ranks on pairs of endpoints"),
    "dtype": Key(Choice(DTYPES), "data type"),
    "op": Key(Choice(OPS), "reduction operator"),
    "root": Key(whole(0, MAX_RANKS - 1), "root of rooted collectives"),
    "issue": Key(TEXT, "issue policy: blocking, window(k), batch(k) or unlimited"),
    "path": Key(TEXT, "path of the machine file"),
    "skew": Key(TEXT, "late arrival of ranks: none, uniform:2us, late:RANK:2us, list:0us,1us"),
    "arithmetic": Key(FLAG, "whether reductions take time"),
    "exchange": Key(
        OneTable(
            {
                "counts": Key(TEXT, "CSV file of the elements that each rank has for each rank"),
                "experts": Key(whole(1), "experts of all ranks together"),
                "topk": Key(whole(1), "experts of one token"),
                "token_elements": Key(whole(1), "elements of one token as it travels"),
                "routing": Key(TEXT, "how tokens choose experts: `uniform`, or `zipf:S`"),
                "seed": Key(whole(0), "seed of these choices"),
            }
        ),
        "how uneven an alltoallv, a dispatch or a combine is; default: as much for all",
    ),
    "messages": Key(whole(1, MOST_MESSAGES), "messages per pair of a pattern"),
    "both_ways": Key(FLAG, "whether the messages of a pattern also go the other way"),
    "metrics": Key(Many(Choice(METRICS), single=True), "metrics that each experiment reports besides the usual ones"),
    "level": Key(Choice(LEVELS), "least thorough run that has this part"),
}
PART = {
    "name": Key(LINE, "prefix of the keys of its experiments", required=True),
    "summary": Key(LINE, "one line", required=True),
    **AXES,
    **{kind: Key(OneTable(AXES), f"what differs on {kind} machines") for kind in KINDS},
}
SUITE = {
    "suite": Key(
        OneTable(
            {
                "format": Key(only(FORMAT), "version of this format", required=True),
                "name": Key(NAME, "name of the file without its suffix", required=True),
                "summary": Key(LINE, "one line", required=True),
                "description": Key(TEXT, "a paragraph"),
                "machines": Key(Many(TEXT), "where to run by default, without `--on`", default=()),
            }
        ),
        "the suite itself",
        required=True,
    ),
    "part": Key(Tables(PART), "groups of experiments with common axes", required=True),
}


_PATTERN_LACKS = ("algorithms", "op")
_ONLY_PATTERNS = ("placement", "messages", "both_ways")


@dataclass(frozen=True)
class Part:
    """One group of experiments with common axes; `AXES` says what each field means."""

    name: str
    summary: str
    pattern: str | None = None
    probe: str | None = None
    axes: dict[str, object] = field(default_factory=dict)
    collectives: tuple[str, ...] = ()  # empty for a pattern; ("all",) for every one
    algorithms: tuple[str, ...] = (DEFAULT,)
    schedules: tuple[str, ...] = ()  # sources
    sizes: tuple[int, ...] = ()
    rising_to: int | None = None
    ranks: str | tuple[int, ...] = "all"
    placement: str = "topology"
    dtype: str = "f32"
    op: str = "sum"
    root: int = 0
    issue: str | None = None
    path: str | None = None
    skew: str | None = None
    arithmetic: bool = True
    exchange: dict[str, object] = field(default_factory=dict)
    messages: int = 1
    both_ways: bool = False
    metrics: tuple[str, ...] = ("time",)
    level: str = "quick"
    overrides: dict[str, dict] = field(default_factory=dict)

    def on(self, kind: str) -> Part:
        """The part as it stands for `modelled` or `measured` machines."""
        changed = self.overrides.get(kind, {})
        # An override replaces only those axes of a probe that it names.
        return replace(self, **{**changed, "axes": {**self.axes, **changed.get("axes", {})}})


@dataclass(frozen=True)
class Suite:
    """Parts, which expand to experiments on each machine."""

    name: str
    summary: str
    parts: tuple[Part, ...]
    machines: tuple[str, ...] = ()  # where --on names none
    description: str | None = None

    def at(self, level: str) -> Suite:
        """The parts of a run of this level."""
        kept = tuple(part for part in self.parts if LEVELS.index(part.level) <= LEVELS.index(level))
        return replace(self, parts=kept)

    @property
    def text(self) -> str:
        """The suite as a file, which `parse` reads back."""
        head = {"format": FORMAT, "name": self.name, "summary": self.summary, "description": self.description}
        stated = {key: value for key, value in {**head, "machines": list(self.machines)}.items() if value}
        return writer.text({"suite": stated, "part": [dict(_stated(part)) for part in self.parts]})


def load(path: Path) -> Suite:
    """Read and check the suite file at `path`; its sources are files next to it."""
    suite = parse(read_text(path, "a suite file"), path.name)
    return replace(suite, parts=tuple(_within(path.parent, part) for part in suite.parts))


def _within(folder: Path, part: Part) -> Part:
    """The part with its sources as they are called from the current folder."""

    def moved(changed: Mapping[str, object]) -> dict[str, object]:
        named = {axis: changed[axis] for axis in ("algorithms", "schedules") if axis in changed}
        return {**changed, **{axis: tuple(within(folder, name) for name in names) for axis, names in named.items()}}

    stated = moved({"algorithms": part.algorithms, "schedules": part.schedules})
    return replace(part, **stated, overrides={kind: moved(changed) for kind, changed in part.overrides.items()})


def parse(text: str, file: str) -> Suite:
    """Check the text of a suite file; `file` is its name, for messages."""
    place = Place(file, error=FileError)
    found = toml.read(toml.load(text, place), SUITE, place)
    parts = []
    for i, table in enumerate(found["part"]):
        overrides = {kind: dict(table.pop(kind)) for kind in KINDS if kind in table}
        parts.append(_checked(Part(**table, overrides=overrides), table, place.inside(f"part[{i}]")))
    if len({part.name for part in parts}) < len(parts):
        raise place.wrong("two parts have the same name; every part needs its own")
    head = found["suite"]
    return Suite(head["name"], head["summary"], tuple(parts), head["machines"], head["description"])


def one_part(name: str, summary: str, part: str | None = None, **axes: object) -> Suite:
    """A suite of a single part, for the command line; an axis that is None keeps its default."""
    stated = {key: value for key, value in axes.items() if value is not None}
    place = Place(f"{name}.toml", "part[0]", FileError)
    for key, value in stated.items():
        AXES[key].kind.check(key, value, place)
    summary = "".join(c if c.isprintable() else "?" for c in summary)[:LINE_MOST]  # it may hold names of files
    return Suite(name, summary, (_checked(Part(part or name, summary, **stated), stated, place),))


def _checked(part: Part, stated: Mapping[str, object], place: Place) -> Part:
    """The part, if its axes fit together."""
    if [bool(part.pattern), bool(part.collectives), bool(part.probe), bool(part.schedules)].count(True) != 1:
        raise place.wrong("name exactly one of `pattern`, `collectives`, `schedules` and `probe`")
    keys = {**stated, **{key: None for override in part.overrides.values() for key in override}}
    if part.probe:
        for key in keys:
            if key not in ("name", "summary", "probe", "axes", "placement", "level"):
                raise place.wrong(f"`{key}` does not apply to a probe; state its `axes` instead")
        return part
    if part.axes:
        raise place.wrong("`axes` are those of a `probe`; name one, or omit them")
    for key in _PATTERN_LACKS if part.pattern else _ONLY_PATTERNS:
        if key in keys:
            cure = "a pattern has no algorithms and combines nothing" if part.pattern else "only patterns have it"
            raise place.wrong(f"`{key}`: {cure}; omit it")
    for kind in KINDS:
        _check_on(kind, part.on(kind), place)
    if part.rising_to is not None and (not part.pattern or len(part.on("measured").sizes) < 2):
        raise place.wrong("`rising_to` continues the sweep of a `pattern` over at least two sizes; omit it")
    return part


def _check_on(kind: str, part: Part, place: Place) -> None:
    """Refuse a part that would report on this kind of machines what it cannot."""
    if not part.sizes and not part.schedules:
        raise place.wrong(f"no `sizes` for {kind} machines")
    if "latency" in part.metrics and part.pattern != "ping_pong":
        raise place.wrong("metrics: `latency` is half of a round trip, which only pattern `ping_pong` makes; omit it")
    if "bandwidth" in part.metrics and not part.pattern and not part.schedules:
        raise place.wrong(
            "metrics: `bandwidth` is that of a pattern's messages; a collective has `alg_bw` and `bus_bw`"
        )
    if part.issue is not None:
        _check_issue(part.issue, place)
    if part.exchange and (not part.collectives or not uneven().issuperset(part.collectives)):
        raise place.wrong(f"exchange: only {', '.join(sorted(uneven()))} have one; omit it")
    try:
        for size in part.sizes:
            check_whole(size, part.dtype)
    except ShapeError as error:
        raise place.wrong(f"sizes: {error}") from error


def _check_issue(policy: str, place: Place) -> None:
    try:
        _native.check_issue(policy)
    except UsageError as error:
        raise place.wrong(str(error)) from error


def _stated(part: Part) -> Iterator[tuple[str, object]]:
    """Every key of the part that does not have its default, as TOML holds it."""
    yield from {"name": part.name, "summary": part.summary}.items()
    usual = Part("", "")
    for axis in fields(Part):
        value = getattr(part, axis.name)
        if axis.name in AXES and value != getattr(usual, axis.name):
            yield axis.name, AXES[axis.name].kind.show(value)
    for kind, changed in part.overrides.items():
        yield kind, {key: AXES[key].kind.show(value) for key, value in changed.items()}
