"""The tables of a run folder, `results.parquet` and `samples.parquet`: rows of declared columns to files and back.

A file is read whole and compared with the digest that its run noted when it was written. What the native half makes
of it gets the declared types, or is refused in one message.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from linkwright import _native
from linkwright.base.errors import StoreError
from linkwright.base.files import kept, write_whole
from linkwright.base.lazy import np
from linkwright.base.rows import Column, Rows, given

from . import schema

AGAIN = "it is damaged: restore it, or make the run again"
Declared = Mapping[str, tuple[str, bool, str]]
Compression = Literal["snappy", "zstd"]


def write(path: Path, columns: Mapping[str, Sequence[Any]], declared: Declared, compression: Compression) -> str:
    """Write a table whole, and return its digest; None is a missing value."""
    content = encoded(columns, declared, compression)
    write_whole(path, lambda temporary: temporary.write_bytes(content))
    return digest(content)


def encoded(
    columns: Mapping[str, Sequence[Any]], declared: Declared, compression: Compression, **metadata: str
) -> bytes:
    """The Parquet file of a table, with the version of the format, and `metadata`, at its end."""
    laid = [(name, kind, nullable, list(columns[name])) for name, (kind, nullable, _) in declared.items()]
    said = {"linkwright_format": str(schema.FORMAT), **metadata}
    return _native.write_table(laid, compression, list(said.items()))


def by_column(records: Iterable[Mapping[str, Any]], declared: Declared) -> dict[str, list[Any]]:
    """The declared columns of rows; what a row does not name is missing."""
    rows = list(records)
    return {name: [row.get(name) for row in rows] for name in declared}


def digest(content: bytes) -> str:
    """What a run notes of a file."""
    return hashlib.sha256(content).hexdigest()


def glance(path: Path) -> None:
    """Refuse a file that was cut, by its ends alone."""
    try:
        _native.table_rows(_content(path))
    except ValueError as error:
        raise _damaged(path, error) from error


def read(path: Path, needed: Sequence[str] = ("experiment",)) -> Rows:
    """The columns of a file, as they are; numbers that are missing are NaN, or None among whole numbers."""
    content = _content(path)
    if _noted(path) not in (None, digest(content)):
        raise StoreError(f"{path}: is not the file that its run wrote; {AGAIN}")
    try:
        found = _native.read_table(content)
    except (ValueError, MemoryError) as error:
        raise _damaged(path, error) from error
    if missing := [name for name in needed if name not in found]:
        raise StoreError(f"{path}: has no column {', '.join(missing)}; {AGAIN}")
    return Rows({name: _column(*parts) for name, parts in found.items()})


def typed(rows: Rows, declared: Declared, path: Path) -> Rows:
    """The declared columns with their types; a column that the file lacks is missing in every row."""
    columns = {}
    for name, (kind, nullable, _) in declared.items():
        column = rows[name] if name in rows else np.full(len(rows), None, dtype=object)
        cast = _cast(column, kind)
        if cast is None or not (nullable or given(cast).all()):
            raise StoreError(f"{path}: column {name} holds no {_WORDS[kind]} in some row; {AGAIN}")
        columns[name] = cast
    return Rows(columns, len(rows))


_WORDS = {"string": "text", "int64": "whole number", "int32": "whole number", "double": "number", "bool": "truth value"}
_KINDS = {"string": "O", "int64": "i", "int32": "i", "double": "f", "bool": "b"}


def _content(path: Path) -> bytes:
    try:
        return kept(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}; {AGAIN}") from error


def _damaged(path: Path, error: Exception) -> StoreError:
    brief = next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
    return StoreError(f"{path}: is not a whole Parquet file ({brief}); {AGAIN}")


def _noted(path: Path) -> str | None:
    """The digest that the run noted; None of a run of an earlier version, and of a table that lies alone."""
    beside = path.parent / "run.json"
    try:
        return json.loads(kept(beside).decode("utf-8")).get("tables", {}).get(path.name)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{beside}: cannot be read, so {path.name} may be damaged; {AGAIN}") from error


def _column(values: Column, there: Column | None, texts: list[str] | None = None) -> Column:
    """The values of a column, with what stands for a missing one."""
    if texts is not None:
        values = np.array([*texts, None], dtype=object)[values]
    if there is None:
        return values
    if values.dtype.kind == "f":
        return np.where(there, values, np.nan)
    return np.where(there, values.astype(object), None)


def _cast(column: Column, kind: str) -> Column | None:
    """The column as one of this kind; None if it holds anything else."""
    there = given(column)
    if not there.any():
        return np.full(len(column), np.nan if kind == "double" else None, dtype=float if kind == "double" else object)
    found = column[there]
    if kind == "string":
        return column if all(isinstance(value, str) for value in found.tolist()) else None
    if any(isinstance(value, (str, bool)) for value in found.tolist()) and kind != "bool":
        return None
    if kind == "double":
        return np.array([np.nan if value is None else value for value in column.tolist()], dtype=float)
    if kind == "bool":
        return column if all(isinstance(value, bool) for value in found.tolist()) else None
    whole = [int(value) for value in found.tolist()]
    if whole != found.tolist():
        return None
    if there.all():
        return np.array(whole, dtype=np.int64)
    cast = np.full(len(column), None, dtype=object)
    cast[there] = whole
    return cast
