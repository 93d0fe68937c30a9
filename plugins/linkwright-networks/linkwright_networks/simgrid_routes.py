"""Turn the hosts in zones of a SimGrid platform into a graph, with the routes that SimGrid composes.

The zone decides the route between two of its hosts: its table (`Full`), the fewest links (`Floyd`, `Dijkstra`), or up,
backbone and down (`Cluster`). A route between hosts in different zones goes to the gateway of the first host's zone,
along the route between the two zones inside their nearest common zone, and on from the gateway of the other. A bypass
takes precedence.

    A --- l1 --- backbone === l2 === B     a SHARED link is a node, whose throughput both directions of all routes
                                           share; a SPLITDUPLEX link is an edge; joints carry half the latency of
                                           the nodes at their ends and limit nothing

A FATPIPE is a node without a throughput, because it limits each message on its own: if it is the slowest link, the pair
gets its rate. The file lists a pair only if its route is not the unique shortest path through this graph.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from decimal import Decimal

from linkwright.network_api import Detour, Edge, Element, FileError, Links, Number, Wiring, bounded, distinct

from .simgrid_clusters import SOURCE, begun
from .simgrid_units import as_rate, as_time
from .simgrid_zones import MANY, MOST_HOSTS, Hop, Platform, Resource, Zone

MOST_WAY = 50  # links of a route, each of which may be two of its nodes
MOST_STEPS = 40  # nested zones and chained gateways
MOST_LISTED = 2000  # pairs with a route of their own
JOINT = Number(Decimal(10**6), "GB/s", "derived", f"{SOURCE}: a joint between links, which limits nothing")

Way = tuple[Resource, ...]


def wired(elements: list[Element], file: str) -> Wiring:
    """Build the machine of a platform of several zones, or of hosts and routes."""
    platform = Platform(file)
    root = Zone("of the platform", "Full", None, file)
    for element in elements:
        platform.add(element, root)
    hosts = distinct(platform.hosts, file, "hosts")
    if len(hosts) < 2:
        raise FileError(f"{file}: describes {len(hosts)} hosts; a machine has at least two")
    bounded(len(hosts), MOST_HOSTS, file, MANY)
    graph = _Graph(begun(file, hosts, f"{len(hosts)} hosts of zones with routes"), file)
    routes = _Routes(platform)
    for a, shown in zip(platform.hosts, hosts, strict=True):
        for b, other in zip(platform.hosts, hosts, strict=True):
            if a != b:
                graph.add((shown, other), routes.of(a, b))
    graph.finish()
    return graph.wiring


class _Graph:
    """The nodes and edges of all links and joints that routes cross."""

    def __init__(self, wiring: Wiring, file: str):
        self.wiring, self.file = wiring, file
        self.latency: dict[Edge, Decimal] = {}  # of joints
        self.ends: dict[str, tuple[str, str]] = {}  # of links
        self.taken = set(wiring.endpoints)
        self.near: dict[str, set[str]] = defaultdict(set)
        self.ways: dict[Edge, tuple[list[str], Decimal | None]] = {}

    def add(self, pair: Edge, way: Way) -> None:
        """Add the route of one ordered pair."""
        if len(way) > MOST_WAY:
            raise FileError(
                f"{self.file}: the route from {pair[0]} to {pair[1]} has {len(way)} links; at most {MOST_WAY} fit"
            )
        nodes, delay = [pair[0]], Decimal(0)
        for link in way:
            enter, leave = self.link(link)
            half = link.latency / 2 if enter == leave else Decimal(0)
            self.join(nodes[-1], enter, delay + half)
            nodes += [enter] if enter == leave else [enter, leave]
            delay = half
        self.join(nodes[-1], pair[1], delay)
        alone = min((link.rate for link in way if link.policy == "FATPIPE" and link.rate), default=None)
        shared = min((link.rate for link in way if link.policy != "FATPIPE"), default=None)
        limit = alone if alone is not None and (shared is None or alone < shared) else None
        self.ways[pair] = [*nodes, pair[1]], limit

    def link(self, link: Resource) -> tuple[str, str]:
        """Return the nodes where a route enters and leaves a link; they are made when the link is first used."""
        if link.link not in self.ends:
            split = link.policy == "SPLITDUPLEX"
            wanted = (f"{link.link} up", f"{link.link} down") if split else (f"link {link.link}",)
            made = distinct(wanted, self.file, "ends of links")
            if self.taken & set(made):
                raise FileError(f"{self.file}: link {link.link[:80]} is named like another link or host; rename it")
            self.taken |= set(made)
            self.wiring.switches += made
            self.ends[link.link] = (made[0], made[-1])
            if split:
                self.duplex(link, (made[0], made[1]))
            elif link.policy == "SHARED":
                source = f"{SOURCE}: twice the bandwidth, because what passes is received and sent"
                self.wiring.throughput[made[0]] = as_rate(2 * link.rate, source, "derived")
        first, last = self.ends[link.link]
        return (last, first) if link.direction == "DOWN" else (first, last)

    def duplex(self, link: Resource, ends: Edge) -> None:
        """Add the edge of a SPLITDUPLEX link."""
        rate, latency = as_rate(link.rate, f"{SOURCE}: bandwidth"), as_time(link.latency, f"{SOURCE}: latency")
        name = f"{rate.value.normalize():f} {rate.unit.replace('/', '_')} {latency.value.normalize():f} {latency.unit}"
        self.wiring.links.setdefault(name, Links(rate, latency, SOURCE)).edges.append(ends)
        self.near[ends[0]].add(ends[1])
        self.near[ends[1]].add(ends[0])

    def join(self, a: str, b: str, latency: Decimal) -> None:
        """Add a joint between links, or between a link and a host."""
        if (a, b) in self.latency or (b, a) in self.latency or b in self.near[a]:
            return
        self.latency[a, b] = latency
        self.near[a].add(b)
        self.near[b].add(a)

    def finish(self) -> None:
        """Add the edges of joints, and the routes that differ from the shortest path."""
        for edge, latency in self.latency.items():
            delay = as_time(latency, f"{SOURCE}: half of the latency of the links joined")
            name = f"joint {delay.value.normalize():f} {delay.unit}"
            self.wiring.links.setdefault(name, Links(JOINT, delay, SOURCE)).edges.append(edge)
        for source in self.wiring.endpoints:
            length, ways = self.shortest(source)
            for target in self.wiring.endpoints:
                if target == source:
                    continue
                nodes, limit = self.ways[source, target]
                if limit is None and ways[target] == 1 and length[target] == len(nodes) - 1:
                    continue
                bounded(len(self.wiring.routes) + 1, MOST_LISTED, self.file, "routes that are no shortest ways")
                rate = as_rate(limit, f"{SOURCE}: bandwidth of a FATPIPE, for each message") if limit else None
                self.wiring.routes[source, target] = Detour(tuple(nodes[1:-1]), rate)

    def shortest(self, source: str) -> tuple[dict[str, int], dict[str, int]]:
        """Count the edges from `source` to each node, and the shortest paths, none of which passes through a host."""
        length, ways = {source: 0}, defaultdict(int, {source: 1})
        hosts, waiting = set(self.wiring.endpoints), deque([source])
        while waiting:
            at = waiting.popleft()
            for other in self.near[at] if at == source or at not in hosts else ():
                if other not in length:
                    length[other] = length[at] + 1
                    waiting.append(other)
                if length[other] == length[at] + 1:
                    ways[other] += ways[at]
        return length, ways


class _Routes:
    """The links between hosts, routers and zones."""

    def __init__(self, platform: Platform):
        self.platform, self.file = platform, platform.file
        self.known: dict[tuple[str, str], Way] = {}
        self.nearest: dict[tuple[str, str], dict[str, Hop]] = {}

    def of(self, a: str, b: str, depth: int = 0) -> Way:
        """Return the route between any two hosts or routers."""
        if (a, b) not in self.known:
            if depth > MOST_STEPS:
                raise FileError(f"{self.file}: the route from {a[:80]} to {b[:80]} leads in a circle through gateways")
            self.known[a, b] = self._composed(a, b, depth + 1) if a != b else ()
        return self.known[a, b]

    def _composed(self, a: str, b: str, depth: int) -> Way:
        for end in (a, b):
            if end not in self.platform.zone_of:  # a cluster has no gateways into zones inside it
                raise FileError(
                    f"{self.file}: a route ends at zone {end[:80]}, not at a host or router of it; put the zone "
                    "beside its cluster, and give the way between them a zoneRoute"
                )
        near, far = self.platform.zone_of[a].path(), self.platform.zone_of[b].path()
        common = next(zone for zone in near if zone in far)
        ends_a = [a, *(zone.name for zone in near[: near.index(common)])]
        ends_b = [b, *(zone.name for zone in far[: far.index(common)])]
        if common.bypasses:
            for reach in range(max(len(ends_a), len(ends_b))):
                pairs = [(i, j) for k in range(reach) for i, j in ((k, reach), (reach, k))] + [(reach, reach)]
                for i, j in pairs:
                    hop = common.bypasses.get((ends_a[i], ends_b[j])) if i < len(ends_a) and j < len(ends_b) else None
                    if hop:
                        return self._through([hop], a, b, depth)
        return self._through(self._local(common, ends_a[-1], ends_b[-1]), a, b, depth)

    def _through(self, hops: list[Hop], a: str, b: str, depth: int) -> Way:
        """From `a` through routes between gateways to `b`."""
        way: Way = ()
        at = a
        for hop in hops:
            way += self.of(at, hop.source, depth) + hop.links
            at = hop.target
            if len(way) > MOST_WAY:
                raise FileError(f"{self.file}: the route from {a[:80]} to {b[:80]} has more than {MOST_WAY} links")
        return way + self.of(at, b, depth)

    def _local(self, zone: Zone, a: str, b: str) -> list[Hop]:
        """The routes from `a` to `b`, both in `zone`."""
        if zone.routing == "Cluster":
            return [self._star(zone, a, b)]
        if zone.routing == "Full":
            found = [zone.hops[a, b]] if (a, b) in zone.hops else None
        else:
            found = self._fewest(zone, a).get(b)
        if found is None:
            raise FileError(
                f"{self.file}: no route from {a[:80]} to {b[:80]} in zone {zone.name[:80]} ({zone.routing}); add one"
            )
        return found

    def _star(self, zone: Zone, a: str, b: str) -> Hop:
        """Return the hop up from `a`, over the backbone and down to `b`; a router has neither up nor down."""
        way = (*zone.up.get(a, ()), *zone.backbone, *zone.down.get(b, ()))
        return Hop(tuple(dict.fromkeys(way)), a, b)

    def _fewest(self, zone: Zone, a: str) -> dict[str, list[Hop]]:
        """Return the routes of `zone` from `a` to all others with the fewest links."""
        key = (zone.name, a)
        if key not in self.nearest:
            self.nearest[key] = _shortest(zone, a)
        return self.nearest[key]


def _shortest(zone: Zone, a: str) -> dict[str, list[Hop]]:
    """Dijkstra's shortest paths by the number of links; of equal ones, that found first."""
    found: dict[str, list[Hop]] = {}
    waiting: list[tuple[int, int, str, list[Hop]]] = [(0, 0, a, [])]
    count = 0
    while waiting:
        cost, _, at, hops = heapq.heappop(waiting)
        if at in found:
            continue
        found[at] = hops
        for (source, target), hop in zone.hops.items():
            if source == at and target not in found:
                count += 1
                heapq.heappush(waiting, (cost + len(hop.links), count, target, [*hops, hop]))
    return found
