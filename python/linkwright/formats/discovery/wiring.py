"""What a network's own description says, typed, before it becomes a machine file.

    text of a file --- an importer ---> Wiring --- `text` ---> machine file

A `Wiring` is a graph: endpoints, switches, and links between them in classes of equal rate and latency. Where the graph
is a torus, it has its sides instead of links. Numbers carry their status and source from the start, so the file says of
each whether the description stated it or nobody did.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from linkwright.base.errors import FileError, UsageError

# Beyond these, a file is a mistake or the work of somebody who wants to fill a memory.
MOST_ENDPOINTS = 1 << 15
MOST_SWITCHES = 1 << 16
MOST_LINKS = 1 << 20
MOST_NAME = 120  # characters

Edge = tuple[str, str]


@dataclass(frozen=True)
class Number:
    """A number of a machine file."""

    value: Decimal
    unit: str
    status: str
    source: str

    def times(self, count: int, source: str) -> Number:
        """As much as `count` of them together."""
        if count == 1:
            return self
        status = self.status if self.status == "assumed" else "derived"
        return Number(self.value * count, self.unit, status, f"{source}; {self.source}")


@dataclass
class Links:
    """Links of one rate and latency; each edge is one link in both directions."""

    bandwidth: Number
    latency: Number | None
    source: str
    edges: list[Edge] = field(default_factory=list)
    ports: int = 0  # below a trunk that is as wide as they are, because nothing states its rate


@dataclass(frozen=True)
class Axis:
    """One axis of a torus, or of a mesh where it does not wrap."""

    side: int
    bandwidth: Number
    latency: Number
    wrap: bool


@dataclass(frozen=True)
class Detour:
    """The route of one ordered pair, and the most that its messages carry."""

    route: tuple[str, ...]
    rate: Number | None = None


@dataclass
class Wiring:
    """A network as its description gives it."""

    name: str
    summary: str
    description: str
    sources: list[str]
    endpoints: list[str]
    endpoint_source: str
    start: Number
    levels: list[tuple[str, int]] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    links: dict[str, Links] = field(default_factory=dict)
    torus: list[Axis] = field(default_factory=list)
    throughput: dict[str, Number] = field(default_factory=dict)
    routes: dict[Edge, Detour] = field(default_factory=dict)
    rate: Number | None = None
    relays: bool = False
    rateless: bool = False  # the description states no rates, so `rate` may
    without: str = ""  # what the description lists and the network does not hold, such as `2 nodes without a link`


def plain(name: str) -> str:
    """`name` as a name of a node, without what would read as part of an edge."""
    shown = "".join(c if c.isprintable() else " " for c in name)
    shown = " ".join(shown.split())[:MOST_NAME].strip()
    shown = re.sub(r" ([-=x/]) ", r"_\1_", shown).replace("..", "._").replace("->", "_")
    return shown.replace("{", "(").replace("}", ")").lstrip("*-=/ ") or "unnamed"


def key(name: str) -> str:
    """`name` as the name of a machine: letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:60] or "network"


def distinct(names: Iterable[str], where: str, what: str) -> list[str]:
    """The names as names of nodes; two that are equal are an error."""
    made: dict[str, str] = {}
    for name in names:
        shown = plain(name)
        if shown in made:
            raise FileError(f"{where}: two {what} are named `{shown}`; rename one")
        made[shown] = name
    return list(made)


def bounded(count: int, most: int, where: str, what: str) -> int:
    """`count`, which must not be larger than a machine file holds."""
    if count > most:
        shown = f"{count:,}" if count < 10**15 else "more than 10^15"
        raise FileError(
            f"{where}: {shown} {what}; at most {most:,} fit into a machine file, so shorten the description"
        )
    return count


_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?(G[bB]/s)", re.ASCII)


