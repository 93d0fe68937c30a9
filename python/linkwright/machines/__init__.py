"""Described machines: one TOML file each, with parts that several share; see docs/formats.md for the format.

A `Variant` of a machine is composed from its file: many nodes on a network, or the machine without a link.
"""

from __future__ import annotations

import contextlib
import functools
import os

from linkwright import _native, registry
from linkwright.errors import UsageError
from linkwright.store.files import read_text

from . import compose
from .variant import AS_DESCRIBED, Variant


def load(name: str | os.PathLike[str], variant: Variant = AS_DESCRIBED) -> _native.Machine:
    """The machine called `name`, or described by the file at that path, as the variant has it."""
    return _parsed(*source(os.fspath(name), variant))


@functools.lru_cache(maxsize=8)
def _parsed(text: str, file: str) -> _native.Machine:
    """The machine in a text; cached, because it never changes and programs mostly ask for the same one again."""
    return _native.Machine.parse(text, file)


def source(name: str, variant: Variant = AS_DESCRIBED) -> tuple[str, str]:
    """The text of the machine called `name`, or described by the file at that path, and what messages call it."""
    path = registry.machine_path(name)
    text = read_text(path, "a machine file")
    if variant or compose.is_composed(text):
        return compose.finished(text, path, variant), f"composed {path.name}"
    return text, path.name


def current(name: str, variant: Variant = AS_DESCRIBED) -> str | None:
    """The text of the machine as its files are now; None if they can no longer be read."""
    with contextlib.suppress(UsageError):
        return source(name, variant)[0]
    return None


__all__ = ["AS_DESCRIBED", "Variant", "current", "load", "source"]
