"""Everything that has a name, by kind: machines, suites and workloads are files, the rest are registries in code.

An entry is a dict with at least `key` and `summary`; `list`, `describe`, completion and the docs are
made from entries only.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path

from .errors import UnknownNameError, UsageError, check_known, unknown

Entry = dict[str, object]
# Kind of shipped files -> their folder, and the table that describes one.
_TABLES = {
    "machines": ("machines", "machine"),
    "networks": ("machines/networks", "network"),
    "parts": ("machines/parts", "part"),
    "suites": ("suites", "suite"),
    "workloads": ("workloads", "app"),
}


# Collective -> what every rank has in the end.
_COLLECTIVES = {
    "allreduce": "every rank gets the combination of all ranks' arrays",
    "reduce_scatter": "every rank gets its own block of the combination of all ranks' arrays",
    "allgather": "every rank gets the blocks of all ranks",
    "alltoall": "every rank gets the block that each rank holds for it",
    "broadcast": "every rank gets the array of the root",
    "reduce": "the root gets the combination of all ranks' arrays",
    "gather": "the root gets the blocks of all ranks",
    "scatter": "every rank gets its own block of the array of the root",
    "alltoallv": "every rank gets the block, of any length, that each rank holds for it",
    "dispatch": "every token reaches the ranks that own its experts",
    "combine": "what the experts made of every token is added up where the token came from",
    "barrier": "no rank leaves before all have entered",
}


@functools.cache
def _files(kind: str) -> dict[str, Path]:
    """The shipped files of a kind by key; they do not change while the process runs."""
    return {path.stem: path for path in sorted((Path(__file__).parents[1] / _TABLES[kind][0]).glob("*.toml"))}


def _file_entries(kind: str) -> list[Entry]:
    return [_file_entry(kind, key) for key in _files(kind)]


def _file_entry(kind: str, key: str) -> Entry:
    import tomllib  # most commands read no file in Python

    path = _files(kind)[key]
    head = tomllib.loads(path.read_text(encoding="utf-8")).get(_TABLES[kind][1], {})
    return {"key": key, "summary": head.get("summary", ""), "file": path.name, **head}


def _of(module: str, name: str) -> list[Entry]:
    """The entries in a module of linkwright, a table or a function, imported on first use."""
    found = getattr(importlib.import_module(f"linkwright.{module}"), name)
    return list(found() if callable(found) else found)


def _native(function: str) -> Callable[[], list[Entry]]:
    return functools.partial(_of, "_native", function)


def _collectives() -> list[Entry]:
    from linkwright import _native

    names: dict[object, list[object]] = {}
    for row in _native.algorithms():
        names.setdefault(row["collective"], []).append(row["name"])
    return [
        {"key": row["key"], "summary": _COLLECTIVES[row["key"]], "algorithms": names[row["key"]], **row}
        for row in _native.collectives()
    ]


def _algorithms() -> list[Entry]:
    return [*map(dict, _of("_native", "algorithms")), *_of("ask.sources", "packaged")]


# Kinds with entries of installed packages -> the module whose `keys()` loads none of them, and whose `entry(key)` one.
_INSTALLED = {"executors": "linkwright.executors", "machine-importers": "linkwright.formats.discovery.importing"}

# Kind -> its entries. `linkwright list KIND` takes these names.
KINDS: dict[str, Callable[[], list[Entry]]] = {
    "machines": functools.partial(_file_entries, "machines"),
    "networks": functools.partial(_file_entries, "networks"),
    "parts": functools.partial(_file_entries, "parts"),
    "gpus": functools.partial(_of, "machines.gpus", "entries"),
    "collectives": _collectives,
    "algorithms": _algorithms,
    "own-algorithms": functools.partial(_of, "executors", "own_algorithms"),
    "patterns": _native("patterns"),
    "probes": functools.partial(_of, "executors.probes", "entries"),
    "fabrics": _native("fabrics"),
    "executors": functools.partial(_of, "executors", "entries"),
    "backends": functools.partial(_of, "session.suite.backends", "entries"),
    "plans": _native("plan_formats"),
    "exporters": functools.partial(_of, "formats.interop", "exporters"),
    "importers": functools.partial(_of, "formats.interop", "importers"),
    "machine-importers": functools.partial(_of, "formats.discovery.importing", "entries"),
    "methods": _native("synthesis_methods"),
    "runtimes": functools.partial(_of, "formats.tuning", "entries"),
    "gates": functools.partial(_of, "formats.gates", "entries"),
    "suites": functools.partial(_file_entries, "suites"),
    "workloads": functools.partial(_file_entries, "workloads"),
    "studies": functools.partial(_of, "base.studies", "entries"),
    "errors": functools.partial(_of, "base.errors", "entries"),
}


def entries(kind: str) -> list[Entry]:
    """All entries of one kind, in registry order."""
    check_known("kind of thing", kind, KINDS, lists="linkwright list --help")
    return KINDS[kind]()


def keys(kind: str) -> list[str]:
    """The keys of one kind; those of files without reading them."""
    if kind in _TABLES:
        return list(_files(kind))
    if kind in _INSTALLED:
        return list(importlib.import_module(_INSTALLED[kind]).keys())
    return [str(entry["key"]) for entry in entries(kind)]


def find(name: str) -> list[tuple[str, Entry]]:
    """Every (kind, entry) called `name`, which may begin with its kind or, of an algorithm, with its collective."""
    found = [(kind, entry) for kind in KINDS for entry in _called(name, kind)]
    if not found:
        from . import studies

        names = (part for kind in KINDS for key in keys(kind) for part in (key, key.rpartition("/")[2]))
        error = unknown("name", name, names, lists="linkwright list")
        raise error if keys("studies") else UnknownNameError(f"{error}; {studies.missing()}")
    return found


def of_file(path: Path) -> tuple[str, Entry]:
    """Return the kind of a TOML file of the user, and what the file says of itself.

    Raises:
        UsageError: the file is no TOML, or has none of the tables that begin a file of a kind.
    """
    import tomllib

    tables = {table: kind for kind, (_, table) in _TABLES.items()}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: {error or 'is nested too deeply'}; give a TOML file") from None
    table = next((table for table in tables if isinstance(content.get(table), dict)), None)
    if table is None:
        raise UsageError(f"{path}: has none of the tables [{'], ['.join(tables)}], so its kind is unknown; add one")
    head = content[table]
    return tables[table], {"key": str(path), "summary": head.get("summary", ""), **head}


def one(kind: str) -> str:
    """A single one of a kind: `study` of `studies`, `machine` of `machines`."""
    return f"{kind[:-3]}y" if kind.endswith("ies") else kind.removesuffix("s")


def _called(name: str, kind: str) -> list[Entry]:
    name = name.removeprefix(f"{one(kind)}/")
    if kind in _TABLES:
        return [_file_entry(kind, name)] if name in _files(kind) else []
    if kind in _INSTALLED:
        return [importlib.import_module(_INSTALLED[kind]).entry(key) for key in keys(kind) if key == name]
    return [entry for entry in entries(kind) if name in (entry["key"], str(entry["key"]).rpartition("/")[2])]


def machine_path(name: str) -> Path:
    """The file of the shipped machine `name`, or `name` itself if it is a path."""
    return _data_path("machines", name)


def network_path(name: str) -> Path:
    """The file of the shipped network `name`, or `name` itself if it is a path."""
    return _data_path("networks", name)


def part_path(name: str) -> Path:
    """The file of the shipped part `name` of machine files."""
    return _data_path("parts", name)


def suite_path(name: str) -> Path:
    """The file of the shipped suite `name`, or `name` itself if it is a path."""
    return _data_path("suites", name)


def workload_path(name: str) -> Path:
    """The file of the shipped workload `name`, or `name` itself if it is a path."""
    return _data_path("workloads", name)


def _data_path(kind: str, name: str) -> Path:
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if path.is_file():
            return path
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"{one(kind)} file `{name}` {problem}; give a path to a TOML file or a shipped name")
    shipped = _files(kind)
    check_known(one(kind), name, shipped, lists=f"linkwright list {kind}")
    return shipped[name]
