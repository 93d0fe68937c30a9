"""The shape of what composition reads of a machine file: tables, lists and texts where it looks for them.

    {"links": {...: {"edges": [str]}}}     `links` is a table of tables, each of whose `edges` is a list of texts

Keys may be absent, and others hold anything: the native half reads the finished text, and judges all of it.
"""

from __future__ import annotations

from typing import Any

from linkwright import toml

Form = Any

_STATED = {"value": (int, float)}
_CLASSES = {...: {"edges": [str], "bandwidth": _STATED}}
MACHINE: Form = {
    "machine": {"name": str, "summary": str, "sources": [str]},
    "level": [{"name": str}],
    "endpoints": {"name": str, "names": [str], "memory": [{"name": str}]},
    "fabric": {
        "switches": [str],
        "links": _CLASSES,
        "transport": {...: {"links": [str], "stage_at": [str], "rate": _STATED, "channel": _STATED}},
        "network": {...: {"transports": [str]}},
        "switch": {...: {}},
        "pair": {...: {"route": [str]}},
    },
    "hints": {"networks": [str]},
    "path": {...: {}},
    "library": {"modes": {}},
}
# A chip with networks side by side.
CHIP: Form = {
    **MACHINE,
    "fabric": {"network": [{"name": str}]},
    "hints": {"networks": [str], "axis": {...: str}, "lane": {...: str}},
}
_WORDS = {dict: "a table", list: "a list", str: "a text", (int, float): "a number"}


def check(value: object, form: Form, place: toml.Place) -> None:
    """Refuse a value that has not the form."""
    kind = type(form) if isinstance(form, (dict, list)) else form
    if not isinstance(value, kind) or isinstance(value, bool):
        raise place.wrong(f"is {str(value)[:40]!r}; write {_WORDS[kind]}")
    if isinstance(value, list):
        for i, one in enumerate(value):
            check(one, form[0], toml.Place(place.file, f"{place.path}[{i}]", place.error))
    if isinstance(value, dict):
        for key, one in value.items():
            if key in form or ... in form:
                check(one, form.get(key, form.get(...)), place.inside(key))
