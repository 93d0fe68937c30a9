"""What NCCL and RCCL say of the topology that they found, with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH.

    Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1     a search
     0 : NET/0 GPU/0 GPU/1 GPU/2 GPU/3 NET/0                                                      one channel of it
    Channel 00/24 :    0   7   6   5   4   3   2   1   8  15                                      a ring, by ranks
    Trees [0] 1/8/-1->0->-1 [1] 1/-1/-1->0->8              children -> rank -> parent, of each channel
    + NET[25.0] - NET/0 (1d0f/1/25.000000)                 GB/s of a port
    Connected all rings, use ring PXN 0 GDR 1              whether NICs reach the memory of GPUs

Ways are, from near to far: NVL (RCCL: XGMI), NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS. Each rank prints its own lines; of
one pattern the slowest search counts, because ranks agree on it. Source: NCCL and RCCL, src/graph/search.cc, topo.cc,
connect.cc, and src/init.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MARKS = ("Pattern ", "NET/", "Channel ", "Trees [", "NET[", "Connected all", "iommu", "NUMA auto balancing")
OWN_LINKS = ("LOC", "NVL", "XGMI", "NVB")  # ways over the GPUs' own links
OVER_PROCESSOR = ("PHB", "SYS")
_PATTERNS = {1: "tree", 2: "tree", 3: "tree", 4: "ring", 5: "nvls", 6: "collnet"}
_SEARCH = re.compile(
    r"\bPattern (\d), crossNic (\d), nChannels (\d{1,4}), (?:bw|speed) (\d{1,6}\.?\d{0,9})/\d{1,6}\.?\d{0,9}, "
    r"type (\w{1,8})/(\w{1,8})"
)
_CHANNEL = re.compile(r"\b\d{1,4} :((?: (?:NET|GPU)/[0-9a-f-]{1,24})+)")
_NET = re.compile(r"NET/(?:[0-9a-f]{1,8}-)?([0-9a-f]{1,8})\b")
_RING = re.compile(r"\bChannel (\d{1,4})/\d{1,4} :((?:\s+\d{1,7}){2,})\s*$")
_TREES = re.compile(r"\[(\d{1,4})\] (?:-?\d{1,7}/){2}-?\d{1,7}->(\d{1,7})->(-?\d{1,7})")
_PORT = re.compile(r"\bNET\[(\d{1,6}\.?\d{0,9})\] - NET/")
_DIRECT = re.compile(r"\bConnected all \w{1,8}, use ring PXN \d GDR ([01])")
# What RCCL warns of: a part of its line -> what is wrong.
WARNINGS = {
    'Missing "iommu=pt"': "iommu=pt is missing from the kernel's command line, so accesses of devices are translated "
    "and peer access may be slow or hang",
    "NUMA auto balancing enabled": "NUMA balancing is on, so rates vary: sysctl kernel.numa_balancing=0",
}
_MOST = 4096  # rings, ports and edges of trees that are kept


@dataclass(frozen=True)
class ChannelSearch:
    """The channels that a library found for one pattern.

    Attributes:
        channels: how many were found, before they are doubled.
        rate: of one channel inside a node, GB/s as the library reckons.
        way: the farthest between two GPUs of a node, such as `NVL` or `PHB`.
        network_way: the farthest from a GPU to its NIC.
        changes_nic: whether a channel enters and leaves a node through different NICs (`crossNic`).
    """

    channels: int
    rate: float
    way: str
    network_way: str
    changes_nic: bool


@dataclass
class SeenTopology:
    """All of it; empty where a log says nothing.

    Attributes:
        searches: `ring`, `tree`, `nvls`, `collnet` -> what was found.
        rings: number of a channel -> its ranks, in their order.
        parents: number of a channel -> rank -> the rank above it in the tree.
        ports: GB/s of the network ports that hosts list.
        warnings: what the library warns of, in words.
    """

    searches: dict[str, ChannelSearch] = field(default_factory=dict)
    rings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    parents: dict[int, dict[int, int]] = field(default_factory=dict)
    ports: list[float] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    _ranks: int = 0  # that are kept, of rings and trees

    def see(self, line: str) -> bool:
        """Take what a line says; whether it says anything."""
        if "Pattern" in line and (match := _SEARCH.search(line)):
            self._search(match)
        elif "Trees [" in line and (edges := _TREES.findall(line)):
            for channel, rank, parent in edges if self._ranks < _MOST * _MOST else ():
                self.parents.setdefault(int(channel), {})[int(rank)] = int(parent)
                self._ranks += 1
        elif "Channel" in line and line.rstrip()[-1:].isdecimal() and (match := _RING.search(line)):
            ranks = tuple(map(int, match[2].split()))
            self._ranks += len(ranks)
            if self._ranks < _MOST * _MOST:
                self.rings[int(match[1])] = ranks
        elif "NET[" in line and (match := _PORT.search(line)):
            self.ports += [float(match[1])] if len(self.ports) < _MOST else []
        elif found := [words for part, words in WARNINGS.items() if part in line]:
            self.warnings.update(dict.fromkeys(found))
        else:
            return False
        return True

    def _search(self, match: re.Match[str]) -> None:
        pattern, crosses, channels, rate, way, network_way = match.groups()
        if (key := _PATTERNS.get(int(pattern))) and int(channels):
            found = ChannelSearch(int(channels), float(rate), way, network_way, crosses == "1")
            self.searches[key] = min(found, self.searches.get(key, found), key=lambda one: one.channels * one.rate)

    @property
    def port(self) -> float | None:
        """The usual rate of a network port, GB/s; None where none is listed."""
        return sorted(self.ports)[len(self.ports) // 2] if self.ports else None

    def crossings(self, node_of: Mapping[int, object]) -> tuple[int, str]:
        """Return how often a ring or a tree passes from node to node, and which it is; (0, "") where it is not known.

        A ring over n nodes needs n passages and a tree n - 1, so more of them share the ports.
        """
        for ring in self.rings.values():
            if set(ring) <= node_of.keys():
                return _passages(ring, (*ring[1:], ring[0]), node_of), "ring"
        for parents in self.parents.values():
            below = [rank for rank, parent in parents.items() if parent >= 0]
            if parents.keys() == node_of.keys() and {parents[rank] for rank in below} <= node_of.keys():
                return _passages(below, [parents[rank] for rank in below], node_of), "tree"
        return 0, ""


def _passages(ranks: Sequence[int], others: Sequence[int], node_of: Mapping[int, object]) -> int:
    return sum(node_of[one] != node_of[other] for one, other in zip(ranks, others, strict=True))


def ports_of_channel(line: str) -> list[int]:
    """Return the numbers of the network ports that a channel of a search goes through."""
    match = _CHANNEL.search(line) if " : NET/" in line or "NET/" in line else None
    return [int(number, 16) for number in _NET.findall(match[1])] if match else []


def reaches_memory(line: str) -> bool | None:
    """Return whether a line says that NICs reach the memory of GPUs; None if it does not say."""
    match = _DIRECT.search(line) if "Connected all" in line else None
    return match[1] == "1" if match else None
