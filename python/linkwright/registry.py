"""Everything that has a name, by kind: machines, suites and workloads are files, the rest are registries in code.

An entry is a dict with at least `key` and `summary`; `list`, `describe`, completion and the docs are
made from entries only.
"""

from __future__ import annotations

import functools
import importlib
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from .errors import UsageError, unknown

Entry = dict[str, object]


@functools.cache
def _files(folder: str) -> dict[str, Path]:
    """The shipped files of a folder by key; they do not change while the process runs."""
    with resources.as_file(resources.files("linkwright") / folder) as root:
        return {path.stem: path for path in sorted(root.glob("*.toml"))}


def _file_entries(folder: str, table: str) -> list[Entry]:
    entries = []
    for key, path in _files(folder).items():
        head = tomllib.loads(path.read_text(encoding="utf-8")).get(table, {})
        entries.append({"key": key, "summary": head.get("summary", ""), "file": path.name, **head})
    return entries


def _of(module: str, name: str) -> list[Entry]:
    """The entries in a module of linkwright, a table or a function, imported on first use."""
    found = getattr(importlib.import_module(f"linkwright.{module}"), name)
    return list(found() if callable(found) else found)


def _native(function: str) -> Callable[[], list[Entry]]:
    return functools.partial(_of, "_native", function)


def _studies() -> list[Entry]:
    from . import studies

    return [{"key": key, "summary": study.summary} for key, study in studies.REGISTRY.items()]


# Kind -> its entries. `linkwright list KIND` takes these names.
KINDS: dict[str, Callable[[], list[Entry]]] = {
    "machines": functools.partial(_file_entries, "machines", "machine"),
    "algorithms": _native("algorithms"),
    "own-algorithms": functools.partial(_of, "executors", "own_algorithms"),
    "patterns": _native("patterns"),
    "probes": functools.partial(_of, "probes", "entries"),
    "fabrics": _native("fabrics"),
    "executors": functools.partial(_of, "executors", "entries"),
    "backends": functools.partial(_of, "suite.backends", "entries"),
    "exporters": functools.partial(_of, "interop", "exporters"),
    "importers": functools.partial(_of, "interop", "importers"),
    "suites": functools.partial(_file_entries, "suites", "suite"),
    "workloads": functools.partial(_file_entries, "workloads", "app"),
    "studies": _studies,
    "errors": functools.partial(_of, "errors", "entries"),
}


def entries(kind: str) -> list[Entry]:
    """All entries of one kind, in registry order."""
    if kind not in KINDS:
        raise unknown("kind of thing", kind, KINDS)
    return KINDS[kind]()


def keys(kind: str) -> list[str]:
    """The keys of one kind."""
    return [str(entry["key"]) for entry in entries(kind)]


def find(name: str) -> list[tuple[str, Entry]]:
    """Every (kind, entry) called `name`; an algorithm answers to `collective/name` and to `name`."""
    found = [
        (kind, entry)
        for kind in KINDS
        for entry in entries(kind)
        if entry["key"] == name or str(entry["key"]).rpartition("/")[2] == name
    ]
    if not found:
        raise unknown("name", name, [key for kind in KINDS for key in keys(kind)])
    return found


def machine_path(name: str) -> Path:
    """The file of the shipped machine `name`, or `name` itself if it is a path."""
    return _data_path("machine", "machines", name)


def suite_path(name: str) -> Path:
    """The file of the shipped suite `name`, or `name` itself if it is a path."""
    return _data_path("suite", "suites", name)


def workload_path(name: str) -> Path:
    """The file of the shipped workload `name`, or `name` itself if it is a path."""
    return _data_path("workload", "workloads", name)


def _data_path(what: str, folder: str, name: str) -> Path:
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if path.is_file():
            return path
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"{what} file `{name}` {problem}; give a path to a TOML file or a shipped name")
    shipped = _files(folder)
    if name not in shipped:
        raise unknown(what, name, shipped)
    return shipped[name]
