"""Reads a run folder into rows in base units, which every section builder takes.

``runs/<id>/`` holds results.parquet (tidy rows), samples.parquet (raw), environment.json,
suite.toml and, for a reproduced study, study.json. Added here, computed once: `unit` in base units
with value, interval, limits and reference scaled to it; `yardstick`, what a row is compared with,
its name and its kind, a `limit` or the `best seen`; `share`, the part of it that the row reaches;
`modelled`; `source` and `destination` of a placement ``a>b``; `part` of the suite;
`label`, what the row is about; `modes`, where launch medians form two groups.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from linkwright import executors
from linkwright.advise.explain import imported
from linkwright.advise.explain.imported import LogJudged
from linkwright.base.errors import StoreError
from linkwright.base.files import read_text
from linkwright.base.rows import Column, Rows, among, given, unique
from linkwright.store import documents, naming, schema
from linkwright.store import run as store
from linkwright.store.topology import Topology

from . import quantity

COLUMNS = tuple(schema.RESULTS)
_SCALED = ("value", "ci_low", "ci_high", "limit", "bound", "best_seen", "reference_value")
_NUMBERS = ("ranks", "size_bytes", "value", "ci_low", "ci_high", "n", "precision", "limit", "bound", "best_seen")
_WORDS = [
    "experiment",
    "machine",
    "executor",
    "collective",
    "algorithm",
    "placement",
    "reason",
    "grade",
    "limit_name",
    "bound_name",
    "best_seen_name",
    "unit",
    "part",
    "code",
    "flags",
]
LIMIT, BEST_SEEN = "limit", "best seen"  # kinds of yardsticks
_PATTERNS = ("", "pattern")  # what stands for the collective in a row of a traffic pattern


@dataclass(frozen=True, eq=False)  # compared by identity, so that what follows from it can be cached
class Run:
    """Everything of one run folder."""

    id: str
    rows: Rows
    samples: Rows = field(default_factory=lambda: Rows({}, 0))
    environment: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)  # run.json: what was asked
    suite: str = ""
    study: dict[str, Any] | None = None
    fit: dict[str, Any] | None = None  # fit.json: what a machine fitted to the run predicts
    folder: Path | None = None  # where the run lies: its machine files, and earlier runs next to it

    @cached_property
    def judged(self) -> list[LogJudged]:
        """The logs of an imported run, compared with their healthy machines."""
        return (
            imported.judged(store.Run(self.folder)) if self.folder and "import" in self.plan.get("request", {}) else []
        )

    @cached_property
    def summaries(self) -> dict[str, str]:
        """Name of each part of the suite -> what the suite says it is."""
        try:
            parts = tomllib.loads(self.suite).get("part", [])
        except tomllib.TOMLDecodeError:
            return {}
        return {part["name"]: part.get("summary", "") for part in parts if "name" in part}

    @cached_property
    def collectives(self) -> list[str]:
        """The collectives of the run, by name."""
        return sorted(set(self.rows["collective"]) - set(_PATTERNS))

    @property
    def patterns(self) -> Rows:
        """The rows of traffic patterns."""
        return self.rows[among(self.rows["collective"], _PATTERNS)]

    @property
    def machines(self) -> list[str]:
        """Measured machines first, each group by name: the order of every table and chart."""
        order = self.rows.distinct("machine", "modelled").ordered("modelled", "machine")
        return unique(order["machine"])

    @cached_property
    def has_measured(self) -> bool:
        """Whether any row was measured."""
        return not self.rows["modelled"].all()

    @cached_property
    def has_modelled(self) -> bool:
        """Whether any row was computed by a model."""
        return bool(self.rows["modelled"].any())

    def topology(self, machine: str) -> Topology:
        """Facts that the host reports, where `machine` is its processors; else nothing: a model, or a GPU in it."""
        found = set(self.rows[self.rows["machine"] == machine]["executor"])
        return Topology(self.environment if all(map(executors.is_host, found)) else {})


def load(folder: Path) -> Run:
    """Reads `folder`; a study alone (study.json without results) is a run without rows."""
    folder = Path(folder)
    results, study = folder / "results.parquet", folder / "study.json"
    if not results.exists() and not study.exists():
        if (folder / "run.json").exists():
            store.Run(folder).results()  # raises, and says whether the run ended early
        raise StoreError(f"{folder}: neither results.parquet nor study.json; give the folder of a run, runs/<id>")
    samples = folder / "samples.parquet"
    suite = folder / "suite.toml"
    environment = _json(folder / "environment.json", documents.ENVIRONMENT) or {}
    plan = _json(folder / "run.json", documents.RUN) or {}
    rows = normalise(documents.results(results) if results.exists() else {name: [] for name in COLUMNS})
    asked = plan.get("request", {}).get("name")
    short = _short_names(rows, environment, asked)
    rows = rows.assign(machine=[short.get(name, name) for name in rows["machine"]])
    return Run(
        id=folder.resolve().name,
        rows=rows,
        samples=documents.samples(samples) if samples.exists() else Rows({}, 0),
        environment=environment,
        plan=plan,
        suite=read_text(suite, "a suite file") if suite.exists() else "",
        study=_json(study, documents.STUDY),
        fit=_json(folder / "fit.json", documents.FIT),
        folder=folder,
    )


def _short_names(rows: Rows, environment: dict[str, Any], asked: str | None) -> dict[str, str]:
    """Machine of the rows -> its short name, where it is the processor of this host; --name also names a GPU."""
    measured = set(rows[~rows["modelled"]]["machine"]) - {""}
    named = measured if asked else measured & {environment.get("processor")}
    return {machine: naming.short_name(environment, asked) for machine in named} if len(named) == 1 else {}


def normalise(raw: Rows | Mapping[str, Sequence[Any]]) -> Rows:
    """The tidy rows in base units with the added columns, in the order in which they came; `raw` has their columns."""
    unknown = [name for name in ("experiment", "metric", "status") if name not in raw]
    if unknown:
        raise StoreError(f"results: no column {', '.join(unknown)}; were they written by another version?")
    length = len(raw["experiment"])
    rows = {name: _column(raw[name]) if name in raw else _nothing(length) for name in COLUMNS}
    rows |= {name: _numbers(rows[name]) for name in _NUMBERS}
    rows["reference_value"] = _numbers(rows["reference"])
    rows |= {name: _texts(rows[name]) for name in _WORDS}
    bases = {unit: quantity.base(unit) for unit in set(rows["unit"])}
    factors = np.array([bases[unit][1] for unit in rows["unit"]], dtype=float)
    rows["unit"] = _objects([bases[unit][0] for unit in rows["unit"]])
    rows |= {name: rows[name] * factors for name in _SCALED}
    rows["machine"] = np.where(rows["machine"] != "", rows["machine"], rows["executor"])
    modelled = {key: executors.is_modelled(key) for key in set(rows["executor"])}
    rows["modelled"] = np.array([modelled[key] for key in rows["executor"]], dtype=bool)
    limited = given(rows["limit"])
    rows["yardstick"] = np.where(limited, rows["limit"], rows["best_seen"])
    rows["yardstick_name"] = np.where(limited, rows["limit_name"], rows["best_seen_name"])
    kinds = np.where(limited, LIMIT, np.where(given(rows["best_seen"]), BEST_SEEN, ""))
    rows["yardstick_kind"] = kinds.astype(object)
    rows["share"] = _share(rows)
    rows["label"] = np.where(among(rows["collective"], _PATTERNS), rows["algorithm"], rows["collective"])
    ends = {text: re.split(r"\s*-?>\s*", text.strip()) for text in set(rows["placement"])}
    for place, column in enumerate(("source", "destination")):
        names = {text: found[place] if len(found) == 2 else None for text, found in ends.items()}
        rows[column] = _objects([names[text] for text in rows["placement"]])
    found = Rows(rows, length)
    return found.assign(modes=_modes(found))


def _column(column: Sequence[Any]) -> Column:
    found = np.asarray(column)
    return found.astype(object) if found.dtype.kind == "U" else found


def _nothing(length: int) -> Column:
    return np.full(length, None, dtype=object)


def _objects(found: list[Any]) -> Column:
    column = _nothing(len(found))
    column[:] = found
    return column


def _numbers(column: Column) -> Column:
    """A column of floats; NaN where it holds no number."""
    if column.dtype != object:
        return column.astype(float)
    return np.array([_number(value) for value in column], dtype=float)


def _number(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan


def _texts(column: Column) -> Column:
    """Python's strings, each stored once, since millions of rows share few; nothing is the empty text."""
    texts = {value: "" if value is None or value != value else str(value) for value in set(column.tolist())}
    return _objects([texts.get(value, "") for value in column.tolist()])


