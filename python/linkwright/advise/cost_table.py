"""Files of cost tables: JSON, which needs no linkwright to be read."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkwright.advise.cost_curve import CostCurve, Error, Fields
from linkwright.base.errors import FileError, UsageError
from linkwright.base.files import read_json, write_text

FORMAT = "linkwright-costs-1"
_COLUMNS = ("bytes", "time_us", "algorithm")
# What values of another kind raise where a table is made of them.
_WRONG = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def check_suffix(path: Path) -> None:
    """Refuse a name whose suffix is not that of JSON."""
    if path.suffix != ".json":
        raise UsageError(
            f"{path}: a cost table is a .json file; create one with `linkwright plan cost --out FILE.json`"
        )


def write(table: dict[str, Any], path: Path) -> Path:
    """Write a table, as plain values."""
    check_suffix(path)
    write_text(path, json.dumps({"format": FORMAT, **table}, indent=1, ensure_ascii=False) + "\n")
    return path


def read(path: Path) -> Fields:
    """The table in a file, as the fields of a `CostTable`; refuses anything that is not one."""
    check_suffix(path)
    try:
        values = read_json(path, "a cost table")
        if values.get("format") != FORMAT:
            raise ValueError(f"its format is not `{FORMAT}`")
        machine, digest, wanted, dtype = (_text(values, name) for name in ("machine", "digest", "algorithms", "dtype"))
        return machine, digest, wanted, dtype, tuple(map(_curve, values["curves"]))
    except _WRONG as error:
        said = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else error
        raise FileError(f"{path}: not a cost table: {said}; create one with `linkwright plan cost`") from error


def _text(values: Mapping[str, Any], name: str) -> str:
    found = values[name]
    if not isinstance(found, str):
        raise TypeError(f"`{name}` is not text")
    return found


def _curve(values: Mapping[str, Any]) -> CostCurve:
    sizes, times, names = (tuple(values[name]) for name in _COLUMNS)
    where = f"curve of {_text(values, 'collective')}"
    if not sizes or not len(sizes) == len(times) == len(names):
        raise ValueError(f"{where}: points are missing")
    if not all(type(size) is int for size in (values["ranks"], *sizes)) or sizes[0] < 0:
        raise ValueError(f"{where}: ranks and bytes must be whole numbers")
    if any(b <= a for a, b in itertools.pairwise(sizes)):
        raise ValueError(f"{where}: bytes must rise")
    if not all(math.isfinite(time) and time >= 0 for time in times):
        raise ValueError(f"{where}: a time is not a finite number of at least 0")
    if any(b < a for a, b in itertools.pairwise(times)):
        raise ValueError(f"{where}: a time falls with the size")
    return CostCurve(values["collective"], values["ranks"], sizes, times, names, Error(**values["error"]))
