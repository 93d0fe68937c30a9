"""The constants by which RCCL chooses, by generation of GPUs: data of `constants.toml`, each with its source."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linkwright.base import toml
from linkwright.base.errors import unknown


@dataclass(frozen=True)
class Common:
    """What all generations have in common; times in us."""

    base: Mapping[str, Sequence[float]]
    post: Mapping[str, float]
    most_channels: int
    threads: int
    broadcast_low_latency: float
    pcie_gen3: float


@dataclass(frozen=True)
class Model:
    """What RCCL reckons with on one generation; times in us, rates in GB/s."""

    source: str
    link: float
    peer_rate: float
    rings: int
    lines: bool
    trees_simple_alone: bool
    xgmi: Mapping[str, Sequence[float]]
    pcie: Mapping[str, Sequence[float]]
    network: Mapping[str, Sequence[float]]
    few: Mapping[str, Sequence[float]]
    many: Mapping[str, Sequence[float]]
    tree_correction: Mapping[str, Sequence[float]]
    ring_correction: Mapping[str, Sequence[float]]
    bus: float | None = None  # in place of what the links give


@functools.cache
def common() -> Common:
    """What all generations have in common."""
    return Common(**_file()["common"])


@functools.cache
def versions() -> tuple[str, ...]:
    """All versions that the documented one stands for, the newest first."""
    return tuple(
        version for served in _file()["versions"].values() if isinstance(served, list) for version in served[::-1]
    )


def documented() -> str:
    """The version whose constants these are."""
    return next(version for version, served in _file()["versions"].items() if isinstance(served, list))


@functools.cache
def model(gpu: str) -> Model:
    """What it reckons with on a generation; gfx940, gfx941 and gfx950 are taken for gfx942."""
    known = _file()["gpu"]
    like = "gfx942" if gpu in ("gfx940", "gfx941", "gfx950") else gpu
    if like not in known:
        raise unknown("GPU of RCCL", gpu, known)
    return Model(**known[like])


_file = functools.partial(toml.data_file, __file__, "constants.toml")
