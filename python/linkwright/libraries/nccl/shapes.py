"""From a choice to a schedule: the messages that all channels of a library together send.

A schedule stands for a bundle of equal channels, so events stay few. Behind a switch of one node a single ring stands
for all rings. On a mesh, and on a cluster, there are several, each for its share of the channels: one for each GPU, or
for each NIC of a node. Their orders in a node are the rows of a square in which no two neighbours come twice

    0 1 3 2      so that each ring has its own links in a mesh, and its own connections behind a switch;
    1 2 0 3      ring 0 enters a node at GPU 0 and leaves it at GPU 2, ring 1 enters at 1 and leaves at 3, ...
    2 3 1 0
    3 0 2 1

and each NIC sends for one ring and receives for another. A library that must leave by the NIC where it entered goes
through a peer instead; either way a NIC carries one ring in each direction. Rings that close in a single node are those
of Walecki: n - 1 of them cover each pair of n GPUs twice. GPUs without links of their own keep the order of their
numbers, and those with some links only take rings that the links close.

The shape does not depend on the size: a schedule is built once and resized. Only the number of slices does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwright import _native
from linkwright.ask.question import Collective
from linkwright.base.errors import WaivedError
from linkwright.base.units import PS_PER_S, PS_PER_US
from linkwright.libraries.nccl.choice import Choice
from linkwright.libraries.nccl.constants import SIMPLE, chunks
from linkwright.libraries.nccl.graphs import GIGA
from linkwright.libraries.nccl.hardware import Hardware
from linkwright.libraries.nccl.search import search

# Slices of one message that a library cuts at most, as far as it matters; pipelines are long.
MOST_SLICES = {
    "ring": 2, "pipeline": 512, "tree": 512, "nvls": 4096, "nvls_tree": 512, "collnet_direct": 8, "collnet_chain": 512,
}  # fmt: skip
MOST_SIMULATED = 64  # slices, of which longer pipelines are continued
LEAST_SIMULATED = 8  # however many messages that takes
MOST_MESSAGES = 140_000  # of a schedule that is cut into more slices than these
REGISTERED = {
    "ring": "ring", "tree": "double_binary_tree", "nvls": "nvls", "nvls_tree": "nvls_tree", "pat": "pat",
    "collnet_direct": "collnet_direct", "collnet_chain": "collnet_chain", "p2p": "linear",
}  # fmt: skip
ROOTED_PIPELINES = ("broadcast", "reduce")
SHAPES, SIZED = 256, 16  # schedules that are remembered, without a size and with one

Rings = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Shape:
    """A schedule but for its size."""

    key: str  # in the registry of algorithms
    ranks: int
    root: int
    grid: tuple[int, ...] | None  # GPUs of a node, nodes
    rings: Rings | None
    slices: int

    @functools.lru_cache(SIZED)  # noqa: B019 - one object is proved once, for all machines
    def of(self, elements: int, element_bytes: int) -> _native.Schedule:
        """The schedule of vectors of `elements`."""
        return _built(self).resized(elements, element_bytes)


def shape(choice: Choice, hardware: Hardware, question: Collective) -> Shape:
    """The schedule by which all channels of a choice together carry out a collective."""
    collective, size_bytes = question.collective, int(question.size_bytes or 0)
    key = f"{collective}/{REGISTERED[choice.algorithm]}"
    if key not in _registered():
        raise WaivedError(f"{key}: linkwright has no schedule for the library's choice here")
    rings = rails(hardware, question.ranks, choice) if choice.algorithm in ("ring", "tree") else None
    grid = (hardware.gpus, hardware.nodes) if _is_grid(choice, hardware, question.ranks) else None
    if choice.algorithm == "tree" and grid is None:
        rings = None
    cut = min(slices(choice, hardware, collective, size_bytes), simulated(choice, hardware, collective))
    return Shape(key, question.ranks, question.root, grid, rings, cut)


def rails(hardware: Hardware, ranks: int, choice: Choice) -> Rings | None:
    """The rings of a node, joined from node to node, at most one for each channel; None where one stands for all."""
    alone = hardware.nodes == 1
    if ranks != hardware.ranks or hardware.gpus < 2 or (alone and (hardware.switched or not hardware.linked)):
        return None
    gpus, nodes = hardware.gpus, range(hardware.nodes)
    rows = _rows(hardware)[: choice.channels]
    return tuple(tuple(node * gpus + gpu for node in nodes for gpu in row) for row in rows)


def _rows(hardware: Hardware) -> Rings:
    """The orders of the GPUs of a node: on a single node closed rings, on several one for each NIC."""
    gpus, alone = hardware.gpus, hardware.nodes == 1
    if hardware.linked and not hardware.switched and not hardware.meshed:
        # RCCL takes its rings from tables of known nodes instead, each over one link of a pair.
        links = [[count if hardware.capability else int(count > 0) for count in row] for row in hardware.joined]
        rings = search(links) or [list(range(gpus))]
        return tuple(map(tuple, rings)) if alone else tuple(_from(rings, hardware))
    if alone:
        return _closed(gpus)
    steps = _there_and_back(gpus) if hardware.linked else range(gpus)
    return _leaving(tuple(tuple((first + step) % gpus for step in steps) for first in _entries(hardware)), hardware)


def _leaving(rows: Rings, hardware: Hardware) -> Rings:
    """Rows that leave a node by a NIC each: where two would share one, each ends where the row before it begins.

    Behind a switch, what leaves is forwarded to the GPU of its rail, so that ends do not matter.
    """
    if hardware.switched or len({hardware.nic_of[row[-1]] for row in rows}) == len(rows):
        return rows
    ends = (rows[-1][0], *(row[0] for row in rows[:-1]))
    return tuple((*(gpu for gpu in row if gpu != end), end) for row, end in zip(rows, ends, strict=True))


def _there_and_back(count: int) -> Sequence[int]:
    """0, 1, -1, 2, -2, ...: every distance once, so that turned round it has every pair of neighbours once."""
    return [0, *(at for step in range(1, count) for at in dict.fromkeys((step, count - step)))][:count]


def _closed(gpus: int) -> Rings:
    """Rings over a full mesh that load each link, in each direction, equally: Walecki's, and their reverses."""
    others = gpus - 1
    steps = _there_and_back(others)
    forth = [(others, *((first + step) % others for step in steps)) for first in range(others)]
    return tuple(dict.fromkeys([*forth, *(ring[::-1] for ring in forth)])) if gpus > 2 else ((0, 1),)


