"""What can be slow in a described machine, and which hosts its ranks are on.

    edge      `leaf 3 - spine 1`, both ways, or one way of it, `leaf 3 -> spine 1`
    node      `node 5 NIC 2`, a switch or an endpoint: all of its links
    host      `node 5`: everything that joins it to the network, as where its processor or its slot is slow

Links on which the route of a message is not certain, because the network chooses among equal ones, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkwright import _native
from linkwright.base.errors import UsageError
from linkwright.machines.variant import totals

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Pair = tuple[int, int]
_EQUAL = 0.01
MOST_RANKS = 4096  # tables of routes of more take minutes


@dataclass(frozen=True)
class Component:
    """A part of the machine.

    Attributes:
        name: as answers call it.
        degrade: names of `--degrade` that slow it.
        links: its links, numbered as in a simulation.
        one_way: whether only one direction of an edge is meant; a machine file slows both.
    """

    name: str
    degrade: tuple[str, ...]
    links: frozenset[int]
    one_way: bool = False


class HostLayout:
    """The hosts, links and parts of a machine.

    Args:
        machine: with a network of links.

    Raises:
        UsageError: the machine has no links whose rates could be told apart, too many ranks, or no size.
    """

    def __init__(self, machine: _native.Machine) -> None:
        network = machine.network()
        if network is None or not network["edges"]["a"] or machine.ranks < 2:
            raise UsageError(
                f"{machine.name}: describes no links between two or more endpoints, so none can be slow; name a "
                "machine whose fabric is `flow`, with --nodes for a cluster"
            )
        if machine.ranks > MOST_RANKS:
            raise UsageError(f"{machine.name}: {machine.ranks:,} ranks; at most {MOST_RANKS:,} can be searched")
        self.machine, self.name = machine, machine.name
        self.nodes: list[str] = network["nodes"]["name"]
        self.kinds = network["nodes"]["kind"]
        self.groups = network["nodes"]["group"]
        self.ends = list(zip(network["links"]["a"], network["links"]["b"], strict=True))
        self.edges = list(zip(network["edges"]["a"], network["edges"]["b"], strict=True))
        self.hosts, of = _hosts(machine, network["groups"], self.groups[: machine.ranks], self.nodes)
        self.ranks_of: list[list[int]] = [[] for _ in self.hosts]
        for rank, host in enumerate(of):
            self.ranks_of[host].append(rank)
        if len({len(ranks) for ranks in self.ranks_of}) > 1:
            raise UsageError(f"{machine.name}: its hosts have different numbers of ranks; describe equal ones")
        self.each = len(self.ranks_of[0])
        self.host_of = [0] * machine.ranks
        for host, ranks in enumerate(self.ranks_of):
            for rank in ranks:
                self.host_of[rank] = host

    def routes(self, pairs: Sequence[Pair]) -> RouteTable:
        """The links of some pairs of ranks."""
        found = self.machine.routes(list(pairs))
        first = found["first"].astype(np.int64)
        pair = np.repeat(np.arange(len(pairs)), np.diff(first))
        link, times = found["link"].astype(np.int64), found["times"].astype(np.float64)
        count = len(found["bytes_per_s"])
        if found["chooses"].any():
            inner = np.zeros(count, bool)
            inner[[at for at, ends in enumerate(self.ends) if at < count and self._is_inner(ends)]] = True
            keep = ~((found["chooses"][pair] > 0) & inner[link])
            pair, link, times = pair[keep], link[keep], times[keep]
        alone, rates = found["rate"].astype(np.float64), found["bytes_per_s"].astype(np.float64)
        narrowest = np.full(len(pairs), np.inf)
        np.minimum.at(narrowest, pair, rates[link] / times)
        # Where links at half their rate halve a message's, software gets a share of the link; otherwise it has a rate.
        scaled = np.abs(self._halved().routes(list(pairs))["rate"] / np.maximum(alone, 1) - 0.5) < _EQUAL
        efficiency = np.where(scaled & np.isfinite(narrowest), np.minimum(1.0, alone / narrowest), 1.0)
        return RouteTable(pair, link, times, alone, efficiency, rates, bool(found["chooses"].any()))

    def _halved(self) -> _native.Machine:
        """The machine with half the rate of every link."""
        rates = [row for row in self.machine.numbers() if re.fullmatch(r"fabric\.links\..+\.bandwidth", row["key"])]
        return self.machine.with_values([(row["key"], f"{float(row['value']) / 2:.12g}") for row in rates])

    def _is_inner(self, ends: tuple[int, int]) -> bool:
        """Whether a link joins two switches that belong to no host."""
        return all(end < 0 or (self.kinds[end] == "switch" and self.groups[end] < 0) for end in ends)

    def parts(self) -> Iterator[Component]:
        """Everything that can be slow, the smallest parts first."""
        at: dict[Pair, list[int]] = {}
        of_node: dict[int, list[int]] = {}
        of_host: dict[int, list[int]] = {}
        for link, (a, b) in enumerate(self.ends):
            if a < 0 or b < 0 or a == b:
                continue
            at.setdefault((a, b), []).append(link)
            for node, other in ((a, b), (b, a)):
                of_node.setdefault(node, []).append(link)
                if self.groups[node] >= 0 and self.groups[other] != self.groups[node]:
                    of_host.setdefault(self.groups[node], []).append(link)
        for a, b in dict.fromkeys(self.edges):
            there, back = at.get((a, b), []), at.get((b, a), [])
            name = f"{self.nodes[a]} - {self.nodes[b]}"
            yield Component(name, (name,), frozenset(there + back))
            for (x, y), links in (((a, b), there), ((b, a), back)):
                yield Component(f"{self.nodes[x]} -> {self.nodes[y]}", (name,), frozenset(links), one_way=True)
        for node, links in of_node.items():
            yield Component(self.nodes[node], (self.nodes[node],), frozenset(links))
        for host, links in of_host.items():
            ends = sorted({node for link in links for node in self.ends[link] if self.groups[node] == host})
            yield Component(self.hosts[host], tuple(self.nodes[node] for node in ends), frozenset(links))


def _hosts(
    machine: _native.Machine, groups: Sequence[str], group_of: Sequence[int], nodes: Sequence[str]
) -> tuple[list[str], Sequence[int]]:
    """The hosts, and the host of each rank: nodes of a cluster, hosts or nodes that the file states, or each rank."""
    if groups:
        return list(groups), group_of
    levels = totals(machine)
    count = machine.hosts or next((count for name, count in levels if name == "node"), None)
    if count is None:
        return list(nodes[: machine.ranks]), range(machine.ranks)
    each = machine.ranks // count
    of = [rank // each for rank in range(machine.ranks)]
    level = next((name for name, there in levels if there == count), "host")
    return [machine.name] if count == 1 else [f"{level} {at}" for at in range(count)], of


@dataclass(frozen=True)
class RouteTable:
    """Which links some pairs cross.

    Attributes:
        pair, link, times: one entry for each use: the pair, the link, how often a byte crosses it.
        alone: of each pair, bytes per second of a message alone; 0 if it has no route.
        efficiency: of each pair, the share of its narrowest link that a message gets.
        rates: of each link, in bytes per second.
        chooses: whether some routes are uncertain between switches.
    """

    pair: Ints
    link: Ints
    times: Floats
    alone: Floats
    efficiency: Floats
    rates: Floats
    chooses: bool
