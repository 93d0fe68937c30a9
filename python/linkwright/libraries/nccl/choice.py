"""What NCCL chooses for one collective and size: algorithm, protocol, channels, threads and chunks.

    tuner(version, hardware)                    what it reckons with on a machine, once
      .choose(collective, bytes)   ->  Choice   the fastest by its own prediction, and what it cuts

Small messages take fewer channels, then fewer threads. Chunks are what a channel hands over at once; a `slice` of one
is on its way while the next is being written.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from linkwright.base.errors import WaivedError, unknown
from linkwright.libraries.nccl.constants import LL, LL128, PROTOCOLS, SIMPLE, chunks, constants
from linkwright.libraries.nccl.graphs import Graph, channels, graphs
from linkwright.libraries.nccl.hardware import Hardware
from linkwright.libraries.nccl.rates import SERVED, Rate, Table, Tuner, power_of_two

LEAST_THREADS = 128
KIB = 1 << 10
TUNERS = 256
MOST_THREADS = 640


@dataclass(frozen=True)
class Choice:
    """One collective as NCCL would do it."""

    algorithm: str  # `ring`, `tree`, `nvls`, `nvls_tree`, `collnet_direct`, `collnet_chain`, `pat`, `p2p`
    protocol: str  # `ll`, `ll128` or `simple`
    channels: int  # that take part
    threads: int  # of each
    chunk_bytes: int  # of data that a channel hands over at once
    slices: int  # of a chunk
    predicted_us: float = field(compare=False)  # by the library's own model; not what a simulation gives
    post_us: float = 0.0  # for the host to hand all messages to the network, one after the other
    across: float = 0.0  # GB/s that all channels, or those of a pair, carry from node to node; 0: links alone decide
    heads: int = 1  # GPUs that each have a part of the vector combined in the switch

    @property
    def words(self) -> str:
        """What was chosen, such as `Ring LL, 24 channels`."""
        how = "" if self.algorithm in _SWITCH else f" {SHOWN[self.protocol]}"
        return f"{SHOWN[self.algorithm]}{how}, {self.channels} channel{'s' if self.channels > 1 else ''}"


SHOWN = {
    "ring": "Ring", "tree": "Tree", "nvls": "NVLS", "nvls_tree": "NVLSTree", "collnet_direct": "CollNetDirect",
    "collnet_chain": "CollNetChain", "pat": "PAT", "p2p": "send and receive", LL: "LL", LL128: "LL128",
    SIMPLE: "Simple",
}  # fmt: skip
_SWITCH = ("nvls", "nvls_tree", "collnet_direct", "collnet_chain", "p2p")


class Library(Protocol):
    """What a version of a library reckons with on one machine."""

    @property
    def version(self) -> str:
        """Of the documented model."""

    @property
    def hardware(self) -> Hardware:
        """What it sees of the machine."""

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """The channels of each algorithm."""

    @property
    def channels(self) -> int:
        """Channels of a kernel at most."""

    @property
    def slow_bus(self) -> float:
        """Up to what a ring needs fewer threads, GB/s."""

    @property
    def peer_links(self) -> int:
        """Links of a GPU to the others."""

    @property
    def nvls_channels(self) -> int:
        """Channels that reduce in the switch."""

    @property
    def post_us(self) -> float:
        """What the host takes to hand a message to the network."""

    @property
    def halves_trees(self) -> bool:
        """Whether chunks of Simple trees become shorter with the vector."""

    @property
    def sends(self) -> tuple[int, float]:
        """Channels of a pair of ranks over the network, and what one of them carries, GB/s."""

    def most_across(self, algorithm: str, protocol: str) -> float:
        """What threads of all channels together carry from node to node, GB/s; 0 if links alone decide."""

    def table(self, collective: str) -> Table:
        """(algorithm, protocol) -> rate."""

    def time_us(self, collective: str, algorithm: str, protocol: str, size_bytes: int, rate: Rate) -> float:
        """What it predicts, us."""


class Chooser:
    """A version of a library on one machine.

    Args:
        tuner: what it reckons with.
        served: the algorithms of each collective.
        most_threads: of a channel.
    """

    def __init__(self, tuner: Library, served: Mapping[str, Sequence[str]], most_threads: int) -> None:
        self.tuner, self.served, self.most_threads = tuner, served, most_threads
        self.table = functools.cache(tuner.table)

    def choose(
        self, collective: str, size_bytes: int, algorithm: str | None = None, protocol: str | None = None
    ) -> Choice:
        """The fastest by the library's prediction, among those asked for."""
        if collective not in self.served:
            return self.send_and_receive(size_bytes)
        times = self.predicted(collective, size_bytes, algorithm, protocol)
        (algorithm, protocol), time = min(times.items(), key=lambda entry: entry[1])
        return self._cut(collective, algorithm, protocol, size_bytes, time)

    def predicted(
        self, collective: str, size_bytes: int, algorithm: str | None = None, protocol: str | None = None
    ) -> dict[tuple[str, str], float]:
        """(algorithm, protocol) -> time in us, of all that work here and are asked for."""
        wanted = self._wanted(self.table(collective), collective, algorithm, protocol)
        time = self.tuner.time_us
        return {key: time(collective, *key, size_bytes, rate) for key, rate in wanted}

    def _wanted(
        self, table: Table, collective: str, algorithm: str | None, protocol: str | None
    ) -> Sequence[tuple[tuple[str, str], Rate]]:
        if algorithm is not None and algorithm not in self.served[collective]:
            raise unknown(f"algorithm of the library for {collective}", algorithm, self.served[collective])
        if protocol is not None and protocol not in PROTOCOLS:
            raise unknown("protocol", protocol, PROTOCOLS)
        found = [
            (key, rate) for key, rate in table.items() if algorithm in (None, key[0]) and protocol in (None, key[1])
        ]
        if not found:
            there = ", ".join(dict.fromkeys(f"{a}/{p}" for a, p in table))
            asked = "/".join(filter(None, (algorithm, protocol)))
            raise WaivedError(f"{asked}: version {self.tuner.version} does not use it here; it can use {there}")
        return found

    def _cut(self, collective: str, algorithm: str, protocol: str, size_bytes: int, time_us: float) -> Choice:
        count, threads = self._reduced(algorithm, protocol, size_bytes)
        chunk, slices = self._chunk(collective, algorithm, protocol, size_bytes, count)
        heads = self._heads if algorithm.startswith("nvls") else 1
        across = self.tuner.most_across(algorithm, protocol) if self.tuner.hardware.nodes > 1 else 0.0
        return Choice(algorithm, protocol, count, threads, chunk, slices, time_us, across=across, heads=heads)

    def _reduced(self, algorithm: str, protocol: str, size_bytes: int) -> tuple[int, int]:
        """Channels, and threads of each: as many as have enough to do."""
        known, ranks = chunks(), self.tuner.hardware.ranks
        count = self.tuner.channels
        if algorithm in ("nvls", "nvls_tree"):
            return self.tuner.nvls_channels, known.collnet_threads
        collnet = algorithm.startswith("collnet")
        threads = known.collnet_threads if collnet else known.threads[protocol]
        ring = self.tuner.graphs["ring"]
        if algorithm == "ring" and protocol == SIMPLE and ring.bus <= self.tuner.slow_bus:
            threads = known.slow_ring_threads
        threads = min(threads, self.most_threads)
        each = known.bytes_per_thread["collnet" if collnet else protocol]
        each *= ranks if (algorithm, protocol) == ("ring", LL) else 1
        if algorithm == "collnet_direct":
            each *= self.tuner.graphs[algorithm].channels
        count = max(1, min(count, size_bytes // (threads * each)))
        while size_bytes < count * threads * each and threads % LEAST_THREADS == 0:
            threads //= 2
        return count, threads

    def _chunk(self, collective: str, algorithm: str, protocol: str, size_bytes: int, count: int) -> tuple[int, int]:
        """Bytes of data in a chunk, and its slices."""
        known, hardware = chunks(), self.tuner.hardware
        step = int(known.buffer[protocol] // known.buffer_steps * known.payload[protocol])
        if algorithm == "ring":
            whole = collective in ("broadcast", "reduce") or protocol != SIMPLE
            return (step, 1) if whole else (step * known.ring_steps, 2)
        if algorithm == "nvls":
            return self._switch_chunk(size_bytes, count), 1
        if algorithm == "nvls_tree":
            most = 64 * KIB if hardware.nodes >= 4 else known.nvls
            return _halved(most, size_bytes, count * self._heads, ((4, 64), (1, 32))), 1
        if algorithm == "collnet_direct":
            return _halved(128 * KIB, size_bytes, count * self._heads, ((64, 128), (8, 64), (8, 32))), 1
        if algorithm == "collnet_chain":
            return _halved(256 * KIB, size_bytes, count, ((64, 128), (8, 64), (1, 32))), 1
        if algorithm == "tree" and protocol == LL128:
            steps = 1 + int(math.log2(hardware.nodes)) + 0.1 * hardware.gpus
            rules = ((steps * 64 / hardware.gpus, 128), (steps * 16 / hardware.gpus, 32))
            return _halved(step, size_bytes, count, rules), 1
        if algorithm == "tree" and protocol == SIMPLE and self.tuner.halves_trees:
            # NVIDIA/nccl v2.19.4-1 (88d44d77): src/enqueue.cc, by the depth that src/graph/connect.cc gives a tree.
            depth = hardware.gpus - 1 + int(math.log2(hardware.nodes))
            return _halved(step, size_bytes, count, ((8 * depth, 128), (4 * depth, 64), (depth, 32))), 1
        if algorithm == "pat":
            return _halved(step, size_bytes, count, ((32 if collective == "allgather" else 16, 64),)), 1
        return step, 1

    @property
    def _heads(self) -> int:
        return self.tuner.graphs["nvls" if "nvls" in self.tuner.graphs else "collnet_direct"].channels

    def _switch_chunk(self, size_bytes: int, count: int) -> int:
        known = chunks()
        rate = self.table("allreduce").get(("nvls", SIMPLE))
        slow = self.tuner.hardware.nodes > 1 and (rate is None or rate.bandwidth < known.nvls_slow_below)
        chunk = known.nvls_slow if slow else known.nvls
        for times, least in ((64, 64 * KIB), (8, 32 * KIB), (2, 16 * KIB)):
            if chunk > least and size_bytes < times * count * self._heads * chunk:
                chunk = least
        return chunk

    def send_and_receive(self, size_bytes: int) -> Choice:
        """Grouped sends and receives, such as an alltoall: chunks by the farthest way, channels by the nearest link."""
        hardware, known = self.tuner.hardware, chunks()
        way = "network" if hardware.nodes > 1 else "nvlink" if hardware.linked else "pcie"
        protocol = LL if size_bytes // hardware.ranks <= known.p2p_low_latency and hardware.nodes == 1 else SIMPLE
        posted = (hardware.ranks - hardware.gpus) * self.tuner.post_us * known.posts[protocol]
        channels, threads = self.channels_per_peer, known.threads[SIMPLE]
        across = channels * self.tuner.sends[1] if hardware.nodes > 1 else 0.0
        return Choice("p2p", protocol, channels, threads, known.p2p[way], 1, 0.0, posted, across)

    @property
    def channels_per_peer(self) -> int:
        """How many channels one pair of ranks uses: two for each link between them, a power of two."""
        hardware, most = self.tuner.hardware, self.tuner.channels
        if hardware.nodes > 1:
            return self.tuner.sends[0]
        if not hardware.linked:
            return 2
        links = self.tuner.peer_links
        return power_of_two(min(most, 2 * (links if hardware.switched else max(1, links // (hardware.gpus - 1)))))


def _halved(chunk: int, size_bytes: int, at_once: int, rules: Sequence[tuple[float, int]]) -> int:
    """A chunk, halved while the vector has fewer of them than `times` and it is larger than `least` KiB."""
    for times, least in rules:
        while chunk > least * KIB and size_bytes < times * at_once * chunk:
            chunk //= 2
    return chunk


@functools.lru_cache(TUNERS)
def chooser(version: str, hardware: Hardware) -> Chooser:
    """NCCL of this version on this hardware."""
    known = constants(version)
    found = graphs(known, hardware)
    return Chooser(Tuner(known, hardware, found, channels(known, hardware, found)), SERVED, MOST_THREADS)
