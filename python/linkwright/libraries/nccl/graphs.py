"""The graph search of NCCL, reduced to what decides: how many channels, and what each carries.

NCCL tries speeds from the fastest down and counts how many rings of that speed the links bear. Most together win; an
equal number at a lower speed does not. Few fast channels are then doubled at half the speed.

    H100, one node    18 links x 20.6 = 370.8    60 x 6 = 360, 50 x 7, 40 x 9, 30 x 12: 6 at 60, doubled: 12 at 30
    A100, one node    12 links x 20 = 240        40 x 6 = 240, which is all there is:   6 at 40, doubled: 12 at 20

The order of ranks in a ring is not searched: behind a switch all are alike, and elsewhere the rings here follow the
ranks. That a tree fits where its rings do is taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from linkwright.libraries.nccl.constants import Constants
from linkwright.libraries.nccl.hardware import PATHS, SYS, Hardware, pcie_generation

GIGA = 1e9
FEW = 25.0  # GB/s of a channel from which on channels are doubled
FEW_NEW = (50.0, 4)  # after sm80: from this speed on, or up to so many channels
LEAST_STEP = 0.49  # slower than this share of what was found is not tried
OVER_INTEL = 5 / 6  # between GPUs through an Intel processor


@dataclass(frozen=True)
class Graph:
    """Channels of one algorithm. Rates in GB/s."""

    channels: int
    intra: float  # of one channel inside a node
    inter: float  # between nodes
    near: str  # the way inside a node
    far: str  # the way to the network
    simple_tree: bool = False

    @property
    def bus(self) -> float:
        """What all channels together carry inside a node."""
        return self.channels * self.intra


def graphs(constants: Constants, hardware: Hardware) -> Mapping[str, Graph]:
    """The channels of each algorithm that the links allow."""
    ring = _ring(constants, hardware)
    tree = _tree(constants, hardware, ring)
    found = {"ring": ring, "tree": tree, "pat": tree}
    heads = _heads(constants, hardware)
    if heads:
        found |= {"nvls": heads, "nvls_tree": heads}
    if "collnet" in hardware.modes and hardware.nodes > 1:
        found |= {"collnet_chain": tree, "collnet_direct": _direct(constants, hardware)}
    return found


def channels(constants: Constants, hardware: Hardware, found: Mapping[str, Graph]) -> int:
    """How many channels kernels have at most: those of rings, and those of the switch where they are more."""
    count = ring_channels(constants, hardware, found)
    return max(count, nvls_channels(constants, hardware)) if "nvls" in found else count


def ring_channels(constants: Constants, hardware: Hardware, found: Mapping[str, Graph]) -> int:
    """How many channels rings have: twice those that were searched for."""
    ring = found["ring"]
    count = min(constants.most_channels, 2 * ring.channels)
    if "collnet_chain" in found and found["collnet_chain"].intra > found["collnet_chain"].inter and hardware.gpus > 1:
        count = min(constants.most_channels, count + count // 2)
    if hardware.capability >= 90 and hardware.nodes > 1 and ring.intra > 45 and count < 16:
        count *= 2
    return count


def nvls_channels(constants: Constants, hardware: Hardware) -> int:
    """How many channels reduce in the switch."""
    if hardware.capability < 100:
        return constants.nvls_channels["sm90"]
    return constants.nvls_channels["sm100_one_node" if hardware.nodes == 1 else "sm100"]


def peer_rate(constants: Constants, hardware: Hardware) -> float:
    """What the search takes the links between GPUs for, of one GPU, in GB/s; else those over the host."""
    if hardware.linked and hardware.peer:
        return peer_links(constants, hardware) * constants.nvlink_rate[_known(constants.nvlink_rate, hardware)]
    return _host_rate(constants, hardware)


def peer_links(constants: Constants, hardware: Hardware) -> int:
    """How many links of its generation a GPU has to the others, or to the switch."""
    return max(1, round(hardware.peer / GIGA / constants.link[_known(constants.link, hardware)]))


def _host_rate(constants: Constants, hardware: Hardware) -> float:
    lanes = constants.pcie_gen3 * pcie_generation(hardware.pcie)
    if PATHS.index(hardware.near) < PATHS.index("PHB"):
        return lanes
    over = OVER_INTEL if hardware.host == "intel" else 1.0
    return over * (min(lanes, constants.socket[hardware.host]) if hardware.near == SYS else lanes)


def _known(table: Mapping[str, float], hardware: Hardware) -> str:
    """The generation of a table that is nearest from below."""
    return max(
        (key for key in table if int(key[2:]) <= hardware.capability), key=lambda key: int(key[2:]), default="sm60"
    )


def _speeds(constants: Constants, hardware: Hardware) -> Sequence[float]:
    old = "sm100" if hardware.capability >= 100 else "sm90" if hardware.capability >= 90 else "old"
    return constants.speeds["across" if hardware.nodes > 1 else "inside"][old]


def port_rate(constants: Constants, hardware: Hardware) -> float:
    """What one NIC carries, GB/s: its network or the PCIe link to it, whichever is slower."""
    lanes = constants.pcie_gen3 * pcie_generation(hardware.pcie)
    return min(hardware.nic / GIGA, lanes or math.inf)


def _fits(rate: float, speed: float) -> int:
    return math.floor(rate / speed + 1e-6)


def _bearing(constants: Constants, hardware: Hardware) -> Callable[[float], int]:
    """A speed -> how many rings of it the links bear."""
    inside, most = peer_rate(constants, hardware), constants.most_channels // 2
    others = hardware.gpus - 1
    port = port_rate(constants, hardware)

    def bears(speed: float) -> int:
        if hardware.gpus == 1:
            rings = most
        elif hardware.linked and not hardware.switched:
            rings = _fits(inside / others, speed) * others  # each pair has its own links
        else:
            rings = _fits(inside, speed)
        return min(most, rings, hardware.nics * _fits(port, speed)) if hardware.nodes > 1 else min(most, rings)

    return bears


def _ring(constants: Constants, hardware: Hardware) -> Graph:
    speeds, bears = _speeds(constants, hardware), _bearing(constants, hardware)
    whole = peer_rate(constants, hardware) if hardware.gpus > 1 else port_rate(constants, hardware)
    count, speed = 0, 0.0
    for tried in speeds:
        if count and (count * speed >= whole or tried / speed <= LEAST_STEP):
            break
        if bears(tried) * tried > count * speed:
            count, speed = bears(tried), tried
    if not count:
        return Graph(1, 0.1, 0.1, SYS, SYS)
    count, speed = _doubled(count, speed, constants.most_channels // 2, hardware)
    for tried in reversed([tried for tried in speeds if tried > speed]):
        if bears(tried) >= count and bears(tried) * tried > count * speed:
            count, speed = bears(tried), tried
    return Graph(count, speed, speed, hardware.near, hardware.far)


def _doubled(count: int, speed: float, most: int, hardware: Hardware) -> tuple[int, float]:
    """Few channels that are fast become twice as many at half the speed."""
    if speed < FEW or (hardware.capability > 80 and speed < FEW_NEW[0] and count > FEW_NEW[1]):
        return count, speed
    return min(2 * count, most), speed / math.ceil(min(2 * count, most) / count)


def _tree(constants: Constants, hardware: Hardware, ring: Graph) -> Graph:
    """As many channels as rings; inside a node a channel may be up to twice as fast as to the network."""
    if hardware.nodes == 1 or hardware.gpus == 1:
        return replace(ring, simple_tree=hardware.gpus == 1)
    inside = peer_rate(constants, hardware)
    faster = [s for s in _speeds(constants, hardware) if ring.inter < s <= 2 * ring.inter]
    borne = [s for s in faster if _fits(inside, s) >= ring.channels]
    return replace(ring, intra=max(borne, default=ring.intra))


def _heads(constants: Constants, hardware: Hardware) -> Graph | None:
    """Channels that reduce in the switch: each has a GPU as head, whose link bears it twice."""
    if "nvls" not in hardware.modes or not hardware.switched or hardware.gpus <= 2 or hardware.capability < 90:
        return None
    inside, most = peer_rate(constants, hardware), min(constants.nvls_heads, hardware.gpus)
    most, port = (min(most, hardware.nics), port_rate(constants, hardware)) if hardware.nodes > 1 else (most, math.inf)
    speeds = _speeds(constants, hardware)
    speed = next((s for s in speeds if s <= port and (most + 1) * s <= inside), 0.0)
    if not speed or not most:
        return None
    inter = speed
    # Then the speed between nodes is raised while it is less than twice that inside; a single node does not limit it.
    for faster in reversed([s for s in speeds if s > speed]):
        inter = faster if faster <= port and inter < 2 * speed else inter
    return Graph(most, speed, inter, hardware.near, hardware.far)


def _direct(constants: Constants, hardware: Hardware) -> Graph:
    """Heads at the NICs, each of which reduces with its switch of the network."""
    inside, heads = peer_rate(constants, hardware), max(1, min(hardware.nics, hardware.gpus, 8))
    speeds = _speeds(constants, hardware)
    inter = next((s for s in speeds if s <= port_rate(constants, hardware)), speeds[-1])
    intra = next((s for s in speeds if s <= min(2 * inter, inside / heads)), inter)
    return Graph(heads, intra, inter, hardware.near, hardware.far)
