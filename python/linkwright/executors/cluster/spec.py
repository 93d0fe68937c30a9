"""The file of a cluster: its shape, the rates of its links, and which of them are broken.

[cluster]
name = "lab"
shape = "fat_tree"      # fat_tree, rails, ring, dumbbell, star
hosts = 6
port = 80               # Mb/s of the link of a host
uplink = 160            # Mb/s between switches
width = 2               # hosts of a leaf; rails of a host

[faults]                # share of the rate that is left: of a link, of one direction, of a host
"n3 - leaf 1" = 0.25
"leaf 0 -> spine 0" = 0.5
n5 = 0.4

star       hosts - switch                            ring     host i - host i + 1; hosts pass on what is not theirs
dumbbell   hosts - left | right, left - right        rails    host i has a port on every rail r: `node i port r`
fat_tree   hosts - leaves - one spine
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from linkwright.base.errors import unknown
from linkwright.base.toml import Choice, Key, Named, OneTable, Place, Scalar, load, read, whole
from linkwright.base.units import MEGA
from linkwright.machines import writer

SHAPES = ("fat_tree", "rails", "ring", "dumbbell", "star")
MOST_HOSTS = 64
_NAME = Scalar(
    "a name of up to 8 letters and digits", (str,), lambda text: bool(re.fullmatch("[a-z][a-z0-9]{0,7}", text)),
    {"type": "string", "pattern": "^[a-z][a-z0-9]{0,7}$"},
)  # fmt: skip
_SHARE = Scalar(
    "a share of a rate, at least 0.02 and at most 1", (int, float),
    lambda value: type(value) in (int, float) and 0.02 <= value <= 1, {"type": "number", "minimum": 0.02, "maximum": 1},
)  # fmt: skip
_CLUSTER = {
    "name": Key(_NAME, "begins the names of everything that is made", default="lab"),
    "shape": Key(Choice(SHAPES), "how hosts are joined", required=True),
    "hosts": Key(whole(2, MOST_HOSTS), "hosts", required=True),
    "port": Key(whole(1, 10_000), "Mb/s of the link of a host", required=True),
    "uplink": Key(whole(1, 40_000), "Mb/s between switches; default: as `port`"),
    "width": Key(whole(1, MOST_HOSTS), "hosts of a leaf, or rails of a host", default=2),
}
FILE = {
    "cluster": Key(OneTable(_CLUSTER), "the cluster", required=True),
    "faults": Key(Named(_SHARE), "what is left of the rate of a link, a direction (`a -> b`) or a host", default={}),
}


@dataclass(frozen=True)
class LabCluster:
    """A cluster.

    Attributes:
        name: begins the names of everything that is made.
        hosts: names of the hosts, in the order of ranks.
        each: ranks of a host: its rails, otherwise 1.
        switches: names of the switches.
        links: (class, a, b, bytes per second of each direction).
        slow: (from, to) -> share of its rate that a direction has left.
    """

    name: str
    hosts: tuple[str, ...]
    each: int
    switches: tuple[str, ...]
    links: tuple[tuple[str, str, str, float], ...]
    slow: dict[tuple[str, str], float]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Hosts, then switches."""
        return (*self.hosts, *self.switches)

    def rate(self, a: str, b: str) -> float:
        """Bytes per second from `a` to `b`, which a link joins, with its fault."""
        healthy = next(rate for _, x, y, rate in self.links if {x, y} == {a, b})
        return healthy * self.slow.get((a, b), 1.0)


def of_text(text: str, file: str) -> LabCluster:
    """Read the file of a cluster.

    Raises:
        UsageError: it is no such file, or names something that the cluster has not.
    """
    place = Place(file)
    values = read(load(text, place), FILE, place)
    asked = values["cluster"]
    port, uplink = (mbit * (MEGA / 8) for mbit in (asked["port"], asked["uplink"] or asked["port"]))
    made = shaped(asked["name"], asked["shape"], asked["hosts"], port, uplink, asked["width"])
    for name, share in values["faults"].items():
        for direction in _directions(made, name, file):
            made.slow[direction] = made.slow.get(direction, 1.0) * float(share)
    return made


