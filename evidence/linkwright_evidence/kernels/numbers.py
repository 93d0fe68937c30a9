"""The numbers of the kernels: `numbers.toml`, by `owner.key`, with their unit, status and source.

An owner is a generation of GPUs, a kind of network, or a library, whose numbers hold on every GPU.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources

Numbers = Mapping[str, float]


@functools.cache
def rows() -> tuple[dict, ...]:
    """All numbers: `machine` (the owner), `key`, `value`, `unit`, `status`, `source`."""
    text = (resources.files("linkwright_evidence.kernels") / "numbers.toml").read_text(encoding="utf-8")
    return tuple(
        {"machine": owner, "key": f"{owner}.{key}", **number}
        for owner, numbers in tomllib.loads(text).items()
        for key, number in numbers.items()
    )


@functools.cache
def shipped() -> Numbers:
    """The values of the file."""
    return {row["key"]: float(row["value"]) for row in rows()}


def fitted(owner: str) -> list[str]:
    """The keys of an owner that were fitted."""
    return [row["key"] for row in rows() if row["machine"] == owner and row["status"] == "fitted"]


def tuned() -> list[dict]:
    """What was chosen rather than known, as `linkwright_evidence.numbers.tuned` lists it."""
    kinds = ("fitted", "post_hoc", "assumed")
    return [{**row, "value": f"{row['value']:g}"} for row in rows() if row["status"] in kinds]
