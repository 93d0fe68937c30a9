"""Read tt-metal mesh graph descriptors: how Tenstorrent chips are joined, in YAML or as text of a protocol buffer.

    mesh_descriptors {                                ChipSpec: { arch: wormhole_b0, ethernet_ports: { N: 2, ... } }
      name: "M0"  arch: WORMHOLE_B0                   Board: [ { name: T3K, type: Mesh, topology: [2, 4] } ]
      device_topology { dims: [ 2, 4 ] }              Mesh: [ { id: 0, board: T3K, device_topology: [2, 4] } ]
      channels { count: 2 }                           Graph: [ [[M0, D1], [M1, D0], 1] ]
    }
    top_level_instance { mesh { mesh_descriptor: "M0" mesh_id: 0 } }

A mesh is a grid of chips, in rows, whose neighbours are joined by `channels`; an axis of type RING wraps. Meshes are
joined chip by chip if the descriptor names chips or ports. If it names only meshes, tt-metal chooses the chips at run
time; this reader joins the first chips of both, as many as the channels need, and the machine file marks that as
assumed. The descriptor has no rates: a channel has the rate of its chip.

Source: tt-metal, tt_metal/fabric/mesh_graph_descriptors, with its schema and guide.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from linkwright.network_api import MOST_ENDPOINTS, MOST_LINKS, Axis, FileError, Links, Number, Wiring, bounded


def _stated(value: int, unit: str, source: str) -> Number:
    return Number(Decimal(value), unit, "documented", f"Tenstorrent, {source}")


ARCHITECTURES = {"WORMHOLE_B0": "wormhole_b0", "BLACKHOLE": "blackhole"}
# By architecture: the rate of a channel, and the latency of a hop.
CHANNELS = {
    "wormhole_b0": _stated(100, "Gb/s", "Wormhole: sixteen Ethernet links of 100 Gb/s, each direction"),
    "blackhole": _stated(400, "Gb/s", "Blackhole p150: ports of 800 Gb/s with two channels each"),
}
LATENCIES = {
    "wormhole_b0": _stated(670, "ns", "Basic Ethernet Guide: 650 to 690 ns a hop, the middle"),
    "blackhole": _stated(
        679, "ns", "golden times of the fabric's tests on four Blackhole p150: 679 ns a hop for 16 bytes"
    ),
}
START = _stated(80, "ns", "Basic Ethernet Guide: 80 ns to start a send")
MOST_CHANNELS = 1024
MOST_MESHES = 4096


@dataclass(frozen=True)
class Mesh:
    """A grid of chips, in rows; `channels` join neighbours."""

    sides: tuple[int, ...]
    rings: tuple[bool, ...]
    arch: str
    channels: int
    express: tuple[tuple[int, int], ...] = ()

    @property
    def chips(self) -> int:
        """Number of chips."""
        return math.prod(self.sides)


@dataclass
class Plan:
    """Meshes by name, and the channels between chips of two of them: ((mesh, chip), (mesh, chip)) -> how many."""

    meshes: dict[str, Mesh]
    joined: Counter = field(default_factory=Counter)
    assumed: bool = False


def checked_count(count: object, where: str) -> int:
    """Check a number of channels."""
    if type(count) is not int or not 1 <= count <= MOST_CHANNELS:
        raise FileError(f"{where} is `{str(count)[:40]}`; write a whole number, 1 to {MOST_CHANNELS}")
    return count


def checked_sides(found: object, where: str) -> tuple[int, ...]:
    """Check the sides of a grid of chips."""
    sides = found if isinstance(found, list) else []
    if not 1 <= len(sides) <= 6 or any(type(side) is not int or not 1 <= side <= MOST_ENDPOINTS for side in sides):
        raise FileError(f"{where} is `{str(found)[:60]}`; write one to six sides such as [2, 4]")
    bounded(math.prod(sides), MOST_ENDPOINTS, where, "chips")
    return tuple(sides)


def join(plan: Plan, one: tuple[str, int | None], other: tuple[str, int | None], count: int) -> None:
    """Add channels between two meshes: between the named chips, or else between the first chips of both."""
    (a, i), (b, j) = one, other
    if i is not None and j is not None:
        plan.joined[(a, i), (b, j)] += count
        return
    plan.assumed = True
    each = min(plan.meshes[a].channels, plan.meshes[b].channels)
    chips = min(-(-count // each), plan.meshes[a].chips, plan.meshes[b].chips)
    for chip in range(chips):
        share = count // chips + (chip < count % chips)
        plan.joined[(a, chip if i is None else i), (b, chip if j is None else j)] += share
    bounded(len(plan.joined), MOST_LINKS, "the descriptor", "links between meshes")


def wired(plan: Plan, file: str) -> Wiring:
    """Build the machine of a plan."""
    if not plan.meshes:
        raise FileError(f"{file}: instantiates no mesh; name one in top_level_instance")
    archs = sorted({mesh.arch for mesh in plan.meshes.values()})
    if len(archs) > 1:
        raise FileError(f"{file}: chips of {' and '.join(archs)} in one descriptor; describe them in two files")
    chips = bounded(sum(mesh.chips for mesh in plan.meshes.values()), MOST_ENDPOINTS, file, "chips")
    if chips < 2:
        raise FileError(f"{file}: a single chip; a machine has at least two, so take a descriptor of several")
    source = "mesh graph descriptor of tt-metal"
    shapes = Counter(" x ".join(map(str, mesh.sides)) for mesh in plan.meshes.values())
    shown = ", ".join(f"{count} of {shape}" if count > 1 else shape for shape, count in shapes.items())
    latency = LATENCIES[archs[0]]
    wiring = Wiring(
        name=file.rpartition(".")[0] or file,
        summary=f"{chips} chips ({archs[0]}): {shown}",
        description="Shape and channels are from a mesh graph descriptor of tt-metal, rates and latencies from the "
        "vendor's documents. Messages pass chips on their way, which costs the latency of each hop."
        + (" The descriptor joins meshes without naming chips: the first of both are taken." if plan.assumed else ""),
        sources=[f"tt-metal mesh graph descriptor: {file}"],
        endpoints=[f"chip {i}" for i in range(chips)],
        endpoint_source=source,
        start=START,
        levels=[("mesh", len(plan.meshes)), ("chip", chips // len(plan.meshes))]
        if len(plan.meshes) > 1 and len(shapes) == 1
        else [("chip", chips)],
        relays=True,
    )
    only = next(iter(plan.meshes.values()))
    sides = [(side, ring) for side, ring in zip(only.sides, only.rings, strict=True) if side > 1]
    if len(plan.meshes) == 1 and len(sides) > 1 and not only.express and not plan.joined:
        rate = _rate(only.arch, only.channels)
        wiring.torus = [Axis(side, rate, latency, ring) for side, ring in reversed(sides)]
        wiring.endpoints = ["chip ({at})"]
    else:
        _listed(wiring, plan, latency, source)
    return wiring


def _rate(arch: str, channels: int):
    return CHANNELS[arch].times(channels, f"{channels} channels of the descriptor")


def _listed(wiring: Wiring, plan: Plan, latency, source: str) -> None:
    """Add the links one by one."""
    first = dict(
        zip(plan.meshes, itertools.accumulate((m.chips for m in plan.meshes.values()), initial=0), strict=False)
    )
    counts: Counter = Counter()
    for name, mesh in plan.meshes.items():
        for a, b in _neighbours(mesh):
            counts[first[name] + a, first[name] + b, source] += mesh.channels
    between = source + (": which chips of two meshes are joined is assumed" if plan.assumed else "")
    for ((a, i), (b, j)), count in plan.joined.items():
        low, high = sorted((first[a] + i, first[b] + j))
        counts[low, high, between] += count
    arch = next(iter(plan.meshes.values())).arch
    merged: dict[tuple[int, int], list] = {}
    for (a, b, origin), count in counts.items():
        one = merged.setdefault((a, b), [0, origin])
        one[0] += count
    bounded(len(merged), MOST_LINKS, "the descriptor", "links")
    for (a, b), (count, origin) in merged.items():
        name = f"{count} channels" + ("" if origin == source else " between meshes")
        links = wiring.links.setdefault(name, Links(_rate(arch, count), latency, origin))
        links.edges.append((f"chip {a}", f"chip {b}"))


def _neighbours(mesh: Mesh):
    """Yield the pairs of chips of one mesh that channels join."""
    strides = [math.prod(mesh.sides[number + 1 :]) for number in range(len(mesh.sides))]
    for chip in range(mesh.chips):
        for side, stride, ring in zip(mesh.sides, strides, mesh.rings, strict=True):
            place = chip // stride % side
            if place + 1 < side:
                yield chip, chip + stride
            elif ring and side > 2:
                yield chip - (side - 1) * stride, chip
    for a, b in mesh.express:
        yield min(a, b), max(a, b)