def ok(rows: Rows) -> Rows:
    """Rows that may be shown as results: ok, with a value."""
    return rows[(rows["status"] == "ok") & given(rows["value"])]


def published(run: Run, machine: str) -> Rows:
    """Results of a machine with a published value; `off` is the share by which they miss it."""
    rows = ok(run.rows[(run.rows["machine"] == machine) & given(run.rows["reference_value"])])
    rows = rows[rows["reference_value"] != 0]
    return rows.assign(off=rows["value"] / rows["reference_value"] - 1)


def is_rate(unit: str) -> bool:
    """Whether more is better and a limit is an upper one: something per second, or per second and watt."""
    return unit.endswith(("/s", "/s/W"))


def are_rates(rows: Rows) -> Column:
    """Which rows are rates."""
    rates = {unit: is_rate(unit) for unit in set(rows["unit"])}
    return np.array([rates[unit] for unit in rows["unit"]], dtype=bool)


def _share(rows: Mapping[str, Column]) -> Column:
    """Part of the yardstick reached: limit/value of a time, value/limit of a rate; 1 is at the limit."""
    value, limit = rows["value"], rows["yardstick"]
    rate = np.array([is_rate(unit) for unit in rows["unit"]], dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(rate, value / limit, limit / value)
        return np.where(np.isfinite(share) & (share > 0), share, np.nan)


def _modes(rows: Rows) -> list[str]:
    """'two modes: 34 ns (62 %), 171 ns (38 %)' for experiments whose launches form two groups."""
    keys = ("machine", "executor", "experiment")
    named = rows[among(rows["metric"], ("mode1", "mode1_share", "mode2", "mode2_share"))]
    words = {}
    for key, part in named.by(*keys):
        found = dict(zip(part["metric"], part["value"].tolist(), strict=True))
        if len(found) == 4:
            modes = (
                f"{quantity.text(found[m], 's')} ({quantity.percent(found[m + '_share'])})" for m in ("mode1", "mode2")
            )
            words[key] = "two modes: " + ", ".join(modes)
    if not words:
        return [""] * len(rows)
    return [words.get(key, "") for key in zip(*(rows[name] for name in keys), strict=True)]


def natural(name: str) -> list[tuple[int, Any]]:
    """Sort key under which tile 10 follows tile 9."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", str(name)) if part]


def _json(path: Path, form: documents.Form) -> dict[str, Any] | None:
    return documents.read(path, form) if path.exists() else None
