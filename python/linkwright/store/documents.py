"""What the files of a run folder hold: read by a declaration each, or refused in one message.

A disk may rot, a copy be cut, and a folder come from a stranger. Every JSON file is read by the form of what it
holds, and every table by its declared columns. What passes has the types that it should,
so nothing behind this module checks them again.

    str, int, bool, object       a value of this type; `float` takes whole numbers too, `object` takes anything
    (str, None)                  one of several; None is null
    [form]                       a list of such values
    {"key": form, "other?": form, ...: form}
                                 an object: `other` may be absent; `...` is the form of all other keys, `NONE` if there
                                 may be none; without it they hold anything
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linkwright.base.errors import StoreError
from linkwright.base.files import kept, no_number
from linkwright.base.rows import Rows, unique

from . import schema, tables, upgrade
from .tables import AGAIN

Form = Any
NONE = "none"  # the form of `...` where no other key may stand

_NAMED = {"key": str, "unit": str}
_CPU = {
    "cpu": int,
    ...: object,
    "package?": (str, None),
    "core?": (str, None),
    "siblings?": (str, None),
    "caches?": [{...: (str, None)}],
}
VARIANT = {"nodes": (int, None), "fabric": (str, None), "without": [str], "degrade": {...: float}}
REQUEST = {
    "on": str,
    "budget_s": float,
    "ranks": (int, None),
    "grid": ([int], None),
    "seed": int,
    "samples": (int, None),
    "warmup": (int, None),
    "check": bool,
    "watts": (float, None),
    "target": float,
    "level": str,
    "name": (str, None),
    "variant": VARIANT,
}
_OPTIONAL = {f"{key}?": form for key, form in REQUEST.items()}
INPUT = {"machine": str, "digest": (str, None)}
RUN = {
    "format?": int,
    "id?": str,
    "state": str,
    "study?": str,
    "request?": {**_OPTIONAL, "import?": [str]},
    "inputs?": {...: INPUT},
    "tables?": {...: str},
}
ENVIRONMENT = {
    "time?": str,
    "command?": str,
    "versions?": {...: str},
    "host?": (str, None),
    "processor?": (str, None),
    "architecture?": str,
    "cpus_online?": (int, None),
    "affinity?": [int],
    "topology?": [_CPU],
    "memory_bytes?": int,
    "virtual?": bool,
    # What an executor says of its machine.
    "threads?": {"endpoints?": [str]},
    "mpi?": {"endpoints?": [str], "ranks?": [{"host": str, "rank": int}]},
    "gpus?": {"endpoints?": [str]},
}
EXPERIMENTS = {
    ...: [
        {
            "part": str,
            "collective": (str, None),
            "algorithm": str,
            "ranks": int,
            "size_bytes": (int, None),
            "own": ({"schedule?": str, "text?": str, "reason?": str, "code?": (str, None)}, None),
        }
    ]
}
STUDY = {
    "paper": str,
    "title?": (str, None),
    "tuned?": [{"status": str}],
    "cells?": [{"table": str, "unit": str}],
    "claims?": [{"id": str, "statement": str, "holds": (bool, None), "why?": (str, None)}],
    "tables?": {...: [{...: object}]},
    "notes?": {...: str},
    "sections?": [{...: object}],
}
FIT = {
    "machine": str,
    "of": str,
    "state?": (str, None),
    "parameters": [{**_NAMED, "value": float, "low": float, "high": float}],
    "predictions": [
        {
            "experiment": str,
            "collective": (str, None),
            "algorithm": str,
            "ranks": int,
            "size_bytes": int,
            "seen": bool,
            "measured_ns": float,
            "error_ns": float,
            "predicted_ns": (float, None),
        }
    ],
    "choices": [{"collective": str, "ranks": int, "size_bytes": int, "measured": str, "predicted": str, "loss": float}],
}


_COLUMNS = {"string": str, "int64": int, "double": float, "bool": bool}
_ROW = {name: (_COLUMNS[kind], None) if null else _COLUMNS[kind] for name, (kind, null, _) in schema.RESULTS.items()}
_SAMPLES = {
    "experiment": str,
    "launch?": int,
    "values_ns": [float],
    "first_ns": float,
    "batch?": int,
    "dropped?": {...: int},
    "notes?": [[str]],
    "ranks_ns?": [[[float]]],
    "rank_ns?": [float],
    "message_ns?": [float],
    "row_ns?": ([float], None),
    "canary_ns?": [(float, None)],
    "foreign?": (float, None),
    "clock_change?": (float, None),
    "clock_hz?": (float, None),
    "start?": (str, None),
    "residual_ns?": (float, None),
    "counted_bytes?": float,
    "moved_bytes?": float,
    "work?": float,
    "columns?": {...: [float]},
    "limit_ns?": (float, None),
    "limit_name?": (str, None),
    "watts?": (float, None),
    ...: NONE,
}
_ENDED = {
    "experiment": str,
    "launch": int,
    "status": str,
    "reason": str,
    "code?": (str, None),
    "need_s?": (float, None),
    ...: NONE,
}
# A line of the journal, which `record.py` writes.
RECORD = {"samples?": _SAMPLES, "ended?": _ENDED, "rows?": [_ROW]}


def read(path: Path, form: Form, cure: str = AGAIN) -> Any:
    """The value of a JSON file of this form; a `StoreError` names the file, the place in it and the cure."""
    try:
        found = json.loads(kept(path).decode("utf-8"), parse_constant=no_number)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}; {cure}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}: is not JSON ({_brief(error)}); {cure}") from error
    check(found, form, path, cure)
    return found


def check(value: object, form: Form, path: Path, cure: str = AGAIN) -> None:
    """Refuse a `value`, read from `path`, of another form."""
    if wrong := _wrong(value, form, ""):
        raise StoreError(f"{path}: {wrong}; {cure}")


def _brief(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]


def _wrong(value: object, form: Form, at: str) -> str | None:
    """What is wrong with a value, with its place; None if nothing is."""
    if isinstance(form, tuple):
        forms = [_wrong(value, one, at) for one in form]
        # Of a list or an object, what is wrong inside says more.
        return None if None in forms else next(filter(lambda text: " must be " not in text, forms), forms[0])
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{at or 'the file'} must be a list"
        return next(filter(None, (_wrong(one, form[0], f"{at}[{i}]") for i, one in enumerate(value))), None)
    if isinstance(form, Mapping):
        return _wrong_object(value, form, at)
    return None if _is(value, form) else f"{at or 'the file'} must be {_word(form)}"


def _wrong_object(value: object, form: Mapping[Any, Form], at: str) -> str | None:
    if not isinstance(value, dict):
        return f"{at or 'the file'} must be an object"
    for key in form:
        if key is not ... and not key.endswith("?") and key not in value:
            return f"{at + '.' if at else ''}{key} is missing"
    for key, one in value.items():
        its = form.get(key, form.get(f"{key}?", form.get(..., object)))
        if its == NONE:
            return f"{at + '.' if at else ''}{key} is unknown"
        if wrong := _wrong(one, its, f"{at}.{key}" if at else key):
            return wrong
    return None


def _is(value: object, form: type | None) -> bool:
    if form is None or form is object:
        return form is object or value is None
    if form is float:
        return type(value) in (int, float) and abs(value) < float("inf")  # type: ignore[arg-type]
    return type(value) is form and (form is not int or abs(value) < 1 << 63)  # type: ignore[arg-type]


def _word(form: type | None) -> str:
    words = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    return "null" if form is None else words[form]


def results(path: Path) -> Rows:
    """The rows of `results.parquet`, of any format."""
    rows = upgrade.results(tables.read(path, ("experiment", "metric", "status")))
    found = tables.typed(rows, schema.RESULTS, path)
    # Metrics are open: a probe has its own.
    for word in unique(found["status"]):
        if word not in schema.STATUS:
            raise StoreError(f"{path}: status `{word}` does not exist; {AGAIN}")
    return found


def samples(path: Path) -> Rows:
    """The rows of `samples.parquet`, of any format."""
    rows = upgrade.samples(tables.read(path, ("experiment", "launch", "value_ns")))
    return tables.typed(rows, schema.SAMPLES, path)
