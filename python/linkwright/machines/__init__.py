"""Described machines: one TOML file each; see docs/formats.md for the format."""

from __future__ import annotations

import contextlib
import functools
import os

from linkwright import _native, registry
from linkwright.errors import UsageError
from linkwright.store.files import read_text


def load(name: str | os.PathLike[str]) -> _native.Machine:
    """The machine called `name`, or described by the file at that path."""
    return _parsed(*source(os.fspath(name)))


@functools.lru_cache(maxsize=8)
def _parsed(text: str, file: str) -> _native.Machine:
    """The machine in a text; cached, because it never changes and programs mostly ask for the same one again."""
    return _native.Machine.parse(text, file)


def source(name: str) -> tuple[str, str]:
    """The text and the file name of the machine called `name`, or described by the file at that path."""
    path = registry.machine_path(name)
    return read_text(path, "a machine file"), path.name


def current(name: str) -> str | None:
    """The text of the machine file as it is now; None if it can no longer be read."""
    with contextlib.suppress(UsageError):
        return source(name)[0]
    return None
