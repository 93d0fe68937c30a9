"""A chip without one of its networks: the messages that took it take the first of the others."""

from __future__ import annotations

from typing import Any

from linkwright import toml
from linkwright.errors import UsageError, unknown

from .variant import Variant

Table = dict[str, Any]


def has(fabric: Table) -> bool:
    """Whether a fabric has networks side by side."""
    return isinstance(fabric.get("network"), list)


def check(variant: Variant, place: toml.Place) -> None:
    """Refuse slower ones: all networks of a chip have one rate."""
    if variant.degrade:
        raise UsageError(f"{place.file}: --degrade is for `flow` fabrics with links; --without takes a network away")


def apply(machine: Table, variant: Variant, place: toml.Place) -> None:
    """Take networks away, and name another one wherever they are named."""
    fabric = machine["fabric"]
    names = [one.get("name") for one in fabric["network"]]
    for name in variant.without:
        if name not in names:
            raise unknown("network", name, names, where=f"{place.file}: --without")
    left = [name for name in names if name not in variant.without]
    if not left:
        raise UsageError(f"{place.file}: --without {' and '.join(variant.without)}: no network is left")
    machine["fabric"] = {**fabric, "network": [one for one in fabric["network"] if one.get("name") in left]}
    if "hints" in machine:
        machine["hints"] = {key: _renamed(value, left) for key, value in machine["hints"].items()}


def _renamed(value: Any, left: list[str]) -> Any:
    """A hint that names only networks that are left."""
    if isinstance(value, dict):
        return {key: name if name in left else left[0] for key, name in value.items()}
    return [name for name in value if name in left] if isinstance(value, list) else value