def rate(w: Wiring, given: Iterable[str], file: str) -> None:
    """State rates that the description leaves open: `port=400Gb/s` or `leaf*=1600Gb/s`.

    Args:
        w: the network.
        given: of each port of a node (`port`), whose trunks grow with it, or of all links of a switch upwards together;
            `*` stands for any letters. A whole name goes before a pattern, in any order.
        file: the name of the description, for messages.

    Raises:
        UsageError: the description states rates, nothing has the name, a rate is none, or two are of one link.

    """
    stated: dict[tuple[bool, Edge | None], str] = {}
    for setting in sorted(given, key=_is_whole):
        name, _, text = setting.rpartition("=")
        match = _RATE.fullmatch(text)
        if not name or not match or not Decimal(match[1]):
            raise UsageError(f"--rate {setting}: is not a name and a rate; write `port=400Gb/s` or `leaf*=1600Gb/s`")
        number = Number(Decimal(match[1]), match[2], "documented", f"--rate {setting}")
        if not w.rateless:
            raise UsageError(
                f"--rate {setting}: {file} states rates; omit it, and use --degrade where links are slower"
            )
        w.description = (
            "The tree is from the file, which states no rates: those of --rate are stated, all others, latencies and "
            "start-up are assumed."
        )
        if name == "port":
            _once(stated, (True, None), setting, "ports")
            w.links["port"].bandwidth = number
            for links in w.links.values():
                links.bandwidth = trunk(number, links.ports) if links.ports else links.bandwidth
            continue
        moved: list[Edge] = []
        for key, links in w.links.items():
            its = {edge for edge in links.edges if key != "port" and fnmatch.fnmatchcase(edge[1], name)}
            moved += [edge for edge in links.edges if edge in its]
            links.edges = [edge for edge in links.edges if edge not in its]
        if not moved:
            raise UsageError(f"--rate {setting}: {file} has no switch of that name below another one; correct the name")
        for edge in moved:
            _once(stated, (_is_whole(setting), edge), setting, f"the link of {edge[1]} to {edge[0]}")
        some = next(links for key, links in w.links.items() if key != "port")
        w.links = {key: links for key, links in w.links.items() if links.edges}
        w.links[f"trunk {name}"] = Links(number, some.latency, some.source, moved)


def _is_whole(setting: str) -> bool:
    """Whether it names one thing, and not a pattern."""
    return not set("*?[") & set(setting.rpartition("=")[0])


def _once(stated: dict[tuple[bool, Edge | None], str], key: tuple[bool, Edge | None], setting: str, what: str) -> None:
    if (before := stated.setdefault(key, setting)) != setting:
        raise UsageError(f"--rate {before} and --rate {setting} both state the rate of {what}; omit one")


def trunk(port: Number, count: int) -> Number:
    """Return the rate of a trunk as wide as the ports below it."""
    rate = port.times(count, f"as wide as the {count} ports below: no taper, which is assumed")
    return replace(rate, status="assumed")


def check(w: Wiring, file: str) -> None:
    """Refuse a network in two pieces, or without links."""
    near: dict[str, list[str]] = {name: [] for name in (*w.endpoints, *w.switches)}
    count = bounded(sum(len(links.edges) for links in w.links.values()), MOST_LINKS, file, "links")
    if len(near) < len(w.endpoints) + len(w.switches):
        both = next(name for name in w.switches if name in w.endpoints)
        raise FileError(f"{file}: {both} is both an endpoint and a switch; rename one")
    if not count and not w.torus:
        raise FileError(f"{file}: describes no links; give the whole file")
    for links in w.links.values():
        for a, b in links.edges:
            near[a].append(b)
            near[b].append(a)
    reached, waiting = {w.endpoints[0]}, [w.endpoints[0]]
    while waiting:
        fresh = [name for name in near[waiting.pop()] if name not in reached]
        reached.update(fresh)
        waiting += fresh
    if apart := [name for name in w.endpoints if name not in reached and not w.torus]:
        raise FileError(
            f"{file}: {apart[0]} and {w.endpoints[0]} are not connected; describe one network, with all its links"
        )
