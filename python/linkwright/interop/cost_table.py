"""Files of cost tables: JSON to read anywhere, NPZ to load fast.

NPZ holds `about`, the JSON text without the points; `ends`, where each curve ends; and `bytes`, `time_us` and
`algorithm` of all points, one curve after another. Neither form needs linkwright to be read.
"""

from __future__ import annotations

import itertools
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwright.cost_curve import CostCurve, Error, Fields
from linkwright.errors import FileError, UsageError
from linkwright.store.files import MOST_BYTES, read_json, write_text, write_whole

FORMAT = "linkwright-costs-1"
SUFFIXES = (".json", ".npz")
_COLUMNS = ("bytes", "time_us", "algorithm")
# What values of another kind raise where a table is made of them.
_WRONG = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, EOFError, zipfile.BadZipFile
)  # fmt: skip


def check_suffix(path: Path) -> None:
    """Refuse a name whose suffix is no format."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: a cost table is a .json or a .npz file; choose one of the two")


def write(table: dict[str, Any], path: Path) -> Path:
    """Write a table, as plain values, in the format of its suffix."""
    check_suffix(path)
    values = {"format": FORMAT, **table}
    if path.suffix == ".json":
        write_text(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")
        return path
    curves = values["curves"]
    lengths = [len(curve["bytes"]) for curve in curves]
    columns = {name: [value for curve in curves for value in curve.pop(name)] for name in _COLUMNS}
    arrays: dict[str, Any] = {
        "about": np.array(json.dumps(values)),
        "ends": np.cumsum(lengths),
        "bytes": np.array(columns["bytes"], np.int64),
        "time_us": np.array(columns["time_us"], np.float64),
        "algorithm": np.array(columns["algorithm"], dtype=np.str_),
    }

    def fill(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)

    write_whole(path, fill)
    return path


def read(path: Path) -> Fields:
    """The table in a file, as the fields of a `CostTable`; refuses anything that is not one."""
    check_suffix(path)
    try:
        values = read_json(path, "a cost table") if path.suffix == ".json" else _npz(path)
        if values.get("format") != FORMAT:
            raise ValueError(f"its format is not `{FORMAT}`")
        machine, digest, wanted, dtype = (_text(values, name) for name in ("machine", "digest", "algorithms", "dtype"))
        return machine, digest, wanted, dtype, tuple(map(_curve, values["curves"]))
    except _WRONG as error:
        said = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else error
        raise FileError(f"{path}: no cost table: {said}; write one with `linkwright plan cost`") from error


def _npz(path: Path) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(array.file_size for array in archive.infolist()) > MOST_BYTES:
                raise ValueError(f"its arrays take more than {MOST_BYTES >> 30} GiB")
        with np.load(path, allow_pickle=False) as arrays:
            values = json.loads(str(arrays["about"]))
            columns = {name: arrays[name].tolist() for name in _COLUMNS}
            ends = arrays["ends"].tolist()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}; give the path of a cost table") from error
    for curve, (first, last) in zip(values["curves"], itertools.pairwise([0, *ends]), strict=True):
        curve.update({name: column[first:last] for name, column in columns.items()})
    return values


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
