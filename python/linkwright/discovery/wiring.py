"""What a network's own description says, typed, before it becomes a machine file.

    text of a file --- an importer ---> Wiring --- `text` ---> machine file

A `Wiring` is a graph: endpoints, switches, and links between them in classes of equal rate and latency. Where the graph
is a torus, it has its sides instead of links. Numbers carry their status and source from the start, so the file says of
each whether the description stated it or nobody did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from linkwright.errors import FileError

# Beyond these, a file is a mistake or the work of somebody who wants to fill a memory.
MOST_ENDPOINTS = 1 << 15
MOST_SWITCHES = 1 << 16
MOST_LINKS = 1 << 20
MOST_NAME = 120  # characters
WIDTH = 120  # of a line of the file

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
        return self if count == 1 else Number(self.value * count, self.unit, "derived", f"{source}; {self.source}")

    def __str__(self) -> str:
        value = format(self.value.normalize(), "f")
        return f'{{ value = {value}, unit = "{self.unit}", status = "{self.status}", source = {quoted(self.source)} }}'


@dataclass
class Links:
    """Links of one rate and latency; each edge is one link in both directions."""

    bandwidth: Number
    latency: Number | None
    source: str
    edges: list[Edge] = field(default_factory=list)


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


def quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


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
            f"{where}: {shown} {what}; at most {most:,} fit into a machine file, so cut the description down"
        )
    return count


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
            f"{file}: nothing joins {apart[0]} and {w.endpoints[0]}; describe one network, with all its links"
        )


def text(wiring: Wiring) -> str:
    """The machine file."""
    return "\n".join(_parts(wiring)) + "\n"


def _parts(w: Wiring) -> Iterator[str]:
    yield "[machine]"
    yield f"name = {quoted(w.name)}\nsummary = {quoted(w.summary)}\ndescription = {quoted(w.description)}\nformat = 1"
    yield _listed("sources", w.sources)
    for name, count in w.levels or [("endpoint", len(w.endpoints))]:
        yield f"\n[[level]]\nname = {quoted(name)}\ncount = {count}\nsource = {quoted(w.endpoint_source)}"
    yield "\n[endpoints]"
    yield from _endpoints(w)
    yield f'source = {quoted(w.endpoint_source)}\n\n[fabric]\nkind = "flow"'
    if w.switches:
        yield _listed("switches", list(_runs(w.switches)))
    yield from _torus(w)
    for name, links in w.links.items():
        yield f"\n[fabric.links.{quoted(name)}]\nsource = {quoted(links.source)}\nbandwidth = {links.bandwidth}"
        if links.latency is not None:
            yield f"latency = {links.latency}"
        yield _listed("edges", list(_edges(links.edges)))
    for name, number in w.throughput.items():
        yield f"\n[fabric.switch.{quoted(name)}]\nthroughput = {number}"
    yield from _transport(w)
    for (a, b), own in w.routes.items():
        rate = f", rate = {own.rate}" if own.rate else ""
        yield f"[fabric.pair.{quoted(f'{a} -> {b}')}]\n" + (
            f"route = [{', '.join(map(quoted, own.route))}]" + rate.replace(", rate", "\nrate")
        )


def _listed(name: str, items: Sequence[str]) -> str:
    """An array with as many items to a line as fit."""
    lines = [""]
    for item in map(quoted, items):
        if len(lines[-1]) + len(item) > WIDTH - 6:
            lines.append("")
        lines[-1] += f" {item},"
    return f"{name} = [\n" + "".join(f"   {line}\n" for line in lines if line) + "]"


def _endpoints(w: Wiring) -> Iterator[str]:
    """Their names: by a pattern if they count up from 0."""
    if w.torus:
        yield f"grid = [{', '.join(str(axis.side) for axis in w.torus)}]"
        yield f"name = {quoted(w.endpoints[0])}"
        return
    runs = list(_runs(w.endpoints))
    found = re.fullmatch(r"(|.*[^0-9])0\.\.(\d+)", runs[0])
    if len(runs) == 1 and found:
        yield f"count = {len(w.endpoints)}\nname = {quoted(found[1] + '{i}')}"
    else:
        yield _listed("names", w.endpoints)


def _torus(w: Wiring) -> Iterator[str]:
    if not w.torus:
        return
    first = w.torus[0]
    yield f'\n[fabric.torus]\nrouting = "dimension_order"\nsource = {quoted(w.endpoint_source)}'
    yield f"bandwidth = {first.bandwidth}\nlatency = {first.latency}\nwrap = {str(first.wrap).lower()}"
    for name, axis in zip("xyzwvu", w.torus, strict=False):
        own = [
            f"{word} = {shown}"
            for word, value, other, shown in (
                ("bandwidth", axis.bandwidth, first.bandwidth, axis.bandwidth),
                ("latency", axis.latency, first.latency, axis.latency),
                ("wrap", axis.wrap, first.wrap, str(axis.wrap).lower()),
            )
            if value != other
        ]
        if own:
            yield "\n".join([f"\n[fabric.torus.{name}]", *own])


def _transport(w: Wiring) -> Iterator[str]:
    classes = [*(["torus"] if w.torus else []), *w.links]
    yield f"\n[fabric.transport.message]\nlinks = [{', '.join(map(quoted, classes))}]\nstart = {w.start}"
    if w.relays or w.torus:
        yield 'relays = "forward"'
    if w.rate:
        yield f"rate = {w.rate}"
    yield '\n[path.message]\nsummary = "a message, complete when delivered; combining is free"'
    yield 'completion = "delivered"\nfused_combine = true\n'


_NUMBERED = re.compile(r"(|.*[^0-9])(0|[1-9][0-9]{0,8})", re.ASCII)


def _split(name: str) -> tuple[str, int] | None:
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def _runs(names: Sequence[str]) -> Iterator[str]:
    """The names, those that count up by one written as `leaf 0..31`."""
    at = 0
    while at < len(names):
        end, split = at + 1, _split(names[at])
        while split and end < len(names) and _split(names[end]) == (split[0], split[1] + end - at):
            end += 1
        yield names[at] if end - at < 3 else f"{names[at]}..{_split(names[end - 1])[1]}"  # type: ignore[index]
        at = end if end - at >= 3 else at + 1


def _edges(edges: Sequence[Edge]) -> Iterator[str]:
    """The edges, those of one node to others that count up written as one."""
    at = 0
    while at < len(edges):
        end, node = at + 1, edges[at][0]
        while end < len(edges) and edges[end][0] == node:
            end += 1
        # The others come first, because a file is read fast where the node before the sign has few links.
        yield from (f"{other} - {node}" for other in _runs([b for _, b in edges[at:end]]))
        at = end