def _from(rings: Sequence[Sequence[int]], hardware: Hardware) -> Iterator[tuple[int, ...]]:
    """A ring for each NIC, turned so that it begins at the GPU which is next to it."""
    for number, entry in enumerate(_entries(hardware)):
        ring = list(rings[number % len(rings)])
        at = ring.index(entry)
        yield (*ring[at:], *ring[:at])


def bundle(choice: Choice, made: Shape) -> int:
    """How many channels each message stands for."""
    return math.ceil(choice.channels / _streams(choice, made))


def sends(choice: Choice, hardware: Hardware, made: Shape, question: Collective) -> float | None:
    """How many messages of the library each message between nodes stands for; None: one for each channel.

    A channel has one of the two trees, and a schedule both. Grouped sends of a pair use further channels only for what
    a chunk has no room for. A ring sends each chunk in slices, unless it is short; here it is one message.
    """
    if hardware.nodes == 1:
        return None
    trees = 2 if choice.algorithm in ("tree", "nvls_tree") and made.grid else 1
    found = 1.0 if choice.algorithm == "p2p" else choice.channels / (_streams(choice, made) * trees)
    if _has_long_chunks(choice, question.collective):
        block = int(question.size_bytes or 0) / (hardware.ranks * choice.channels)
        if block > choice.chunk_bytes / choice.slices / chunks().shortest_slice:
            found *= math.ceil(block / choice.chunk_bytes) * choice.slices / made.slices
    return None if found == bundle(choice, made) else found


