"""The constants by which a library chooses, by version: data of `constants.toml`, each with its source.

A version belongs to the nearest documented model: 2.22 has the constants of 2.21. Unknown versions are refused.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from linkwright.base import toml
from linkwright.base.errors import unknown

PROTOCOLS = LL, LL128, SIMPLE = ("ll", "ll128", "simple")
GENERATIONS = ("volta", "ampere", "hopper", "blackwell")  # rows of the caps

ByProtocol = Sequence[float]


@dataclass(frozen=True)
class Constants:
    """What one version reckons with; times in us, rates in GB/s, and the meanings stand in `constants.toml`."""

    version: str  # of the documented model
    serves: Sequence[str]
    source: str
    most_channels: int
    nvls_heads: int
    ring_low_latency: float
    ring_low_latency_else: float
    ring_line: float
    ring_line_one_gpu: float
    tree_low_latency: float
    arity: float
    ring_steps: str
    one_gpu_tree_latency: bool
    line_generations: Sequence[str]
    lines_over_c2c: bool
    nvls: str
    nvls_gathers: bool
    free_gathers: Sequence[str]
    pat: float
    tree_correction_nvls_tree: bool
    halves_trees: bool
    sends: str
    sends_rate: float
    base: Mapping[str, ByProtocol]
    nvlink: Mapping[str, ByProtocol]
    pcie: Mapping[str, ByProtocol]
    network: Mapping[str, ByProtocol]
    post: Mapping[str, float]
    plateau: Mapping[str, float]
    efficiency: Mapping[str, float]
    cap: Mapping[str, Mapping[str, Sequence[float]]]
    tree_correction: Mapping[str, Sequence[float]]
    link: Mapping[str, float]
    nvlink_rate: Mapping[str, float]
    pcie_gen3: float
    socket: Mapping[str, float]
    speeds: Mapping[str, Mapping[str, Sequence[float]]]
    nvls_channels: Mapping[str, int]


@dataclass(frozen=True)
class Chunks:
    """How much a channel moves at once, in bytes, and from how many bytes on it takes part."""

    source: str
    buffer_steps: int
    buffer: Mapping[str, int]
    payload: Mapping[str, float]
    ring_steps: int
    shortest_slice: int
    posts: Mapping[str, int]
    threads: Mapping[str, int]
    slow_ring_threads: int
    collnet_threads: int
    bytes_per_thread: Mapping[str, int]
    nvls: int
    nvls_slow: int
    nvls_slow_below: float
    p2p: Mapping[str, int]
    p2p_low_latency: int
    p2p_at_once: int
    p2p_batch: int
    nvls_tree_peers: int


@functools.cache
def models() -> Mapping[str, Constants]:
    """The documented models by their version, the oldest first."""
    stated = _file()["model"]
    names = {field.name for field in fields(Constants)}
    return {
        version: Constants(
            version=version, **{key: value for key, value in _whole(stated, version).items() if key in names}
        )
        for version in stated
    }


@functools.cache
def chunks() -> Chunks:
    """How much is moved at once."""
    return Chunks(**_file()["chunks"])


@functools.cache
def versions() -> tuple[str, ...]:
    """All versions that a documented model serves, the newest first."""
    return tuple(version for model in reversed(list(models().values())) for version in reversed(model.serves))


@functools.cache
def constants(version: str) -> Constants:
    """What `version` reckons with."""
    for model in models().values():
        if version in model.serves:
            return model
    raise unknown("version of NCCL", version, versions())


_file = functools.partial(toml.data_file, __file__, "constants.toml")


def _whole(stated: Mapping[str, dict[str, Any]], version: str) -> dict[str, Any]:
    """What a version states, over what the one that it is like has."""
    own = stated[version]
    return _merged(_whole(stated, own["like"]), own) if "like" in own else own


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _merged(below[key], above[key]) for key in below.keys() & above.keys() if isinstance(above[key], dict)}
    return {**below, **above, **both}
