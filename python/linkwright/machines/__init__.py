"""Described machines: one TOML file each; see docs/formats.md for the format."""

from __future__ import annotations

from linkwright import _native, registry
from linkwright.store.files import read_text


def load(name: str) -> _native.Machine:
    """The machine called `name`, or described by the file at that path."""
    return _native.Machine.parse(*source(name))


def source(name: str) -> tuple[str, str]:
    """The text and the file name of the machine called `name`, or described by the file at that path."""
    path = registry.machine_path(name)
    return read_text(path, "a machine file"), path.name
