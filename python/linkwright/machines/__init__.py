"""Described machines: one TOML file each, with parts that several share; see docs/formats.md for the format.

A `Variant` of a machine is composed from its file: many nodes on a network, or the machine without a link. The native
half composes; here are the names of files.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from linkwright import _native
from linkwright.base import registry
from linkwright.base.errors import FileError, UnknownNameError, UsageError, unknown
from linkwright.base.files import read_text, shown_name

from .variant import AS_DESCRIBED, Variant

if TYPE_CHECKING:
    from .gpus import GpuKind

File = tuple[str, str]  # name in messages, text

ASSUMED = "assumed-"  # how names of assumed boxes begin
# Machines by name, text and whether they were composed, the latest last; kept because programs mostly ask for the same
# one again. One that was read from its text alone no longer knows how it joins a cluster.
_KEPT: dict[tuple[str, str, bool], _native.Machine] = {}
_MOST_KEPT = 8


class Shelf:
    """The files that a machine file names: shipped ones, and parts next to it."""

    def __init__(self, path: Path):
        self._path = path

    def part(self, name: str) -> File:
        """The part of this name."""
        if name.endswith(".toml"):
            file = self._path.parent / name
            if not file.is_file():
                raise FileError(
                    f"{self._path.name}: part `{name}`: there is no {file}; give a path from the machine file's folder"
                )
        elif name in registry.keys("parts"):
            file = registry.part_path(name)
        else:
            raise unknown("part", name, registry.keys("parts"), where=self._path.name, lists="linkwright list parts")
        return shown_name(file.name), read_text(file, "a part of a machine file")

    def network(self, name: str) -> File:
        """The network of this name, or the file at this path."""
        file = registry.network_path(name)
        return shown_name(file.name), read_text(file, "a network file")

    def nodes(self) -> list[str]:
        """The shipped machines that can be nodes."""
        return [key for key in registry.keys("machines") if load(key).cluster]


def load(name: str | os.PathLike[str], variant: Variant = AS_DESCRIBED) -> _native.Machine:
    """The machine called `name`, or described by the file at that path, as the variant has it."""
    drawn = draft(os.fspath(name), variant)
    key = (drawn.file, drawn.text, True)
    kept = _KEPT.pop(key, None)
    return _keep(key, kept or drawn.machine())


def read(text: str, file: str) -> _native.Machine:
    """The machine in a text that `source` gave, or that a run has kept."""
    key = (file, text, (file, text, True) in _KEPT)
    kept = _KEPT.pop(key, None)
    return _keep(key, kept or _native.Machine.parse(text, file))


def _keep(key: tuple[str, str, bool], machine: _native.Machine) -> _native.Machine:
    _KEPT[key] = machine
    for oldest in list(_KEPT)[:-_MOST_KEPT]:
        _KEPT.pop(oldest, None)
    return machine


def draft(name: str, variant: Variant = AS_DESCRIBED) -> _native.Draft:
    """The machine before it is checked."""
    path, text = described(name)
    if variant.fabric is not None and variant.nodes is None:
        raise UsageError(f"--fabric {variant.fabric}: a network connects nodes; give their number with --nodes")
    return _native.Draft(text, shown_name(path.name), Shelf(path), variant)


def described(name: str) -> tuple[Path, str]:
    """The path and the text of the machine file called `name`, or at that path; no file has that of an assumed box."""
    if box := _boxes().get(name) if name.startswith(ASSUMED) else None:
        from . import gpus

        return Path(f"{name}.toml"), gpus.text(box)
    try:
        path = registry.machine_path(name)
    except UnknownNameError:  # with the assumed boxes
        raise unknown("machine", name, names(), lists="linkwright list machines") from None
    return path, read_text(path, "a machine file")


def names() -> list[str]:
    """The shipped machines and the assumed boxes."""
    return [*registry.keys("machines"), *_boxes()]


def unsure(machine: _native.Machine) -> str:
    """A remark where nobody knows any rate of a machine's links, so that its times predict no real one; else empty."""
    rows = [row for row in machine.numbers() if re.fullmatch(r"fabric\.links\..+\.bandwidth", row["key"])]
    known = not rows or any(row["status"] != "assumed" for row in rows)
    return "" if known else ", ALL RATES OF LINKS ASSUMED"


def is_name(name: str) -> bool:
    """Whether a machine or an assumed box is called so."""
    return name in registry.keys("machines") or (name.startswith(ASSUMED) and name in _boxes())


def _boxes() -> dict[str, GpuKind]:
    from . import gpus  # a table that most commands do not need

    return gpus.boxes()


def source(name: str, variant: Variant = AS_DESCRIBED) -> File:
    """The text of the machine called `name`, or described by the file at that path, and what messages call it."""
    drawn = draft(name, variant)
    return drawn.text, drawn.file


def current(name: str, variant: Variant = AS_DESCRIBED) -> str | None:
    """The text of the machine as its files are now; None if they can no longer be read."""
    with contextlib.suppress(UsageError):
        return draft(name, variant).text
    return None


__all__ = [
    "ASSUMED", "AS_DESCRIBED", "Shelf", "Variant", "current", "described", "draft", "is_name", "load", "names",
    "read", "source", "unsure",
]  # fmt: skip
