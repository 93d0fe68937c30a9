"""Reads a run folder into one frame in base units, which every section builder takes.

``runs/<id>/`` holds results.parquet (tidy rows), samples.parquet (raw), environment.json,
suite.toml and, for a reproduced study, study.json. Added here, computed once: `unit` in base units
with value, interval, limits and reference scaled to it; `yardstick`, what a row is compared with,
its name and its kind, a `limit` or the `best seen`; `share`, the part of it that the row reaches;
`modelled`; `source` and `destination` of a placement ``a>b``; `part` of the suite;
`label`, what the row is about; `modes`, where launch medians form two groups.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from linkwright import executors
from linkwright.errors import StoreError
from linkwright.store import documents, naming, schema
from linkwright.store.files import read_text
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
    rows: pd.DataFrame
    samples: pd.DataFrame = field(default_factory=pd.DataFrame)
    environment: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)  # run.json: what was asked
    suite: str = ""
    study: dict[str, Any] | None = None
    fit: dict[str, Any] | None = None  # fit.json: what a machine fitted to the run predicts
    folder: Path | None = None  # where the run lies: its machine files, and earlier runs next to it

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
    def patterns(self) -> pd.DataFrame:
        """The rows of traffic patterns."""
        return self.rows[self.rows["collective"].isin(_PATTERNS)]

    @property
    def machines(self) -> list[str]:
        """Measured machines first, each group by name: the order of every table and chart."""
        order = self.rows[["machine", "modelled"]].drop_duplicates().sort_values(["modelled", "machine"])
        return order["machine"].drop_duplicates().tolist()

    @cached_property
    def has_measured(self) -> bool:
        """Whether any row was measured."""
        return not self.rows["modelled"].all()

    @cached_property
    def has_modelled(self) -> bool:
        """Whether any row was computed by a model."""
        return bool(self.rows["modelled"].any())

    def topology(self, machine: str) -> Topology:
        """What the host says of itself, where `machine` is its processors; else nothing: a model, or a GPU in it."""
        found = set(self.rows[self.rows["machine"] == machine]["executor"])
        return Topology(self.environment if all(map(executors.is_host, found)) else {})


def load(folder: Path) -> Run:
    """Reads `folder`; a study alone (study.json without results) is a run without rows."""
    folder = Path(folder)
    results, study = folder / "results.parquet", folder / "study.json"
    if not results.exists() and not study.exists():
        raise StoreError(f"{folder}: neither results.parquet nor study.json; give the folder of a run, runs/<id>")
    samples = folder / "samples.parquet"
    suite = folder / "suite.toml"
    environment = _json(folder / "environment.json", documents.ENVIRONMENT) or {}
    plan = _json(folder / "run.json", documents.RUN) or {}
    rows = normalise(documents.results(results).to_pandas() if results.exists() else pd.DataFrame(columns=COLUMNS))
    asked = plan.get("request", {}).get("name")
    rows["machine"] = rows["machine"].replace(_short_names(rows, environment, asked))
    return Run(
        id=folder.resolve().name,
        rows=rows,
        samples=documents.samples(samples).to_pandas() if samples.exists() else pd.DataFrame(),
        environment=environment,
        plan=plan,
        suite=read_text(suite, "a suite file") if suite.exists() else "",
        study=_json(study, documents.STUDY),
        fit=_json(folder / "fit.json", documents.FIT),
        folder=folder,
    )


def _short_names(rows: pd.DataFrame, environment: dict[str, Any], asked: str | None) -> dict[str, str]:
    """Machine of the rows -> its short name, where it is the processor of this host; --name also names a GPU."""
    measured = set(rows[~rows["modelled"]]["machine"]) - {""}
    named = measured if asked else measured & {environment.get("processor")}
    return {machine: naming.short_name(environment, asked) for machine in named} if len(named) == 1 else {}


def normalise(raw: pd.DataFrame) -> pd.DataFrame:
    """The tidy rows in base units with the added columns, in the order in which they came."""
    unknown = [name for name in ("experiment", "metric", "status") if name not in raw.columns]
    if unknown:
        raise StoreError(f"results: no column {', '.join(unknown)}; were they written by another version?")
    rows = raw.reindex(columns=list(dict.fromkeys([*COLUMNS, *raw.columns]))).reset_index(drop=True).copy()
    for name in _NUMBERS:
        rows[name] = pd.to_numeric(rows[name], errors="coerce").astype(float)
    rows["reference_value"] = pd.to_numeric(rows["reference"], errors="coerce").astype(float)
    for name in _WORDS:
        rows[name] = _texts(rows.index, *_words(rows[name]))
    bases = {unit: quantity.base(unit) for unit in rows["unit"].unique()}
    factors = rows["unit"].map({unit: factor for unit, (_, factor) in bases.items()}).to_numpy(dtype=float)
    rows["unit"] = rows["unit"].map({unit: name for unit, (name, _) in bases.items()})
    for name in _SCALED:
        rows[name] = rows[name].to_numpy(dtype=float) * factors
    rows["machine"] = rows["machine"].where(rows["machine"] != "", rows["executor"])
    rows["modelled"] = (
        rows["executor"].map({key: executors.is_modelled(key) for key in rows["executor"].unique()}).astype(bool)
    )
    limited = rows["limit"].notna()
    rows["yardstick"] = rows["limit"].where(limited, rows["best_seen"])
    rows["yardstick_name"] = rows["limit_name"].where(limited, rows["best_seen_name"])
    rows["yardstick_kind"] = np.where(limited, LIMIT, np.where(rows["best_seen"].notna(), BEST_SEEN, ""))
    rows["share"] = _share(rows)
    rows["label"] = rows["collective"].where(~rows["collective"].isin(_PATTERNS), rows["algorithm"])
    codes, placements = _words(rows["placement"])
    ends = [re.split(r"\s*-?>\s*", text.strip()) for text in placements]
    for place, column in enumerate(("source", "destination")):
        names = [found[place] if len(found) == 2 else None for found in ends]
        rows[column] = _texts(rows.index, codes, np.array(names, dtype=object))
    rows["modes"] = _modes(rows)
    return rows


def _words(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """(code of each row, texts): null is the empty text. Millions of rows share few texts."""
    codes, texts = pd.factorize(column, use_na_sentinel=True)
    return codes, np.array([*map(str, texts.tolist()), ""], dtype=object)  # code -1, null, is the last one


def _texts(index: pd.Index, codes: np.ndarray, texts: np.ndarray) -> pd.Series:
    """Python strings, each stored once: Arrow strings, which pandas would choose, are slow one by one."""
    return pd.Series(texts[codes], index=index, dtype=object)


def ok(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that may be shown as results: ok, with a value."""
    return rows[(rows["status"] == "ok") & rows["value"].notna()]


def is_rate(unit: str) -> bool:
    """Whether more is better and a limit is an upper one: something per second, or per second and watt."""
    return unit.endswith(("/s", "/s/W"))


def _share(rows: pd.DataFrame) -> pd.Series:
    """Part of the yardstick reached: limit/value of a time, value/limit of a rate; 1 is at the limit."""
    value, limit = rows["value"], rows["yardstick"]
    rate = rows["unit"].map(is_rate).astype(bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(rate, value / limit, limit / value)
    return pd.Series(share, index=rows.index).where(np.isfinite(share) & (share > 0))


def _modes(rows: pd.DataFrame) -> list[str]:
    """'two modes: 34 ns (62 %), 171 ns (38 %)' for experiments whose launches form two groups."""
    keys = ["machine", "executor", "experiment"]
    named = rows[rows["metric"].isin(("mode1", "mode1_share", "mode2", "mode2_share"))]
    words = {}
    for key, part in named.groupby(keys, sort=False):
        found = dict(zip(part["metric"], part["value"], strict=True))
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
