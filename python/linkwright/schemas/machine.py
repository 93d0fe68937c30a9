"""The schema of machine files, made of what their readers ask for.

Each fabric and each model of a probe reads its own table. A recorder in the Rust reader notes the keys, and gives
them as `fabric{loggp}.level[]`: `{loggp}` is the `kind` of the table, `[]` one of several, `*` stands for any name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from linkwright import _native
from linkwright.machines import Shelf

Schema = dict[str, Any]

TEXT = {"type": "string", "pattern": r"\S"}
INTEGER = {"type": "integer", "minimum": 0}
PLACE = {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2}
# Forms without further words.
FORMS: dict[str, Schema] = {
    "text": TEXT,
    "texts": {"type": "array", "items": TEXT},
    "integer": INTEGER,
    "integers": {"type": "array", "items": INTEGER},
    "places": {"type": "array", "items": PLACE},
    "any": {"const": "any"},
}


def schema(files: list[tuple[str, str]]) -> Schema:
    """The schema of all tables in `files`, texts and names of machine files."""
    return _schema(_native.machine_keys(files, Shelf(Path())))


def network(files: list[tuple[str, str]]) -> Schema:
    """The schema of networks between nodes, of texts and names of their files."""
    return _schema(_native.network_keys(files))


def _schema(keys: dict[str, dict]) -> Schema:
    """The schema of tables, with the numbers that may stand in them."""
    numbers = _native.machine_numbers()
    made = _Maker(keys, list(numbers["units"])).table("")
    definitions = {}
    for dimension, units in numbers["units"].items():
        least = {"exclusiveMinimum": 0} if dimension in numbers["positive"] else {"minimum": 0}
        value = {"type": "number", **least}
        listed = {"anyOf": [value, {"type": "array", "items": value}]}
        definitions[_defined(dimension)] = _stated(value, unit={"enum": units})
        definitions[f"{_defined(dimension)}_list"] = _stated(listed, unit={"enum": units})
    definitions["status"] = {"enum": numbers["statuses"]}
    return {**made, "definitions": definitions}


def part(files: list[tuple[str, str]]) -> Schema:
    """The schema of parts of machine files, and of files that name parts: any of the keys, none of them required."""
    made = schema(files)
    about = {"type": "object", "properties": {"name": TEXT, "summary": TEXT}, "additionalProperties": False}
    open_tables = {key: _without_required(value) for key, value in made["properties"].items()}
    properties = {"parts": FORMS["texts"], "part": about, **open_tables}
    return {**made, "required": [], "properties": properties}


def _without_required(found: Any) -> Any:
    """A schema whose tables may lack keys; what decides between kinds of a table stays."""
    if isinstance(found, list):
        return [_without_required(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {
        key: value if key == "if" else _without_required(value) for key, value in found.items() if key != "required"
    }


def _stated(value: Schema, **unit: Schema) -> Schema:
    """A value with its status and source; a number has a unit."""
    keys = {"value": value, **unit, "status": {"$ref": "#/definitions/status"}, "source": TEXT}
    return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}


def _word(value: Schema) -> Schema:
    """A word or a flag, alone or with its status and source."""
    return {"anyOf": [value, _stated(value)]}


def _defined(dimension: str) -> str:
    return dimension.replace(" ", "_")


class _Maker:
    """Makes a schema of each table, from the recorded keys."""

    def __init__(self, tables: dict[str, dict], dimensions: list[str]):
        self._tables = tables
        self._dimensions = dimensions

    def table(self, name: str) -> Schema:
        """The schema of the table of this name, or of all its kinds."""
        if name in self._tables:
            return self._keys(name)
        kinds = {
            kind[1]: table for table in self._tables if (kind := re.fullmatch(re.escape(name) + r"\{(\w+)\}", table))
        }
        if kinds:
            branches = [
                {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": self._keys(table, kind)}
                for kind, table in kinds.items()
            ]
            known = {"kind": {"enum": list(kinds)}}
            return {"type": "object", "properties": known, "required": ["kind"], "allOf": branches}
        # No model reads such a table: numbers and texts for people.
        numbers = [self._form("", "numbers", [dimension]) for dimension in self._dimensions]
        return {"type": "object", "additionalProperties": {"anyOf": [TEXT, *numbers]}}

    def _keys(self, name: str, kind: str | None = None) -> Schema:
        properties = {
            key: ({"description": row["meaning"]} if row["meaning"] else {}) | self._key(name, key, row["forms"])
            for key, row in self._tables[name].items()
        }
        required = [key for key, row in self._tables[name].items() if row["required"] and key != "*"]
        if kind:
            properties["kind"] = {"const": kind}
        others = properties.pop("*", False)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": others}

    def _key(self, table: str, key: str, forms: list[tuple[str, list[str]]]) -> Schema:
        name = f"{table}.{key}" if table else key
        found = [self._form(name, *form) for form in forms]
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _form(self, name: str, form: str, words: list[str]) -> Schema:
        match form:
            case "number" | "numbers":
                suffix = "_list" if form == "numbers" else ""
                return {"$ref": f"#/definitions/{_defined(words[0])}{suffix}"}
            case "choice":
                return {"enum": words} if name.endswith("kind") else _word({"enum": words})
            case "name":
                return _word(TEXT)
            case "flag":
                return _word({"type": "boolean"})
            case "table":
                return self.table(name)
            case "tables":
                return {"type": "array", "items": self.table(f"{name}[]")}
            case _:
                return FORMS[form]
