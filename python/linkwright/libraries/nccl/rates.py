"""The prediction by which NCCL chooses: a latency and a bandwidth for each algorithm, protocol and collective.

    time = latency + bytes / bandwidth        the smallest over algorithms and protocols is taken

`bytes` is the whole vector; of allgather and reduce_scatter, the gathered one. With R ranks on N nodes of p:

    ring       base + (steps - k) hop + k net          steps 2 (R - 1), or R - 1; k of them cross the network
    tree       base + 2 ((p - 1) hop + log2 N net)     a chain inside the node, a tree between nodes
    nvls       hop (+ net)                             nvls_tree   hop + 2 log2 N net

Bandwidth is channels x rate of a channel, less what the protocol takes, times the share of the vector that a link sees.
The model knows more than that of each; `table` is the whole of it. It ranks: it can be 10 to 40 % off a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from linkwright.libraries.nccl.constants import LL, LL128, PROTOCOLS, SIMPLE, Constants, chunks, constants, versions
from linkwright.libraries.nccl.graphs import Graph, nvls_channels, peer_links, port_rate, ring_channels
from linkwright.libraries.nccl.hardware import NVL, PATHS, PHB, PXB, Hardware

ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
# Algorithms of each collective; ties go to the first.
SERVED = {
    "allreduce": ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
    "reduce_scatter": ("ring", "collnet_direct", "nvls", "pat"),
    "allgather": ("ring", "collnet_direct", "nvls", "pat"),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}
SIMPLE_ONLY = ("collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
SMALLEST = 6  # log2 of the first size of a table of corrections
RING_PLATEAU = 64  # bytes of each channel and rank from which on a ring's latency counts more


@dataclass(frozen=True)
class Rate:
    """What one algorithm and protocol is taken for; latency in us, bandwidth in GB/s."""

    latency: float
    bandwidth: float


Table = Mapping[tuple[str, str], Rate]


@dataclass(frozen=True)
class Tuner:
    """What a version reckons with on one machine."""

    constants: Constants
    hardware: Hardware
    graphs: Mapping[str, Graph]
    channels: int

    @property
    def version(self) -> str:
        """Of the documented model."""
        return self.constants.version

    @property
    def slow_bus(self) -> float:
        """Up to what a ring needs fewer threads, GB/s."""
        return self.constants.pcie_gen3

    @property
    def peer_links(self) -> int:
        """Links of a GPU to the others."""
        return peer_links(self.constants, self.hardware)

    @property
    def nvls_channels(self) -> int:
        """Channels that reduce in the switch."""
        return nvls_channels(self.constants, self.hardware)

    @property
    def post_us(self) -> float:
        """What the host takes to hand a message to the network."""
        return self.constants.post[self.hardware.host if self.hardware.host in self.constants.post else "other"]

    @property
    def halves_trees(self) -> bool:
        """Whether chunks of Simple trees become shorter with the vector."""
        return self.constants.halves_trees

    @property
    def sends(self) -> tuple[int, float]:
        """Channels of a pair of ranks over the network, and what one of them carries, GB/s.

        two     2
        ranks   2, halved while channels x ranks > 4 x all channels
        rate    rate of the port / 14 GB/s, halved while channels x ranks / 8 > all channels
        """
        known, sized = self.constants, chunks()
        every, ranks = power_of_two(ring_channels(known, self.hardware, self.graphs)), self.hardware.ranks
        count = 2
        if known.sends == "rate":
            count = max(1, math.ceil(int(port_rate(known, self.hardware)) / known.sends_rate))
            count = power_of_two(count)
            while count > 1 and count * math.ceil(ranks / sized.p2p_batch) > every:
                count //= 2
        elif known.sends == "ranks":
            count = 2 if 2 * ranks <= every * sized.p2p_at_once else 1
        return count, known.sends_rate

    def most_across(self, algorithm: str, protocol: str) -> float:
        """What threads of all channels together carry from node to node, GB/s of the vector; 0 if links alone decide.

        The caps are bus rates, as tests report them: of an allreduce on n ranks, 2 (n - 1) / n of the vector. Those of
        the newest version hold for all: threads have not changed between versions, but what is known of them has.
        """
        graph = self.graphs.get(algorithm)
        if graph is None or algorithm not in ("ring", "tree"):
            return 0.0
        known = replace(self, constants=constants(versions()[0]))
        if algorithm == "ring":
            line = graph.channels * known.cap("ring_line")
            return {LL: self._low_latency_cap, LL128: line, SIMPLE: 0.0}[protocol]
        whole = graph.channels * known.cap("tree")
        if protocol == LL:
            whole = min(whole * self.constants.tree_low_latency, self._low_latency_cap)
        if protocol == LL128:
            whole = min(whole * 120 / 128, graph.channels * known.cap("tree_line"))
        ranks = self.hardware.ranks
        return whole * ranks / (2 * (ranks - 1))

    @property
    def row(self) -> str:
        """The generation of the GPUs, as the caps name it."""
        capability = self.hardware.capability
        known = ((100, "blackwell"), (90, "hopper"), (80, "ampere"))
        return next((name for least, name in known if capability >= least), "volta")

    @property
    def column(self) -> int:
        """One node, two, or more."""
        return min(self.hardware.nodes, 3) - 1

    def cap(self, name: str, row: str | None = None) -> float:
        """What a cap allows, GB/s."""
        return self.constants.cap[name][row or self.row][self.column]

    def table(self, collective: str) -> Table:
        """(algorithm, protocol) -> rate, of all that work here."""
        return {(a, p): rate for a, p, rate in self._rates(collective) if rate.bandwidth > 0}

    def time_us(self, collective: str, algorithm: str, protocol: str, size_bytes: int, rate: Rate) -> float:
        """How long it is taken to last, us."""
        latency, bandwidth = (
            rate.latency,
            rate.bandwidth * self._correction(collective, algorithm, protocol, size_bytes),
        )
        ring = algorithm == "ring" and protocol == SIMPLE and self.hardware.nodes > 1 and collective == "allreduce"
        if ring and size_bytes // (self.channels * self.hardware.ranks) >= RING_PLATEAU:
            latency *= self.constants.plateau["old" if self.hardware.capability < 80 else "new"]
        return latency + size_bytes / (1000 * bandwidth)

    def _correction(self, collective: str, algorithm: str, protocol: str, size_bytes: int) -> float:
        newest = self.constants.tree_correction_nvls_tree and self.hardware.capability >= 100
        corrected = ("tree", "nvls_tree") if newest and self.hardware.host in ("intel", "amd") else ("tree",)
        if algorithm not in corrected or collective != "allreduce":
            return 1.0
        factors, at = self.constants.tree_correction[protocol], size_bytes.bit_length() - 1 - SMALLEST
        return factors[at] if 0 <= at < len(factors) else 1.0

    def _rates(self, collective: str) -> Iterator[tuple[str, str, Rate]]:
        for algorithm in SERVED[collective]:
            if algorithm not in self.graphs or not self._is_there(collective, algorithm):
                continue
            for protocol in (SIMPLE,) if algorithm in SIMPLE_ONLY else PROTOCOLS:
                if protocol != LL128 or self._has_lines(algorithm):
                    bandwidth = self._bus(collective, algorithm, protocol) * self._share(collective, algorithm)
                    yield algorithm, protocol, Rate(self._latency(collective, algorithm, protocol), bandwidth)

    def _is_there(self, collective: str, algorithm: str) -> bool:
        """Whether the library takes an algorithm into account here."""
        hardware, constants = self.hardware, self.constants
        gathers, many = collective != "allreduce", hardware.nodes > 1
        sharp = "collnet" in hardware.modes
        if algorithm == "pat":
            return constants.pat > 0 and hardware.gpus == 1 and many
        if algorithm == "nvls":
            fits = not gathers or (constants.nvls_gathers and hardware.gpus <= constants.nvls_heads)
            return fits and (sharp or not many) and not (gathers and many and hardware.nics < hardware.gpus)
        if algorithm == "nvls_tree":
            return many
        if algorithm == "collnet_direct":
            heads = not gathers or (constants.nvls_gathers and hardware.nics >= hardware.gpus)
            return hardware.switched and hardware.gpus <= 8 and heads
        return True

    def _has_lines(self, algorithm: str) -> bool:
        """Whether LL128 may be used: only where stores of 128 bytes arrive whole."""
        graph, known = self.graphs[algorithm], self.constants.line_generations
        new = f"sm{self.hardware.capability}" in known if known else self.hardware.capability >= 70
        # `far` is of the GPU nearest to a NIC: beyond a PCIe switch, no peer leads around the processor.
        over_c2c = self.constants.lines_over_c2c and self.hardware.host == "arm" and self.hardware.capability >= 90
        reached = self.hardware.nodes == 1 or PATHS.index(graph.far) <= PATHS.index(PHB if over_c2c else PXB)
        return new and LL128 in self.hardware.modes and graph.near == NVL and reached

    def _bus(self, collective: str, algorithm: str, protocol: str) -> float:
        """What all channels carry together, GB/s."""
        graph, constants, nodes = self.graphs[algorithm], self.constants, self.hardware.nodes
        collnet = algorithm in ("collnet_direct", "collnet_chain")
        bus = graph.channels * (graph.intra if nodes <= 2 or collnet else graph.inter)
        if algorithm == "ring" and protocol == LL:
            reduces = nodes > 1 or collective in ("allreduce", "reduce")
            share = constants.ring_low_latency if reduces else constants.ring_low_latency_else
            return min(self._low_latency_cap, bus * share)
        if algorithm == "ring" and protocol == LL128:
            share = constants.ring_line_one_gpu if self.hardware.gpus == 1 else constants.ring_line
            return min(bus * share, graph.channels * self.cap("ring_line"))
        if algorithm == "tree":
            return self._tree_bus(graph, protocol, bus)
        if algorithm in ("nvls", "nvls_tree"):
            return graph.channels * self._switch(collective, algorithm, graph)
        if algorithm == "collnet_direct":
            return self._direct_bus(collective, graph, bus)
        return bus * constants.pat if algorithm == "pat" else bus

    @property
    def _low_latency_cap(self) -> float:
        host = "ampere" if self.hardware.host == "amd" else "volta"
        return self.cap("low_latency", self.row if self.hardware.nodes == 1 else host)

    def _tree_bus(self, graph: Graph, protocol: str, bus: float) -> float:
        bus = min(0.92 * bus, graph.channels * self.cap("tree"))
        if protocol == LL:
            bus = min(bus * self.constants.tree_low_latency, self._low_latency_cap)
        if protocol == LL128:
            share = 7 / 9 if self.hardware.nodes == 1 else 120 / 128
            bus = min(bus * share, graph.channels * self.cap("tree_line"))
        return bus * 0.85 if graph.simple_tree else bus

    def _switch(self, collective: str, algorithm: str, graph: Graph) -> float:
        """What a head that reduces in the switch carries, GB/s."""
        hardware, way, alone = self.hardware, self.constants.nvls, 1 - 1 / self.hardware.gpus
        if way == "links":
            return graph.intra if hardware.nodes <= 2 else graph.inter
        if way == "efficiency":
            return self._efficient(collective, algorithm, graph)
        if algorithm == "nvls_tree":
            return min(graph.intra, graph.inter if hardware.nodes <= 2 else graph.inter / 2)
        if collective != "allreduce" and way == "slower, gathers by share":
            return min(graph.intra * alone, graph.inter * 0.9)
        return min(graph.intra, graph.inter)

    def _efficient(self, collective: str, algorithm: str, graph: Graph) -> float:
        hardware = self.hardware
        inside = graph.intra * self.constants.efficiency.get(self.row, 0.0) * (graph.channels - 1) / graph.channels
        inside *= 2 if collective == "allreduce" else 1 - 1 / hardware.gpus
        if algorithm == "nvls":
            return min(inside, graph.inter)
        return min(inside, graph.inter * (2 if hardware.nodes <= 2 else 1), self.cap("nvls_tree"))

    def _direct_bus(self, collective: str, graph: Graph, bus: float) -> float:
        gpus = self.hardware.gpus
        if collective != "allreduce":
            return gpus * min(graph.intra, graph.inter * 0.9)
        devices = gpus / graph.channels  # for each head
        return bus / (devices - (devices - 1) / 2) * (0.85 if self.hardware.capability >= 90 else 1.0)

    def _share(self, collective: str, algorithm: str) -> float:
        """Bytes of the vector for each byte that a link carries."""
        if collective in ("allgather", "reduce_scatter") and algorithm in self.constants.free_gathers:
            return 1.0
        switch = algorithm in ("nvls", "nvls_tree")
        if algorithm == "ring" or (switch and self.constants.nvls == "efficiency"):
            return self.hardware.ranks / self._steps(collective)
        if algorithm == "nvls_tree" and self.constants.nvls == "links":
            return 0.70 * self.hardware.nodes / (2 * (self.hardware.nodes - 1))
        return 5 / 6 if switch else 0.5

    def _steps(self, collective: str) -> int:
        ranks = self.hardware.ranks
        return {"allreduce": 2 * (ranks - 1), "broadcast": ranks, "reduce": ranks}.get(collective, ranks - 1)

    def _latency(self, collective: str, algorithm: str, protocol: str) -> float:
        """What it takes before the rate counts, us."""
        constants, hardware, at = self.constants, self.hardware, PROTOCOLS.index(protocol)
        base = constants.base[algorithm][at]
        hop = (constants.nvlink if self.graphs[algorithm].near == NVL else constants.pcie)[algorithm][at]
        one = hardware.gpus == 1 and constants.one_gpu_tree_latency
        net = constants.network["tree" if one else algorithm][at]
        levels, others = int(math.log2(hardware.nodes)), hardware.gpus - 1
        if algorithm == "ring":
            return base + self._ring_latency(collective, protocol, hop, net)
        if algorithm == "tree":
            return base + 2 * (others * hop + levels * net)
        if algorithm == "collnet_direct":
            return base + 2 * (min(1, others) * hop + others * constants.arity) + net
        if algorithm == "collnet_chain":
            return base + 2 * others * hop + net
        if algorithm == "nvls":
            return base + hop + (net if hardware.nodes > 1 else 0)
        if algorithm == "nvls_tree":
            old = constants.nvls == "links"
            return base + (2 * (hardware.nodes - 1) * net if old else hop + 2 * levels * net)
        return base + levels * net / 3.5 + hardware.ranks * 2.8

    def _ring_latency(self, collective: str, protocol: str, hop: float, net: float) -> float:
        constants, nodes, at = self.constants, self.hardware.nodes, PROTOCOLS.index(protocol)
        steps = self._steps(collective)
        if collective in ("broadcast", "reduce"):
            if self.graphs["ring"].channels == 1 or nodes == 1:  # all channels are alike, and chunks follow each other
                return hop if nodes == 1 else constants.network["ring"][at]
            return steps * constants.network["tree" if protocol == SIMPLE else "ring"][at]
        crossing = 0 if nodes == 1 else nodes - 1
        if collective == "allreduce" and nodes > 1:
            crossing = 2 * nodes if constants.ring_steps == "nodes" else 2 * (nodes - 1)
        posted = self.post_us * chunks().posts[protocol] if nodes > 1 else 0.0
        return (steps - crossing) * max(hop, posted) + crossing * net


def power_of_two(count: int) -> int:
    """The power of two that is not below `count`."""
    return 1 << max(0, count - 1).bit_length()