def _streams(choice: Choice, made: Shape) -> int:
    """Into how many streams, each for its share of the channels, a schedule divides the vector."""
    return len(made.rings) if made.rings else _rails_of_grid(choice, made)


def across(choice: Choice, made: Shape) -> int | None:
    """The bytes per second that one message carries from node to node, where threads limit it."""
    return round(GIGA * choice.across / len(made.rings or (0,))) if choice.across else None


def issue(choice: Choice, collective: str) -> str:
    """How many messages a stream has under way: as many as the buffer of a channel holds."""
    if choice.algorithm == "p2p":
        return "unlimited"
    if choice.algorithm == "nvls":
        return "window(1)"  # the threads that have a chunk combined and write it take one after the other
    steps = chunks().ring_steps // choice.slices if _has_long_chunks(choice, collective) else 1
    return f"window({max(2, chunks().buffer_steps // steps)})"


def slices(choice: Choice, hardware: Hardware, collective: str, size_bytes: int) -> int:
    """Slices of a message: the vector is handed on in chunks, of which a few are under way."""
    if choice.algorithm in ("p2p", "pat"):
        return 1
    parts = size_bytes / (_blocks(choice, hardware, collective) * choice.channels * choice.chunk_bytes / choice.slices)
    # A power of two, so that few schedules serve all sizes.
    return 1 << min(math.ceil(math.log2(max(1.0, parts))), MOST_SLICES[_kind(choice, collective)].bit_length() - 1)


