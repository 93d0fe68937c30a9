"""The prediction by which RCCL chooses between ring and tree.

    time = latency + bytes / (bandwidth x correction)

Latencies are those of NCCL with constants of its own. Bandwidth is that of all links of a GPU, times a share for each
algorithm and protocol, up to two nodes and beyond. Corrections by size, of trees always and of rings over a network,
were made so that the choice is right.

Left out: kernels of MSCCL and MSCCL++, which RCCL may take for small messages inside a node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from linkwright.libraries.nccl.constants import LL, LL128, PROTOCOLS, SIMPLE, chunks
from linkwright.libraries.nccl.graphs import GIGA, Graph
from linkwright.libraries.nccl.hardware import NVL, PATHS, PXB, Hardware
from linkwright.libraries.nccl.rates import SMALLEST, Rate, Table
from linkwright.libraries.rccl.constants import Common, Model, common, model

SERVED = {
    "allreduce": ("tree", "ring"),
    "reduce_scatter": ("ring",),
    "allgather": ("ring",),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}
FEW_NODES = 2


@dataclass(frozen=True)
class Tuner:
    """What the library reckons with on one machine."""

    version: str
    common: Common
    model: Model
    hardware: Hardware
    graphs: Mapping[str, Graph]
    channels: int

    @classmethod
    def of(cls, version: str, hardware: Hardware) -> Tuner:
        """The tuner of a machine: rings are not searched, tables of known nodes name them."""
        known, rules = model(hardware.gpu), common()
        whole = known.bus or max(1, round(hardware.peer / GIGA / known.link)) * known.peer_rate
        others = hardware.gpus - 1
        rings = known.rings if hardware.nodes == 1 else max(1, hardware.nics)
        rings = min(rings, max(1, known.rings * others // 7)) if hardware.nodes == 1 else rings
        graph = Graph(rings, whole / rings, whole / rings, hardware.near, hardware.far)
        channels = min(rules.most_channels, 2 * rings)
        return cls(version, rules, known, hardware, {"ring": graph, "tree": graph}, channels)

    @property
    def peer_links(self) -> int:
        """Links of a GPU to the others."""
        return max(1, round(self.hardware.peer / GIGA / self.model.link))

    @property
    def nvls_channels(self) -> int:
        """Channels that reduce in the switch: there is none."""
        return 0

    @property
    def post_us(self) -> float:
        """What the host takes to hand a message to the network."""
        return self.common.post.get(self.hardware.host, 1.0)

    @property
    def halves_trees(self) -> bool:
        """Whether chunks of Simple trees become shorter with the vector: False, as in NCCL from 2.20 on."""
        return False

    @property
    def sends(self) -> tuple[int, float]:
        """Channels of a pair of ranks over the network, as NCCL had it; what one carries is not known."""
        return 2 if 2 * self.hardware.ranks <= self.channels * chunks().p2p_at_once else 1, 0.0

    def most_across(self, algorithm: str, protocol: str) -> float:
        """What threads carry from node to node: 0, it is not known."""
        return 0.0

    @property
    def slow_bus(self) -> float:
        """Up to what a ring needs fewer threads, GB/s."""
        return self.common.pcie_gen3

    def table(self, collective: str) -> Table:
        """(algorithm, protocol) -> rate, of all that work here."""
        return {(a, p): rate for a, p, rate in self._rates(collective) if rate.bandwidth > 0}

    def time_us(self, collective: str, algorithm: str, protocol: str, size_bytes: int, rate: Rate) -> float:
        """How long it is taken to last, us."""
        return rate.latency + size_bytes / (1000 * rate.bandwidth * self._correction(algorithm, protocol, size_bytes))

    def _correction(self, algorithm: str, protocol: str, size_bytes: int) -> float:
        if algorithm == "ring" and self.hardware.nodes == 1:
            return 1.0
        table = self.model.tree_correction if algorithm == "tree" else self.model.ring_correction
        at = max(0, size_bytes.bit_length() - 1 - SMALLEST)
        return table[protocol][min(at, len(table[protocol]) - 1)]

    def _rates(self, collective: str) -> Iterator[tuple[str, str, Rate]]:
        for algorithm in SERVED[collective]:
            for protocol in PROTOCOLS:
                if self._is_there(algorithm, protocol):
                    rate = Rate(
                        self._latency(collective, algorithm, protocol), self._bandwidth(collective, algorithm, protocol)
                    )
                    yield algorithm, protocol, rate

    def _is_there(self, algorithm: str, protocol: str) -> bool:
        alone = self.hardware.nodes == 1
        if (algorithm, protocol) == ("tree", SIMPLE) and alone and not self.model.trees_simple_alone:
            return False
        if protocol != LL128:
            return True
        reached = alone or PATHS.index(self.hardware.far) <= PATHS.index(PXB)
        return self.model.lines and LL128 in self.hardware.modes and self.hardware.near == NVL and reached

    def _bandwidth(self, collective: str, algorithm: str, protocol: str) -> float:
        shares = self.model.few if self.hardware.nodes <= FEW_NODES else self.model.many
        bus = self.graphs[algorithm].bus * shares[algorithm][PROTOCOLS.index(protocol)]
        if protocol == LL and collective in ("broadcast", "reduce") and self.hardware.nodes == 1:
            bus *= 1.0 if self.model.trees_simple_alone else self.common.broadcast_low_latency
        ranks = self.hardware.ranks
        steps = {"allreduce": 2 * (ranks - 1), "broadcast": ranks, "reduce": ranks}.get(collective, ranks - 1)
        return bus * (ranks / steps if algorithm == "ring" else 0.5)

    def _latency(self, collective: str, algorithm: str, protocol: str) -> float:
        known, hardware, at = self.model, self.hardware, PROTOCOLS.index(protocol)
        base, net = self.common.base[algorithm][at], known.network[algorithm][at]
        hop = (known.xgmi if hardware.near == NVL else known.pcie)[algorithm][at]
        others, nodes = hardware.gpus - 1, hardware.nodes
        if algorithm == "tree":
            return base + 2 * (others * hop + int(math.log2(nodes)) * net)
        if collective in ("broadcast", "reduce"):
            return base + (
                hop if nodes == 1 else hardware.ranks * known.network["tree" if protocol == SIMPLE else "ring"][at]
            )
        rounds = 2 if collective == "allreduce" else 1
        crossing = 0 if nodes == 1 else 2 * nodes if rounds == 2 else nodes - 1
        posted = self.post_us * chunks().posts[protocol] if nodes > 1 else 0.0
        return base + (rounds * (hardware.ranks - 1) - crossing) * max(hop, posted) + crossing * net
