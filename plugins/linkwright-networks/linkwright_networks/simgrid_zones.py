"""Read the zones of a SimGrid platform: hosts, routers, links and routes, as the XML gives them.

Links are resources without ends. A SHARED link is one resource, which both directions of all routes share; a
SPLITDUPLEX link is two, `NAME_UP` and `NAME_DOWN`; a FATPIPE limits each message on its own. A route lists the links
that it crosses; by default the way back is the reverse.

Source: SimGrid, simgrid.dtd and the reference of platforms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from linkwright.network_api import Element, FileError, bounded, unknown

from . import simgrid_clusters
from .simgrid_units import rate, time

MOST_HOSTS = 512  # whose routes are compared pair by pair
MANY = "hosts in zones, whose routes are compared pair by pair"
ROUTINGS = {
    "full": "Full", "floyd": "Floyd", "dijkstra": "Dijkstra", "dijkstracache": "Dijkstra", "cluster": "Cluster",
    "none": "Full",  # without routes
}  # fmt: skip
PASSED = {"prop", "config", "actor", "process", "disk", "storage", "storage_type", "mount"}
REFUSED = {
    "peer": "a peer, whose latencies come from coordinates,",
    "trace": "a trace of changing rates",
    "trace_connect": "a trace of changing rates",
    "include": "an inclusion of another file",
}


@dataclass(frozen=True)
class Resource:
    """What messages share: a link, or one direction of it (`UP` or `DOWN`)."""

    link: str
    rate: Decimal
    latency: Decimal
    policy: str
    direction: str = ""

    @property
    def name(self) -> str:
        """Its name in SimGrid."""
        return f"{self.link}_{self.direction}" if self.direction else self.link


@dataclass(frozen=True)
class Hop:
    """A route inside of a zone, with gateways where its ends are zones."""

    links: tuple[Resource, ...]
    source: str
    target: str


@dataclass
class Zone:
    """A zone: its contents and its routes."""

    name: str
    routing: str
    parent: Zone | None
    where: str
    hops: dict[tuple[str, str], Hop] = field(default_factory=dict)
    bypasses: dict[tuple[str, str], Hop] = field(default_factory=dict)
    inside: list[str] = field(default_factory=list)
    up: dict[str, tuple[Resource, ...]] = field(default_factory=dict)
    down: dict[str, tuple[Resource, ...]] = field(default_factory=dict)
    backbone: tuple[Resource, ...] = ()

    def path(self) -> list[Zone]:
        """The enclosing zones, this one first."""
        return [self, *(self.parent.path() if self.parent else [])]


class Platform:
    """All zones, hosts and links of a platform."""

    def __init__(self, file: str):
        self.file = file
        self.hosts: list[str] = []
        self.zone_of: dict[str, Zone] = {}
        self.zones: dict[str, Zone] = {}
        self.links: dict[str, Resource] = {}
        self.split: set[str] = set()

    def add(self, element: Element, zone: Zone) -> None:
        """Add an element to `zone`."""
        tag, where = element.tag, f"{self.file}: line {element.line}"
        if tag in PASSED:
            return
        if tag in REFUSED:
            raise FileError(f"{where}: <{tag}>: {REFUSED[tag]} is not described; take it out")
        if tag not in READERS:
            raise unknown("element", tag[:40], READERS, where=where)
        if strange := sorted(set(element.attributes) - ATTRIBUTES.get(tag, set(element.attributes))):
            raise unknown("attribute", strange[0][:40], ATTRIBUTES[tag], where=f"{where}: <{tag}>")
        if tag not in HOLDERS and (inner := next((one for one in element.children if one.tag not in PASSED), None)):
            raise FileError(f"{self.file}: line {inner.line}: <{inner.tag[:40]}> inside of <{tag}>; move it out")
        READERS[tag](self, element, zone, where)

    def zone(self, element: Element, parent: Zone, where: str) -> None:
        """Add a zone with its contents."""
        name, routing = _text(element, "id", where), _text(element, "routing", where)
        if routing.lower() in ("vivaldi", "wifi"):
            raise FileError(
                f"{where}: zone {name[:80]}: routing {routing} is not described; describe routes or a cluster"
            )
        if routing.lower() not in ROUTINGS:
            raise unknown("routing", routing[:40], ROUTINGS.values(), where=f"{where}: zone {name[:80]}")
        made = Zone(name, ROUTINGS[routing.lower()], parent, where)
        made.backbone = (crossbar(name),)
        self.begin(name, made, parent, where)
        for inside in element.children:
            self.add(inside, made)

    def begin(self, name: str, zone: Zone, parent: Zone, where: str) -> None:
        """Register a zone in its parent."""
        if name in self.zones or name in self.zone_of:
            raise FileError(f"{where}: two things are named {name[:80]}; rename one")
        self.zones[name] = zone
        parent.inside.append(name)

    def cluster(self, element: Element, parent: Zone, where: str) -> None:
        """Add a flat cluster: a zone whose hosts have a link each."""
        read = simgrid_clusters.cluster(element, self.file)
        if read.topology != "FLAT":
            raise FileError(
                f"{where}: a cluster with topology {read.topology[:40]} beside other zones is not described"
            )
        bounded(len(self.hosts) + len(read.hosts), MOST_HOSTS, self.file, MANY)
        zone = Zone(read.name, "Cluster", parent, where)
        self.begin(read.name, zone, parent, where)
        if read.backbone:
            self.resource(f"{read.name} backbone", *read.backbone, where)
            zone.backbone = (self.links[f"{read.name} backbone"],)
        else:
            zone.backbone = (crossbar(read.name),)
        self.privates(read, zone, where)
        self.place(read.router, zone, where)

    def cabinet(self, element: Element, zone: Zone, where: str) -> None:
        """Add hosts to a cluster, with a link each."""
        read = simgrid_clusters.cluster(element, self.file)
        bounded(len(self.hosts) + len(read.hosts), MOST_HOSTS, self.file, MANY)
        self.privates(read, zone, where)

    def privates(self, read: simgrid_clusters.Cluster, zone: Zone, where: str) -> None:
        """Add the hosts of a cluster or cabinet, and their links."""
        for host in read.hosts:
            name = f"{host} link"
            self.resource(name, read.rate, read.latency, read.policy, where)
            self.place(host, zone, where)
            self.hosts.append(host)
            up, down = (f"{name}_UP", f"{name}_DOWN") if read.policy == "SPLITDUPLEX" else (name, name)
            zone.up[host], zone.down[host] = (self.links[up],), (self.links[down],)

    def place(self, name: str, zone: Zone, where: str) -> None:
        """Register a host or router in its zone."""
        if name in self.zone_of or name in self.zones:
            raise FileError(f"{where}: two things are named {name[:80]}; rename one")
        self.zone_of[name] = zone
        zone.inside.append(name)

    def host(self, element: Element, zone: Zone, where: str) -> None:
        """Add a host."""
        if element.attributes.get("state_file"):
            raise FileError(f"{where}: state_file, a host that fails and returns, is not described; take it out")
        self.place(_text(element, "id", where), zone, where)
        self.hosts.append(element.attributes["id"])
        bounded(len(self.hosts), MOST_HOSTS, self.file, MANY)

    def router(self, element: Element, zone: Zone, where: str) -> None:
        """Add a router, which only routes refer to."""
        self.place(_text(element, "id", where), zone, where)

    def link(self, element: Element, zone: Zone, where: str) -> None:
        """Add a link: one resource, or two with SPLITDUPLEX."""
        for key in ("bandwidth_file", "latency_file", "state_file"):
            if element.attributes.get(key):
                raise FileError(f"{where}: {key}, a link that changes with time, is not described; take it out")
        name = _text(element, "id", where)
        bandwidth = rate(_text(element, "bandwidth", where), f"{where}: bandwidth of link {name[:80]}")
        latency = time(element.attributes.get("latency", "0"), f"{where}: latency of link {name[:80]}")
        policy = element.attributes.get("sharing_policy", "SHARED").replace("FULLDUPLEX", "SPLITDUPLEX")
        if policy == "WIFI":
            raise FileError(f"{where}: link {name[:80]} is WIFI, which is not described; take it out")
        if policy not in ("SHARED", "SPLITDUPLEX", "FATPIPE"):
            raise unknown("sharing_policy", policy[:40], ("SHARED", "SPLITDUPLEX", "FATPIPE"), where=where)
        self.resource(name, bandwidth, latency, policy, where)

    def resource(self, name: str, bandwidth: Decimal, latency: Decimal, policy: str, where: str) -> None:
        """Register a link, or its two directions."""
        if name in self.links or name in self.split:
            raise FileError(f"{where}: two links are named {name[:80]}; rename one")
        if policy == "SPLITDUPLEX":
            self.split.add(name)
        for direction in ("UP", "DOWN") if policy == "SPLITDUPLEX" else ("",):
            made = Resource(name, bandwidth, latency, policy, direction)
            if made.name in self.links:
                raise FileError(f"{where}: two links are named {made.name[:80]}; rename one")
            self.links[made.name] = made

    def found(self, name: str, where: str) -> Resource:
        """Return the link called `name`."""
        if name in self.split:
            raise FileError(f'{where}: link {name[:80]} is SPLITDUPLEX; give its direction="UP" or "DOWN"')
        if name not in self.links:
            raise unknown("link", name[:80], self.links, where=where)
        return self.links[name]

    def host_link(self, element: Element, zone: Zone, where: str) -> None:
        """Set the links of a host in a cluster."""
        name = _text(element, "id", where)
        if self.zone_of.get(name) is not zone:
            raise FileError(f"{where}: {name[:80]} is no host of zone {zone.name[:80]}; describe it before its links")
        zone.up[name] = (self.found(_text(element, "up", where), where),)
        zone.down[name] = (self.found(_text(element, "down", where), where),)

    def backbone(self, element: Element, zone: Zone, where: str) -> None:
        """Set the link that all messages of a cluster cross."""
        self.link(element, zone, where)
        zone.backbone = (self.links[element.attributes["id"]],)

    def hop(self, element: Element, zone: Zone, where: str) -> None:
        """Add a route or a bypass, between hosts and routers or between zones."""
        ends = source, target = _text(element, "src", where), _text(element, "dst", where)
        is_bypass = element.tag.startswith("bypass")
        for end in ends:
            if end not in self.zone_of and end not in self.zones:
                raise FileError(f"{where}: a route of {end[:80]}, which is no host, router or zone described before it")
            if not is_bypass and end not in zone.inside:
                raise FileError(
                    f"{where}: a route of {end[:80]}, which is not in zone {zone.name[:80]}; move the route"
                )
        gates = [element.attributes.get(key, end) for key, end in (("gw_src", source), ("gw_dst", target))]
        for end, gate in zip(ends, gates, strict=True):
            if gate not in self.zone_of or (end in self.zones and self.zones[end] not in self.zone_of[gate].path()):
                raise FileError(
                    f"{where}: gateway {gate[:80]} is no host or router of {end[:80]}; name one as gw_src, gw_dst"
                )
        crossed = [self.crossed(one, where) for one in element.children if one.tag not in PASSED]
        symmetrical = element.attributes.get("symmetrical", "YES").upper()
        if symmetrical not in ("YES", "NO"):
            raise FileError(f"{where}: symmetrical is `{symmetrical[:40]}`; write YES or NO")
        made = {ends: Hop(tuple(there for there, _ in crossed), gates[0], gates[1])}
        if symmetrical == "YES" and not is_bypass and source != target:
            made[target, source] = Hop(tuple(back for _, back in reversed(crossed)), gates[1], gates[0])
        table = zone.bypasses if is_bypass else zone.hops
        for (a, b), hop in made.items():
            if table.setdefault((a, b), hop) is not hop:
                cure = 'keep one, or write symmetrical="NO" on both'
                raise FileError(f"{where}: a second route from {a[:80]} to {b[:80]}; {cure}")

    def crossed(self, element: Element, where: str) -> tuple[Resource, Resource]:
        """Return the resources of a `<link_ctn>`, there and back."""
        if element.tag != "link_ctn":
            raise unknown("element", element.tag[:40], ("link_ctn",), where=where)
        if strange := sorted(set(element.attributes) - {"id", "direction"}):
            raise unknown("attribute", strange[0][:40], ("id", "direction"), where=f"{where}: <link_ctn>")
        name, direction = _text(element, "id", where), element.attributes.get("direction", "NONE")
        if direction not in ("UP", "DOWN", "NONE"):
            raise unknown("direction", direction[:40], ("UP", "DOWN", "NONE"), where=where)
        if name not in self.split or direction == "NONE":
            return (self.found(name, where),) * 2
        up, down = self.links[f"{name}_UP"], self.links[f"{name}_DOWN"]
        return (up, down) if direction == "UP" else (down, up)


def crossbar(zone: str) -> Resource:
    """Return a switch without limits, where the links of a cluster without a backbone meet."""
    return Resource(f"{zone} switch", Decimal(0), Decimal(0), "FATPIPE")


def _text(element: Element, name: str, where: str) -> str:
    if not element.attributes.get(name):
        raise FileError(f"{where}: <{element.tag}> has no `{name}`; add it")
    return element.attributes[name]


_ROUTE = {"src", "dst", "symmetrical"}
# Attributes of elements by the DTD; clusters and cabinets are checked where they are read.
ATTRIBUTES = {
    "zone": {"id", "routing"},
    "host": {
        "id", "speed", "core", "availability_file", "speed_file", "state_file", "coordinates", "pstate",
    },
    "router": {"id", "coordinates"},
    "link": {
        "id", "bandwidth", "latency", "sharing_policy", "bandwidth_file", "latency_file", "state_file",
    },
    "host_link": {"id", "up", "down"},
    "backbone": {"id", "bandwidth", "latency"},
    "route": _ROUTE,
    "zoneRoute": {*_ROUTE, "gw_src", "gw_dst"},
    "bypassRoute": _ROUTE,
    "bypassZoneRoute": {*_ROUTE, "gw_src", "gw_dst"},
}  # fmt: skip
ATTRIBUTES |= {
    "AS": ATTRIBUTES["zone"], "ASroute": ATTRIBUTES["zoneRoute"], "bypassASroute": ATTRIBUTES["bypassZoneRoute"],
}  # fmt: skip
HOLDERS = {"zone", "AS", *(tag for tag in ATTRIBUTES if tag.lower().endswith("route"))}  # that hold other elements
READERS = {
    "zone": Platform.zone, "AS": Platform.zone, "cluster": Platform.cluster, "cabinet": Platform.cabinet,
    "host": Platform.host, "router": Platform.router, "link": Platform.link, "host_link": Platform.host_link,
    "backbone": Platform.backbone, "route": Platform.hop, "zoneRoute": Platform.hop, "ASroute": Platform.hop,
    "bypassRoute": Platform.hop, "bypassZoneRoute": Platform.hop, "bypassASroute": Platform.hop,
}  # fmt: skip
