"""Network adapters of this host, as Linux lists them in `/sys/class/infiniband`.

    mlx5_0/ports/1/rate      400 Gb/sec (4X NDR)
    mlx5_0/ports/1/state     4: ACTIVE
    mlx5_0/device/numa_node  0

A port that is down is left out. What topology programs do not state of a port, its rate above all, is added here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linkwright.formats.discovery.node import CpuHost, Nic, Node

FOLDER = Path("/sys/class/infiniband")
_RATE = re.compile(r"(\d{1,5}(?:\.\d)?) Gb/sec\b.*", re.S)


@dataclass(frozen=True)
class Adapter:
    """A port that is up: rate in Mb/s, and the NUMA node that it is near, where that is known."""

    name: str
    mbps: int
    numa: int | None


def found(folder: Path = FOLDER) -> list[Adapter]:
    """The adapters of this host, by name; none where there is no such folder."""
    adapters = []
    for device in sorted(folder.iterdir(), key=lambda path: _natural(path.name)) if folder.is_dir() else ():
        for port in sorted((device / "ports").glob("*")):
            rate = _RATE.fullmatch(_text(port / "rate"))
            if rate and "ACTIVE" in _text(port / "state"):
                numa = _text(device / "device" / "numa_node").strip()
                near = int(numa) if re.fullmatch(r"\d{1,4}", numa) else None
                adapters.append(Adapter(device.name, round(float(rate[1]) * 1000), near))
                break
    return adapters


def add(node: Node | CpuHost, adapters: Sequence[Adapter]) -> None:
    """State the rates of the node's ports; a node that names no port gets all adapters, below their processors."""
    rates = {adapter.name: adapter.mbps for adapter in adapters}
    for nic in node.nics:
        nic.mbps = nic.mbps or rates.get(nic.name)
    for i, adapter in enumerate([] if node.nics else adapters):
        node.nics.append(Nic(adapter.name, adapter.mbps))
        node.tree[f"NIC {i}"] = (f"CPU {min(adapter.numa or 0, max(0, node.cpus - 1))}", None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _natural(name: str) -> list[tuple[str, int]]:
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", name)]
