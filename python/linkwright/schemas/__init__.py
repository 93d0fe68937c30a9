"""JSON schemas, made from the declarations that read each file, so that an editor checks what the program checks.

    machine     `[fabric]`, `[path.NAME]`, ... as the Rust readers ask for their keys, see `machine.py`
    part        the same tables with any of their keys: parts of machine files, and files that name parts
    network     the keys of networks, as their Rust reader asks for them
    suite       the keys of `linkwright.session.suite.load`
    predict     the keys of each kind of program
    explain     `linkwright explain LOG --json`, see `linkwright.advise.explain.document`
    schedule    `linkwright explain SCHEDULE --json`, from there too
    hang        the answer to dumps of a job that hangs, see `linkwright.advise.explain.hang.findings`
    results     the columns and metrics of `linkwright.store.schema`
    expect      the keys and columns of `linkwright.formats.gates.document`

`make generate` writes them. `linkwright describe --schema machine` prints one.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

NAMES = ("machine", "part", "network", "suite", "predict", "explain", "schedule", "hang", "results", "expect")
# Editors of TOML know this draft.
DRAFT = "http://json-schema.org/draft-07/schema#"


def path(name: str) -> Path:
    """The file of a shipped schema."""
    return Path(__file__).parent / f"{name}.schema.json"


def made(name: str, machines: list[tuple[str, str]]) -> str:
    """The text of a schema, made again; `machines` are texts and names of files that together have every table."""
    from linkwright.schemas import machine

    makers = {
        "machine": lambda: machine.schema(machines),
        "part": lambda: machine.part(machines),
        "network": _network,
        "suite": _suite,
        "predict": _predict,
        "explain": lambda: _explain().schema(),
        "schedule": lambda: _explain().schedule_schema(),
        "hang": _hang,
        "results": _results,
        "expect": _expect,
    }
    head = {"$schema": DRAFT, "title": f"linkwright: {name}"}
    return json.dumps({**head, **makers[name]()}, indent=1, ensure_ascii=False) + "\n"


def _network() -> Schema:
    from linkwright.base import registry
    from linkwright.schemas import machine

    paths = map(registry.network_path, registry.keys("networks"))
    return machine.network([(path.read_text(encoding="utf-8"), path.name) for path in paths])


def _suite() -> Schema:
    from linkwright.base import toml
    from linkwright.session.suite.load import SUITE

    return toml.schema(SUITE)


def _predict() -> Schema:
    """One branch for each kind of program; a wrong kind is refused on its own."""
    from linkwright.advise import predict
    from linkwright.base import toml

    is_kind = {
        kind: {"properties": {"app": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}}}
        for kind in predict.REGISTRY
    }
    known = {"properties": {"kind": {"enum": list(predict.REGISTRY)}}, "required": ["kind"]}
    branches = [{"if": is_kind[kind], "then": toml.schema(predict.keys_of(kind))} for kind in predict.REGISTRY]
    return {"type": "object", "properties": {"app": known}, "required": ["app"], "allOf": branches}


def _explain() -> types.ModuleType:
    from linkwright.advise.explain import document

    return document


def _hang() -> Schema:
    from linkwright.advise.explain.hang import findings

    found = _of(findings.Hang)
    more = {"format": {"const": findings.FORMAT}, "passes": {"type": "boolean"}}
    return {**found, "properties": more | found["properties"], "required": [*more, *found["required"]]}


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def _of(kind: Any) -> Schema:
    """The schema of a type: a class of data with the types of its fields, or what these are made of."""
    origin, its = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin is typing.Literal:
        return {"enum": list(its)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_of(one) for one in its]}
    if origin is tuple and its[-1] is ...:
        return {"type": "array", "items": _of(its[0])}
    if origin is tuple:
        return {"type": "array", "items": [_of(one) for one in its], "minItems": len(its), "maxItems": len(its)}
    hints = typing.get_type_hints(kind)
    properties = {field.name: _of(hints[field.name]) for field in dataclasses.fields(kind)}
    if "kind" in hints:
        properties = {"kind": {"const": kind.kind}} | properties
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _results() -> Schema:
    """A document of `--out rows.json`."""
    from linkwright.store import schema

    names = {"string": "string", "int64": "integer", "double": "number", "bool": "boolean"}
    closed = {"status": list(schema.STATUS), "metric": list(schema.METRICS)}
    columns = {}
    for column, (kind, nullable, meaning) in schema.RESULTS.items():
        allowed = {"type": [names[kind], "null"] if nullable else names[kind]}
        if column in closed:
            allowed = {"enum": closed[column]}
        columns[column] = {"description": meaning, **allowed}
    row = {"type": "object", "properties": columns, "required": list(columns), "additionalProperties": False}
    properties = {
        "format": {"const": schema.FORMAT},
        "machines": {"description": "machine -> its numbers", "type": "object"},
        "rows": {"type": "array", "items": row},
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _expect() -> Schema:
    """A document of `expect --json`."""
    from linkwright.formats.gates import document

    text = {"type": "string"}
    columns = {
        column: {"description": meaning, "type": [kind, "null"] if nullable else kind}
        for column, (kind, nullable, meaning) in document.ROW.items()
    }
    row = {"type": "object", "properties": columns, "required": list(columns), "additionalProperties": False}
    keys: Schema = {key: {"description": meaning, "type": kind} for key, (kind, meaning) in document.HEAD.items()}
    keys["format"]["const"] = document.FORMAT
    keys["notes"]["items"] = text
    keys["passed"]["type"] = ["boolean", "null"]
    keys["library"] = {"description": "collective -> library", "type": "object", "additionalProperties": text}
    keys["rows"] = {"type": "array", "items": row}
    return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}
