"""A node with GPUs as its own description gives it, typed, before it becomes a machine file.

file of a system --- an importer ---> Node --- node_file.text ---> machine file

GPU 0 ---\\                     peers: links between GPUs, or to a switch that joins them all
GPU 1 ---- NVSwitch
  |
PCIe 0 --- NIC 0                tree: what hangs on what, up to the processors
  |
CPU 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from linkwright.base.errors import FileError
from linkwright.machines.gpus import GpuKind

MOST_GPUS = 256  # of a node, an NVLink domain of many trays included
SWITCH = "NVSwitch"


@dataclass(frozen=True)
class Lanes:
    """A PCIe link: rate of each direction in GB/s, and where it was read."""

    gbps: float
    source: str


# What something hangs on, and the link up to there; None where the file does not state that.
Up = tuple[str, Lanes | None]


def slower(a: Lanes | None, b: Lanes | None) -> Lanes | None:
    """Return the slower of two links in a row, each None where it is not stated."""
    return min((lanes for lanes in (a, b) if lanes), key=lambda lanes: lanes.gbps, default=None)


@dataclass
class Nic:
    """A network port; `mbps` is its rate in Mb/s, None where the file does not state it."""

    name: str
    mbps: int | None = None
    direct: bool = True  # whether it reads and writes memory of GPUs (GPUDirect)


@dataclass
class Node:
    """A node. Names are `GPU i`, `NIC i`, `PCIe i` and `CPU i`; `NVSwitch` stands for all chips of one."""

    device: GpuKind
    gpus: int
    source: str
    nics: list[Nic] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    cpus: int = 0
    vendor: str = ""  # of the processors, as the file has it
    hosts: list[str] = field(default_factory=list)  # of each processor; empty: all are of one
    channels: tuple[int, str] | None = None  # that a ring of the library runs on, and where that was read
    # (GPU, GPU or NVSwitch), the smaller number first -> how many links join them
    peers: dict[tuple[str, str], int] = field(default_factory=dict)
    # child -> (parent, lanes): GPUs, NICs and switches; lanes are None where the file does not state them
    tree: dict[str, Up] = field(default_factory=dict)

    def counts(self) -> Counter[int]:
        """How many pairs are joined by so many links."""
        return Counter(self.peers.values())

    def parts(self, prefix: str) -> Iterator[tuple[str, str, Lanes | None]]:
        """The links upwards of all whose name begins so."""
        return ((child, *up) for child, up in self.tree.items() if child.startswith(prefix))


@dataclass(frozen=True)
class Core:
    """A core of a host without GPUs: the numbers of its processor, of its memory there, and of its last cache."""

    cpu: int
    memory: int
    cache: int | None


@dataclass
class CpuHost:
    """A host without GPUs, as MPI uses it. Names are `core i`, `NIC i`, `PCIe i`, `L3 i`, `memory i` and `CPU i`."""

    source: str
    cores: list[Core]
    cpus: int
    caches: dict[str, int]  # level, such as `L2` -> bytes of the largest
    vendor: str = ""
    model: str = ""  # of the processors
    nics: list[Nic] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)  # of PCIe
    hosts: list[str] = field(default_factory=list)
    tree: dict[str, Up] = field(default_factory=dict)

    parts = Node.parts


def hang(node: Node | CpuHost, switches: dict[str, Up], gpus: Iterable[Up], nics: Iterable[tuple[Nic, Up]]) -> None:
    """Add switches, GPUs and ports to a node, each with what it hangs on."""
    node.switches = list(switches)
    node.tree |= switches | {f"GPU {i}": up for i, up in enumerate(gpus)}
    for i, (nic, up) in enumerate(nics):
        node.nics.append(nic)
        node.tree[f"NIC {i}"] = up


def through_switch(node: Node) -> dict[tuple[str, str], int]:
    """The links of a board on which a switch joins all GPUs."""
    return {(f"GPU {i}", SWITCH): node.device.most_links for i in range(node.gpus)}


def checked(node: Node, file: str) -> Node:
    """The node, whose description must make sense; a `FileError` says what does not."""
    if not 1 <= node.gpus <= MOST_GPUS:
        raise FileError(f"{file}: {node.gpus} GPUs; a node has 1 to {MOST_GPUS}")
    if node.peers and not node.device.most_links:
        raise FileError(f"{file}: has links between GPUs, and {node.device.name} has none. Is --gpu correct?")
    for (a, b), count in node.peers.items():
        if not 1 <= count <= node.device.most_links:
            raise FileError(
                f"{file}: {count} links between {a} and {b}; {node.device.name} has 1 to {node.device.most_links}"
            )
    joined = [sum(count for pair, count in node.peers.items() if f"GPU {i}" in pair) for i in range(node.gpus)]
    for i, count in enumerate(joined):
        if count > node.device.most_links:
            raise FileError(
                f"{file}: GPU {i} has {count} links to others; {node.device.name} has {node.device.most_links}. "
                "Is --gpu correct?"
            )
    if any((f"GPU {i}", SWITCH) in node.peers for i in range(node.gpus)) and len(set(joined)) > 1:
        least = joined.index(min(joined))
        raise FileError(
            f"{file}: GPU {least} has {min(joined)} links to the switch, others have {max(joined)}; is one down? "
            "Describe the healthy node, and remove links with --degrade"
        )
    return node
