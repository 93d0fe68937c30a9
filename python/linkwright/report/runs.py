"""Reads a run folder into one frame in base units, which every section builder takes.

``runs/<id>/`` holds results.parquet (tidy rows), samples.parquet (raw), environment.json,
suite.toml and, for a reproduced study, study.json. Added here, computed once: `unit` in base units
with value, interval, limit and reference scaled to it; `share`, the part of its limit that a row
reaches; `modelled`; `source` and `destination` of a placement ``a>b``; `label`, what the row is
about; `modes`, where launch medians form two groups.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from linkwright.errors import LinkwrightError

from . import quantity

COLUMNS = [
    "run",
    "experiment",
    "suite",
    "machine",
    "executor",
    "collective",
    "algorithm",
    "ranks",
    "size_bytes",
    "dtype",
    "op",
    "placement",
    "issue",
    "path",
    "metric",
    "value",
    "unit",
    "ci_low",
    "ci_high",
    "n",
    "status",
    "reason",
    "limit",
    "limit_name",
    "reference",
]
_NUMBERS = ("ranks", "size_bytes", "value", "ci_low", "ci_high", "n", "limit")
_SCALED = ("value", "ci_low", "ci_high", "limit", "reference_value")

COLLECTIVES = [
    "allreduce",
    "reduce_scatter",
    "allgather",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "alltoall",
    "barrier",
]


class ReportError(LinkwrightError):
    """A run folder that cannot be reported on."""


@dataclass(frozen=True)
class Run:
    """Everything of one run folder."""

    id: str
    rows: pd.DataFrame
    samples: pd.DataFrame = field(default_factory=pd.DataFrame)
    environment: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)  # run.json: what was asked
    suite: str = ""
    study: dict[str, Any] | None = None

    @property
    def machines(self) -> list[str]:
        """Measured machines first, each group by name: the order of every table and chart."""
        order = self.rows[["machine", "modelled"]].drop_duplicates().sort_values(["modelled", "machine"])
        return order["machine"].drop_duplicates().tolist()


def load(folder: Path) -> Run:
    """Reads `folder`; a study alone (study.json without results) is a run without rows."""
    folder = Path(folder)
    results, study = folder / "results.parquet", folder / "study.json"
    if not results.exists() and not study.exists():
        raise ReportError(
            f"{folder}: neither results.parquet nor study.json; give the folder of a run, runs/<id>"
        )
    samples = folder / "samples.parquet"
    suite = folder / "suite.toml"
    return Run(
        id=folder.resolve().name,
        rows=normalise(_parquet(results) if results.exists() else pd.DataFrame(columns=COLUMNS)),
        samples=_parquet(samples) if samples.exists() else pd.DataFrame(),
        environment=_json(folder / "environment.json") or {},
        plan=_json(folder / "run.json") or {},
        suite=suite.read_text(encoding="utf-8") if suite.exists() else "",
        study=_json(study),
    )


def normalise(raw: pd.DataFrame) -> pd.DataFrame:
    """The tidy rows in base units with the added columns, in the order in which they came."""
    unknown = [name for name in ("experiment", "metric", "status") if name not in raw.columns]
    if unknown:
        raise ReportError(f"results: no column {', '.join(unknown)}; were they written by another version?")
    rows = raw.reindex(columns=list(dict.fromkeys([*COLUMNS, *raw.columns]))).reset_index(drop=True).copy()
    for name in _NUMBERS:
        rows[name] = pd.to_numeric(rows[name], errors="coerce").astype(float)
    rows["reference_value"] = pd.to_numeric(rows["reference"], errors="coerce").astype(float)
    for name in (
        "machine",
        "executor",
        "collective",
        "algorithm",
        "placement",
        "reason",
        "limit_name",
        "unit",
    ):
        rows[name] = rows[name].astype(object).where(rows[name].notna(), "").astype(str)
    bases = [quantity.base(unit) for unit in rows["unit"]]
    factors = np.array([factor for _, factor in bases], dtype=float)
    rows["unit"] = [name for name, _ in bases]
    for name in _SCALED:
        rows[name] = rows[name].to_numpy(dtype=float) * factors
    rows["machine"] = rows["machine"].where(rows["machine"] != "", rows["executor"])
    rows["modelled"] = rows["executor"] == "sim"
    rows["share"] = _share(rows)
    rows["label"] = rows["collective"].where(~rows["collective"].isin(("", "pattern")), rows["algorithm"])
    ends = [[end.strip() for end in text.split(">")] for text in rows["placement"]]
    rows["source"] = [pair[0] if len(pair) == 2 else None for pair in ends]
    rows["destination"] = [pair[1] if len(pair) == 2 else None for pair in ends]
    rows["modes"] = _modes(rows)
    return rows


def ok(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that may be shown as results: ok or unconverged, with a value."""
    return rows[rows["status"].isin(("ok", "unconverged")) & rows["value"].notna()]


def is_rate(unit: str) -> bool:
    """Whether more is better and a limit is an upper one: bytes per second."""
    return unit.endswith("/s")


def _share(rows: pd.DataFrame) -> pd.Series:
    """Part of the limit reached: limit/value of a time, value/limit of a rate; 1 is at the limit."""
    value, limit = rows["value"], rows["limit"]
    rate = rows["unit"].map(is_rate).astype(bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(rate, value / limit, limit / value)
    return pd.Series([s if math.isfinite(s) and s > 0 else math.nan for s in share], index=rows.index)


def _modes(rows: pd.DataFrame) -> list[str]:
    """'two modes: 34 ns (62 %), 171 ns (38 %)' for experiments whose launches form two groups."""
    keys = ["machine", "executor", "experiment"]
    named = rows[rows["metric"].isin(("mode1", "mode1_share", "mode2", "mode2_share"))]
    words = {}
    for key, part in named.groupby(keys, sort=False):
        found = dict(zip(part["metric"], part["value"], strict=True))
        if len(found) == 4:
            modes = (
                f"{quantity.text(found[m], 's')} ({quantity.percent(found[m + '_share'])})"
                for m in ("mode1", "mode2")
            )
            words[key] = "two modes: " + ", ".join(modes)
    if not words:
        return [""] * len(rows)
    return [words.get(key, "") for key in zip(*(rows[name] for name in keys), strict=True)]


def natural(name: str) -> list[tuple[int, Any]]:
    """Sort key under which tile 10 follows tile 9."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", str(name)) if part]


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ReportError(
            f"{path}: not a readable parquet file ({error}); resume or repeat the run"
        ) from error


def _json(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReportError(f"{path}: not valid JSON ({error}); resume or repeat the run") from error
