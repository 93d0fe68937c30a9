"""From machine files to machine text: parts, clusters and variants. The native half sees the finished text alone.

parts = ["hopper"]      tables of machines/parts/hopper.toml; where the file has a key too, it wins
[cluster]               what a node is to a network; `cluster` repeats it
Variant                 what the user asks for on top of the file
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from linkwright import registry, toml
from linkwright.errors import FileError, UsageError, unknown
from linkwright.store.files import read_text

from . import changes, cluster, form, networks, writer
from .variant import Variant

Table = dict[str, Any]

# Whether a text may have what only this module reads; other files go to the native half as they are.
_COMPOSED = re.compile(r"^\s*(parts\s*=|\[\s*cluster\s*\])", re.M)
# Tables that a reader looks for first.
_FIRST = ("machine", "level", "endpoints", "fabric")


def is_composed(text: str) -> bool:
    """Whether the text of a machine file has parts or is a node of clusters, so that it has to be finished."""
    return _COMPOSED.search(text) is not None


def finished(text: str, path: Path, variant: Variant) -> str:
    """The text of a machine file with its parts, as the variant has it."""
    place = toml.Place(path.name, error=FileError)
    document = _with_parts(toml.load(text, place), path, place)
    node = document.pop("cluster", None)
    if node is not None and not isinstance(node, dict):
        raise place.wrong("cluster: is no table; write `[cluster]`")
    if variant.nodes is not None and node is None:
        raise UsageError(f"--nodes {variant.nodes}: {path.name} has no [cluster], so it is no node; {_nodes()}")
    if variant.without or variant.degrade:
        changes.check(document, variant, place)
    of_chip = networks.has(cluster.table(document, "fabric", place))
    form.check(document, form.CHIP if of_chip else form.MACHINE, place)
    if variant.nodes is not None and node is not None:
        document = cluster.of(document, node, variant.nodes, variant.fabric, place)
    if variant.without or variant.degrade:
        changes.apply(document, variant, place)
    if variant:
        head = cluster.table(document, "machine", place)
        document["machine"] = {**head, "name": variant.name(str(head.get("name")))}
    first = {key: document[key] for key in _FIRST if key in document}
    return writer.text({**first, **document})


def _nodes() -> str:
    """The shipped machines that can be nodes, in words."""
    able = [key for key in registry.keys("machines") if "cluster" in document(registry.machine_path(key))]
    return f"machines that can be are {', '.join(able)}"


def document(path: Path) -> Table:
    """The tables of a machine file, with those of its parts."""
    place = toml.Place(path.name, error=FileError)
    return _with_parts(toml.load(read_text(path, "a machine file"), place), path, place)


def _with_parts(document: Table, path: Path, place: toml.Place) -> Table:
    """The document over its parts."""
    parts = document.pop("parts", [])
    if not isinstance(parts, list) or not all(isinstance(name, str) for name in parts):
        raise place.wrong('parts: write names of parts, such as `parts = ["hopper"]`')
    merged: Table = {}
    for name in parts:
        merged = _merged(merged, _part(name, path))
    return _merged(merged, document)


def _part(name: str, path: Path) -> Table:
    """The tables of a shipped part, or of a file beside the machine's."""
    if name.endswith(".toml"):
        file = path.parent / name
        if not file.is_file():
            raise FileError(
                f"{path.name}: part `{name}`: there is no {file}; give a path from the machine file's folder"
            )
    elif name in registry.keys("parts"):
        file = registry.part_path(name)
    else:
        raise unknown("part", name, registry.keys("parts"), where=path.name, lists="linkwright list parts")
    place = toml.Place(file.name, error=FileError)
    tables = toml.load(read_text(file, "a part of a machine file"), place)
    if "parts" in tables:
        raise place.wrong("parts: a part has no parts of its own; name them in the machine file")
    tables.pop("part", None)  # what the part says of itself
    return tables


def _merged(below: Table, above: Table) -> Table:
    """Both tables; where both have a key, tables are merged and anything else is that of `above`."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and "value" not in value:
            both[key] = _merged(old, value)
        else:
            both[key] = value
    return both
