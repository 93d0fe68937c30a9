"""Read Slurm's `topology.yaml`, which since version 25.05 takes precedence over `topology.conf`.

    - topology: default                          - topology: racks
      cluster_default: true                        block:
      tree:                                          block_sizes: [4, 8]
        switches:                                    blocks:
          - switch: top                                - block: b1
            children: leaf[1-2]                          nodes: node[01-04]
          - switch: leaf1
            nodes: node[01-04]

A file may list several topologies; that of the whole cluster, `cluster_default`, is read. What a tree and blocks become
is the same as for `topology.conf`.

Source: Slurm, topology.yaml(5).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from linkwright.network_api import (
    MOST_SWITCHES,
    FileError,
    Network,
    Switch,
    Wiring,
    block_sizes,
    bounded,
    host_list,
    switch_tree,
    unknown,
)

from . import yaml_text

KINDS = ("tree", "block", "flat")


def recognises(text: str) -> bool:
    """Whether a text is such a file."""
    return re.search(r"^\s*-\s+topology\s*:", text, re.MULTILINE) is not None


def read(text: str, file: str) -> Wiring:
    """Read the topology of the whole cluster."""
    name, chosen = _default(yaml_text.load_list(text, file), file)
    where = f"{file}: topology {name[:80]}"
    kinds = [kind for kind in KINDS if chosen.get(kind)]
    if len(kinds) != 1 or kinds == ["flat"]:
        said = "is flat, so it lists no switches" if kinds == ["flat"] else f"has {len(kinds)} of tree, block and flat"
        raise FileError(f"{where}: {said}; describe one tree or one set of blocks")
    found, sizes = (_tree if kinds == ["tree"] else _blocks)(chosen[kinds[0]], where)
    return switch_tree(found, sizes, file, "topology.yaml")


def _default(listed: list[Any], file: str) -> tuple[str, dict[str, Any]]:
    """Return the topology of the whole cluster, by name."""
    tables: dict[str, dict[str, Any]] = {}
    for one in listed:
        table = _table(one, ("topology", "cluster_default", *KINDS), file)
        name = _text(table, "topology", file)
        if tables.setdefault(name, table) is not table:
            raise FileError(f"{file}: two topologies are named {name[:80]}; rename one")
        if type(table.get("cluster_default", False)) is not bool:
            raise FileError(f"{file}: topology {name[:80]}: cluster_default is neither true nor false; correct it")
    default = [name for name, table in tables.items() if table.get("cluster_default")] or list(tables)
    if len(tables) > 1 and len(default) == len(tables):
        raise FileError(f"{file}: {len(tables)} topologies, none of which alone is cluster_default; keep one of them")
    return default[0], tables[default[0]]


def _tree(found: object, where: str) -> tuple[list[Switch], list[int]]:
    rows = _rows(_table(found, ("switches",), f"{where}: tree"), "switches", where)
    return [_switch(row, "switch", ("children", "nodes"), where) for row in rows], []


def _blocks(found: object, where: str) -> tuple[list[Switch], list[int]]:
    table = _table(found, ("block_sizes", "blocks"), f"{where}: block")
    sizes = table.get("block_sizes") or []
    if not isinstance(sizes, list):
        raise FileError(f"{where}: block_sizes is not a list; write [4, 8]")
    blocks = [_switch(row, "block", ("nodes",), where) for row in _rows(table, "blocks", where)]
    return blocks, block_sizes(sizes, where) if sizes else []


def _switch(row: object, key: str, keys: tuple[str, ...], where: str) -> Switch:
    table = _table(row, (key, *keys), where)
    name = _text(table, key, where)
    where = f"{where}: {key} {name[:80]}"
    lists = {one: host_list(_text(table, one, where), where) for one in keys if one in table}
    if not lists:
        raise FileError(f"{where}: has neither {' nor '.join(keys)}; add what is below it")
    return Switch(name, where, lists.get("nodes", []), lists.get("children", []), is_block=key == "block")


def _rows(table: dict[str, Any], key: str, where: str) -> list[Any]:
    rows = table.get(key)
    if not isinstance(rows, list) or not rows:
        raise FileError(f"{where}: `{key}` is missing or no list; add it")
    bounded(len(rows), MOST_SWITCHES, where, key)
    return rows


def _table(found: object, keys: Collection[str], where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise FileError(f"{where}: `{str(found)[:40]}` is not a table; write it as `key: value` lines")
    if strange := [key for key in found if key not in keys]:
        raise unknown("key", str(strange[0])[:80], keys, where=where)
    return found


def _text(table: dict[str, Any], key: str, where: str) -> str:
    found = table.get(key)
    if not isinstance(found, str) or not found.strip():
        raise FileError(f"{where}: `{key}` is missing or no text; add it")
    return found


NETWORK = Network("slurm-yaml", "Slurm's topology.yaml (tree, block)", recognises, read)