def shaped(name: str, shape: str, hosts: int, port: float, uplink: float, width: int) -> LabCluster:
    """Make a cluster of a shape; rates are in bytes per second."""
    names = tuple(f"n{at}" for at in range(hosts))
    links: list[tuple[str, str, str, float]] = []
    switches: tuple[str, ...] = ()
    each = 1
    if shape == "star":
        switches = ("switch",)
        links = [("port", host, "switch", port) for host in names]
    elif shape == "dumbbell":
        switches = ("left", "right")
        links = [("port", host, switches[2 * at // hosts], port) for at, host in enumerate(names)]
        links.append(("uplink", "left", "right", uplink))
    elif shape == "ring":
        links = [("port", host, names[(at + 1) % hosts], port) for at, host in enumerate(names) if hosts > 2 or at == 0]
    elif shape == "rails":
        each = width
        names = tuple(f"node {at} port {rail}" for at in range(hosts) for rail in range(width))
        switches = (*(f"rail {rail}" for rail in range(width)), *(f"node {at} bus" for at in range(hosts)))
        links = [("port", host, f"rail {at % width}", port) for at, host in enumerate(names)]
        links += [("bus", host, f"node {at // width} bus", uplink) for at, host in enumerate(names)]
    else:
        leaves = -(-hosts // width)
        switches = (*(f"leaf {at}" for at in range(leaves)), "spine")
        links = [("port", host, f"leaf {at // width}", port) for at, host in enumerate(names)]
        links += [("uplink", f"leaf {at}", "spine", uplink) for at in range(leaves)]
    return LabCluster(name, names, each, switches, tuple(links), {})


def _directions(made: LabCluster, name: str, file: str) -> Iterator[tuple[str, str]]:
    """The directions that the name of a fault means."""
    a, arrow, b = (part.strip() for part in (name.partition(" -> ") if " -> " in name else name.partition(" - ")))
    joined = [(x, y) for _, x, y, _ in made.links]
    if not arrow:
        found = [link for link in joined if name in link]
        both = True
    else:
        found = [link for link in joined if set(link) == {a, b}]
        both = "->" not in arrow
    if not found:
        known = [*made.nodes, *(f"{x} - {y}" for x, y in joined)]
        raise unknown("link or host", name, known, where=f"{file}: faults")
    for x, y in found:
        yield from ((x, y), (y, x)) if both else ((a, b),)


def machine(
    cluster: LabCluster, *, summary: str = "hosts made of network namespaces", status: str = "assumed",
    source: str = "by definition of the cluster's file", start_us: float = 50, latency_us: float = 30,
) -> dict[str, object]:  # fmt: skip
    """Return the healthy cluster as the document of a machine file.

    Args:
        cluster: hosts, switches and links.
        summary: what the hosts are.
        status, source: of every number.
        start_us: software at both ends of a message, in us.
        latency_us: of a link, in us.
    """

    def stated(value: float, unit: str) -> dict[str, object]:
        return writer.number(value, unit, status, source)

    classes: dict[str, dict[str, object]] = {}
    for kind, a, b, rate in cluster.links:
        one = classes.setdefault(kind, {"edges": [], "source": source, "bandwidth": stated(rate / MEGA, "MB/s")})
        one["latency"] = stated(latency_us, "us")
        one["routing"] = {"value": "single", "status": "assumed", "source": source}
        edges = one["edges"]
        assert isinstance(edges, list)
        edges.append(f"{a} - {b}")
    level = [{"name": "host", "count": len(cluster.hosts), "source": source}]
    if cluster.each > 1:
        nodes = len(cluster.hosts) // cluster.each
        level = [
            {"name": "node", "count": nodes, "source": source},
            {"name": "port", "count": cluster.each, "source": source},
        ]
    transport: dict[str, object] = {"links": list(classes), "start": stated(start_us, "us")}
    if not cluster.switches or cluster.each > 1:  # hosts pass on what is not theirs
        transport["relays"] = "forward"
    return {
        "machine": {
            "name": cluster.name, "summary": f"{len(cluster.hosts)} {summary}",
            "description": f"{len(cluster.hosts)} {summary}, joined by links that carry both ways at once.",
            "format": 1, "sources": [source],
        },
        "level": level,
        "endpoints": {"names": list(cluster.hosts), "source": source},
        "fabric": {
            "kind": "flow", "switches": list(cluster.switches), "links": classes, "transport": {"tcp": transport},
        },
        "path": {"put": {"summary": "a message of TCP", "completion": "delivered"}},
    }  # fmt: skip
