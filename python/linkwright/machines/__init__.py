"""Described machines: one TOML file each; see docs/formats.md for the format."""

from __future__ import annotations

from linkwright import _native, registry
from linkwright.store.files import read_text


def load(name: str) -> _native.Machine:
    """The machine called `name`, or described by the file at that path."""
    path = registry.machine_path(name)
    return _native.Machine.parse(read_text(path, "a machine file"), path.name)