def simulated(choice: Choice, hardware: Hardware, collective: str) -> int:
    """Slices that a schedule has at most: a few messages for each of them on every rank of a rail."""
    rails = hardware.gpus if hardware.nodes > 1 else 1
    each = hardware.ranks * rails * (1 if choice.algorithm == "ring" else 4)
    most = MOST_SLICES["nvls"] if choice.algorithm == "nvls" else MOST_SIMULATED  # a chunk does not hide the next
    found = min(most, max(LEAST_SIMULATED, MOST_MESSAGES // each))
    return 1 << found.bit_length() - 1


def _kind(choice: Choice, collective: str) -> str:
    return "pipeline" if choice.algorithm == "ring" and collective in ROOTED_PIPELINES else choice.algorithm


def drain_ps(choice: Choice, hardware: Hardware, question: Collective) -> int:
    """What threads do while no link is used.

    ring in a node   the last step, out of a buffer: the same threads send the next chunk only then
    ring of nodes    a slice of it: meanwhile a NIC sends on what is in the buffers
    grouped sends    what a GPU has for itself, and the last chunk of each peer
    switch           flags of all peers, once for each round of chunks
    """
    collective, size_bytes = question.collective, int(question.size_bytes or 0)
    if choice.algorithm in ("nvls", "nvls_tree"):
        return round(_flags_ps(choice, hardware, size_bytes))
    if choice.algorithm not in ("ring", "p2p"):
        return 0
    return round(_copied_ps(choice, hardware, collective, size_bytes) + PS_PER_US * choice.post_us)


def _copied_ps(choice: Choice, hardware: Hardware, collective: str, size_bytes: int) -> float:
    """What is copied inside a GPU and not hidden behind messages."""
    if choice.algorithm == "p2p" and hardware.nodes > 1:
        return 0.0
    each = hardware.threads.get(choice.protocol, 0.0)
    rate = choice.channels * each
    if choice.algorithm == "p2p":
        own = size_bytes / hardware.ranks
        waiting = own + (hardware.gpus - 1) * min(own, choice.channels * choice.chunk_bytes)
    else:
        waiting = size_bytes / _blocks(choice, hardware, collective)
        if hardware.nodes > 1 or collective in ROOTED_PIPELINES or not each:
            waiting = min(waiting, choice.channels * choice.chunk_bytes) / choice.slices
            rate = (hardware.peer or hardware.pcie) if choice.protocol == SIMPLE else 0.0
    return PS_PER_S * waiting / rate if rate else 0.0


def _flags_ps(choice: Choice, hardware: Hardware, size_bytes: int) -> float:
    """What threads that use the switch take in all rounds of chunks beyond what is simulated.

    In each round they copy a chunk for every head, and wait for a flag of every head: of every GPU, unless a rack has
    more GPUs than the library has heads. The first round is copied in before, and the last one out afterwards, which
    together take as long as a round. Over several nodes, ports work meanwhile.
    """
    one = choice.channels * choice.chunk_bytes * choice.heads  # bytes of a round
    linked = one / (hardware.peer * hardware.share)
    copied = max(linked, one / (choice.channels * hardware.threads["nvls"]) if hardware.threads.get("nvls") else 0.0)
    whole = math.ceil(choice.channels / hardware.gpus) * hardware.gpus  # channels as they are simulated
    moved = max(copied * choice.channels / whole, linked)
    flags = choice.heads * hardware.flag_ps
    if hardware.nodes > 1 and hardware.nic:
        times = min(2, hardware.nodes - 1)  # a node inside the tree receives and sends twice
        moved = max(moved, one * times / (hardware.nics * hardware.nic))
        flags += chunks().nvls_tree_peers * hardware.flag_ps
    ends = min(1.0, size_bytes / one) * copied if hardware.nodes == 1 else 0.0
    return max(1.0, size_bytes / one) * max(0.0, PS_PER_S * (copied - moved) + flags) + PS_PER_S * ends


def _blocks(choice: Choice, hardware: Hardware, collective: str) -> int:
    """Into how many blocks the vector of a channel is cut, each of which goes its own way."""
    if choice.algorithm == "ring":
        return 1 if collective in ROOTED_PIPELINES else hardware.ranks
    if choice.algorithm in ("nvls", "nvls_tree"):
        return choice.heads
    return hardware.gpus if choice.algorithm == "collnet_direct" else 1


def _has_long_chunks(choice: Choice, collective: str) -> bool:
    return choice.algorithm == "ring" and choice.protocol == SIMPLE and collective not in ROOTED_PIPELINES


def _is_grid(choice: Choice, hardware: Hardware, ranks: int) -> bool:
    """Whether the ranks fill nodes, which trees and reductions in switches go by; a tree in a node is a chain."""
    whole = choice.algorithm not in ("ring", "p2p", "pat") and ranks == hardware.ranks
    return whole and (hardware.nodes > 1 or choice.algorithm == "tree")


def _rails_of_grid(choice: Choice, made: Shape) -> int:
    """Streams of a schedule without rings: a head for each GPU of a node."""
    switch = choice.algorithm in ("nvls", "nvls_tree", "collnet_direct")
    if made.grid:
        return made.grid[0] if made.grid[1] > 1 or switch else 1
    return made.ranks if switch else 1


def _entries(hardware: Hardware) -> Sequence[int]:
    """The GPU nearest to each NIC of a node, of several the first."""
    near = hardware.reach or (0,) * len(hardware.nic_of)
    gpus = sorted(range(len(hardware.nic_of)), key=lambda gpu: (-near[gpu], -gpu))
    return sorted({hardware.nic_of[gpu]: gpu for gpu in gpus}.values()) or [0]


@functools.lru_cache(SHAPES)
def _built(made: Shape) -> _native.Schedule:
    rings = [list(ring) for ring in made.rings] if made.rings else None
    built = _native.Schedule.build(
        made.key, made.ranks, BUILT_ELEMENTS * made.ranks, root=made.root, grid=made.grid, rings=rings
    )
    return built.pipeline(made.slices) if made.slices > 1 else built


BUILT_ELEMENTS = 1 << 12  # for each rank; any number that every slice has a part of


@functools.cache
def _registered() -> frozenset[str]:
    return frozenset(f"{row['collective']}/{row['name']}" for row in _native.algorithms())
