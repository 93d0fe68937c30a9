"""What a library sees of a machine: the devices that take part, the links between them, and the ways to the network.

    links of the machine file, by the names that node files use
      GPU - GPU, GPU - NVSwitch     `nvlink` or `xgmi`: how many links, through a switch or not
      GPU - PCIe - CPU - NIC        the way over the host: PIX, PXB, PHB or SYS, as the library calls it
      NIC - elsewhere               a port of the network
    `[library.hardware]`            generation of the GPUs, maker of the host

A link that is taken out of the machine is one that the library does not see either.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from linkwright import _native
from linkwright.base.errors import FileError, check_known
from linkwright.libraries.nccl.constants import PROTOCOLS

PEER = ("nvlink", "xgmi")  # classes of links between GPUs
HOSTS = ("intel", "amd", "arm", "power", "other")
PATHS = NVL, PIX, PXB, PHB, SYS = ("NVL", "PIX", "PXB", "PHB", "SYS")  # from near to far
_UNITS = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "Gb/s": 1.25e8, "Tb/s": 1.25e11}
_PS = {"ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}
PCIE_GEN3 = 15.75e9  # bytes per second of 16 lanes, one way
_NODE = re.compile(r"(?:node \d+ )?")
MACHINES = 64  # whose hardware is remembered

Numbers = Mapping[str, tuple[str, str]]  # of a machine file: key -> value, unit
Graph = Mapping[str, Mapping[str, tuple[str, float]]]  # node -> neighbour -> (class, bytes per second)


@dataclass(frozen=True)
class Hardware:
    """The nodes, GPUs and links on which ranks run. Rates are those of the machine file, in bytes per second."""

    gpu: str  # generation, such as `sm90` or `gfx942`
    host: str
    nodes: int
    gpus: int  # of the fullest node
    switched: bool  # GPUs reach each other through a switch of their own
    peer: float  # from one GPU to all others over such links, or to the switch; 0 without
    near: str  # the farthest way between two GPUs of a node
    pcie: float  # of the link between a GPU and its host
    nics: int  # of a node, that are nearest to a GPU
    nic: float  # of one of them
    far: str  # the farthest way from a NIC to the GPU that is nearest to it
    nic_of: tuple[int, ...]  # the nearest NIC of each GPU of a node
    joined: tuple[tuple[int, ...], ...]  # links of their own that two GPUs of a node have, in units of the thinnest
    modes: frozenset[str]  # that the machine has
    reach: tuple[int, ...] = ()  # how far each GPU of a node is from its nearest NIC, as a place in `PATHS`
    # Data that the threads of a channel move inside a node, by protocol or `nvls`; 0 where the file does not say.
    threads: Mapping[str, float] = field(default_factory=dict, hash=False)
    share: float = 1.0  # of `peer` that carries data
    flag_ps: float = 0.0  # what threads that use the switch take for the flag of a peer

    @property
    def ranks(self) -> int:
        """All of them, as if every node were full."""
        return self.nodes * self.gpus

    @property
    def meshed(self) -> bool:
        """Whether every two GPUs of a node have links of their own."""
        return all(all(row[:at] + row[at + 1 :]) for at, row in enumerate(self.joined))

    @property
    def capability(self) -> int:
        """Compute capability as the library writes it, 90 for `sm90`; 0 for a GPU of another kind."""
        return int(self.gpu[2:]) if self.gpu.startswith("sm") else 0

    @property
    def linked(self) -> bool:
        """Whether GPUs have links of their own."""
        return self.near == NVL


@functools.lru_cache(MACHINES)
def hardware(machine: _native.Machine, places: tuple[int, ...]) -> Hardware:
    """What the library sees if ranks are at the endpoints `places`."""
    library = machine.library()
    words = library["hardware"] if library else None
    if library is None or words is None:
        raise FileError(f"{machine.name}: library: no `hardware`, which its choice depends on; add [library.hardware]")
    check_known("host", words["host"], HOSTS, where=f"{machine.name}: library.hardware")
    names = [endpoint["name"] for endpoint in machine.endpoints()]
    used = Counter(_node(names[place]) for place in places)
    node, gpus = used.most_common(1)[0]
    local = [names[place] for place in places if _node(names[place]) == node]
    graph, ports = _links(machine, node)
    peer, switched = _peers(graph, local)
    ways = [_nearest(graph, gpu, ports) for gpu in local] if len(used) > 1 else []
    found = [way for way in ways if way]
    numbers = {row["key"]: (row["value"], row["unit"]) for row in machine.numbers()}
    order = sorted({nic for nic, _ in found}, key=_number)
    reach = tuple(PATHS.index(way[1]) if way else len(PATHS) for way in ways)
    at_nic = [min(far for far, way in zip(reach, ways, strict=True) if way and way[0] == nic) for nic in order]
    return Hardware(
        gpu=words["gpu"],
        host=words["host"],
        nodes=len(used),
        gpus=gpus,
        switched=switched,
        peer=peer,
        near=NVL if peer or gpus == 1 else _farthest(graph, local),
        pcie=max(
            (rate for gpu in local for kind, rate in graph.get(gpu, {}).values() if not _is_peer(kind)), default=0.0
        ),
        nics=len(order),
        nic=max(ports.values(), default=0.0) if ways else 0.0,
        far=PATHS[max(at_nic, default=PATHS.index(SYS))],
        nic_of=tuple(order.index(way[0]) if way else 0 for way in ways),
        reach=reach,
        joined=_joined(graph, local),
        modes=frozenset(library["modes"]),
        threads=_threads(numbers, "nvlink" if peer else "pcie"),
        share=float(numbers.get("fabric.links.nvlink.share", ("1", ""))[0]) if peer else 1.0,
        flag_ps=_ps(numbers, "facts.nvls_flag"),
    )


def pcie_generation(rate: float) -> float:
    """How many times 16 lanes of the third generation a link is, a power of two."""
    return 2.0 ** round(math.log2(rate / PCIE_GEN3)) if rate else 0.0


def _threads(numbers: Numbers, links: str) -> dict[str, float]:
    """Protocol -> bytes of data per second of one channel, over links of this class."""
    found = {}
    for protocol in (*PROTOCOLS, "nvls"):
        rate = numbers.get(f"fabric.transport.{links}_{protocol}.channel")
        share = numbers.get(f"fabric.network.{protocol}.efficiency")
        found[protocol] = float(rate[0]) * _UNITS[rate[1]] * (float(share[0]) if share else 1.0) if rate else 0.0
    return found


def _ps(numbers: Numbers, key: str) -> float:
    """A time of the file; 0 if it is not stated."""
    value, unit = numbers.get(key, ("0", "us"))
    return float(value) * _PS[unit]


def _node(name: str) -> str:
    """The node of a cluster that a name belongs to, `node 3 `; empty on a single node."""
    found = _NODE.match(name)
    return found.group() if found else ""


def _is_peer(kind: str) -> bool:
    """Whether links of a class join GPUs; a generation may have several such classes."""
    return kind.startswith(PEER)


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name.rpartition(" ")[2]) or 0)


def _links(machine: _native.Machine, node: str) -> tuple[Graph, dict[str, float]]:
    """The links inside a node, and its NICs with the rate of what leads out of it."""
    graph: dict[str, dict[str, tuple[str, float]]] = {}
    ports: Counter[str] = Counter()
    network = machine.network()
    if network is None:
        return graph, {}
    names, edges = network["nodes"]["name"], network["edges"]
    for kind, first, second, rate in zip(*edges.values(), strict=True):
        a, b = names[first], names[second]
        if a.startswith(node) and b.startswith(node):
            graph.setdefault(a, {})[b] = graph.setdefault(b, {})[a] = (kind, float(rate or 0))
        elif a.startswith(node) or b.startswith(node):
            ports[a if a.startswith(node) else b] += rate or 0
    return graph, dict(ports)


def _peers(graph: Graph, local: Collection[str]) -> tuple[float, bool]:
    """What the first GPU sends to the others over links between GPUs, and whether that is through a switch.

    Nothing if one of them has no such link at all: the library then goes over the host.
    """
    sums = [sum(rate for kind, rate in graph.get(gpu, {}).values() if _is_peer(kind)) for gpu in local]
    if len(local) < 2 or not all(sums):
        return 0.0, False
    direct = [sum(rate for to, (kind, rate) in graph[gpu].items() if _is_peer(kind) and to in local) for gpu in local]
    return (min(direct), False) if any(direct) else (min(sums), True)


def _joined(graph: Graph, local: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """How many of the thinnest links join each two GPUs, by their rates."""
    edges = [[graph.get(a, {}).get(b, ("", 0.0)) for b in local] for a in local]
    rates = [[rate if _is_peer(kind) else 0.0 for kind, rate in row] for row in edges]
    least = min((rate for row in rates for rate in row if rate), default=1.0)
    return tuple(tuple(round(rate / least) for rate in row) for row in rates)


def _nearest(graph: Graph, gpu: str, ports: Collection[str]) -> tuple[str, str] | None:
    """The NIC that is fewest links away over the host, and the way to it; None without one."""
    ways = list(_ways(graph, gpu))
    found = [(PATHS.index(_kind(way)), len(way), way[-1], _kind(way)) for way in ways if way[-1] in ports]
    return min(found)[2:] if found else None


def _farthest(graph: Graph, local: Collection[str]) -> str:
    """The way over the host between the two GPUs that are farthest apart."""
    kinds = [_kind(way) for gpu in local for way in _ways(graph, gpu) if way[-1] in local and way[-1] != gpu]
    return max(kinds, key=PATHS.index, default=SYS)


def _ways(graph: Graph, start: str) -> Iterable[tuple[str, ...]]:
    """The shortest way from a GPU to everything that it reaches over the host."""
    seen: set[str] = {start}
    queue: deque[tuple[str, ...]] = deque([(start,)])
    while queue:
        way = queue.popleft()
        yield way
        if way[-1] != start and "GPU" in way[-1]:
            continue  # GPUs do not forward
        for to, (kind, _) in graph.get(way[-1], {}).items():
            if to not in seen and not _is_peer(kind):
                seen.add(to)
                queue.append((*way, to))


def _kind(way: tuple[str, ...]) -> str:
    """What the library calls a way: by the processors and PCIe switches that it passes."""
    passed = [name.rsplit(" ", 2)[-2:] for name in way[1:-1]]
    hosts = sum("CPU" in words for words in passed)
    if hosts:
        return SYS if hosts > 1 else PHB
    return PIX if len(passed) <= 1 else PXB
