"""The text of a document of tables, as TOML that people read and edit.

    {"fabric": {"kind": "flow", "links": {"nvlink": {...}}}}    ->    [fabric]
                                                                     kind = "flow"

                                                                     [fabric.links.nvlink]

Keys stay in their order. A table with a `value` is a number or a word with its source, and stands on one line; so does
a short list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Table = dict[str, Any]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 120


def text(document: Table) -> str:
    """The document as TOML; `tomllib` reads the same values from it."""
    return "\n".join(_table(document, ())).strip("\n") + "\n"


def number(value: float, unit: str, status: str, source: str) -> Table:
    """Return a number as a machine file has it."""
    return {"value": value, "unit": unit, "status": status, "source": source}


def derived(gb_per_s: float, source: str) -> Table:
    """Return a rate that follows from numbers of data sheets, of four decimals."""
    return number(round(gb_per_s, 4), "GB/s", "derived", source)


def fitted(value: float, unit: str, source: str, digits: int = 6) -> Table:
    """Return a fitted number, of so many digits."""
    return number(float(f"{value:.{digits}g}"), unit, "fitted", source)


def _table(table: Table, path: tuple[str, ...]) -> Iterator[str]:
    """The lines of a table: its own keys, then the tables inside."""
    inner = {key: value for key, value in table.items() if _is_header(value)}
    yield from (f"{_key(key)} = {_value(value)}" for key, value in table.items() if key not in inner)
    for key, value in inner.items():
        name = ".".join(map(_key, (*path, key)))
        for one in value if isinstance(value, list) else [value]:
            if isinstance(value, list) or not one or not all(map(_is_header, one.values())):
                yield from ("", f"[[{name}]]" if isinstance(value, list) else f"[{name}]")
            yield from _table(one, (*path, key))


def _is_header(value: object) -> bool:
    """Whether a value has a header of its own: a table, or a list of tables."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(one, dict) for one in value)
    return isinstance(value, dict) and "value" not in value


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _lines(value) if "\n" in value else _quoted(value)
        case dict():
            return "{ " + ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items()) + " }"
        case list():
            return _list([_value(one) for one in value])
        case _:
            return repr(value)


def _list(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    return line if len(line) <= _WIDTH else "[\n" + "".join(f"  {item},\n" for item in items) + "]"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(value: str) -> str:
    """A text of several lines, which begin after the quotes."""
    return '"""\n' + "\n".join(_quoted(line)[1:-1] for line in value.split("\n")) + '"""'
