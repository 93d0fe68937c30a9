"""The machine file of a `Wiring`.

Runs of names are written as one, `leaf 0..31`, and so are links between runs, because a file with fewer strings is read
faster and easier to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkwright.discovery.wiring import Edge, Wiring, bounded, quoted

WIDTH = 120  # of a line of the file
MOST_LISTED = 40_000  # names and edges; the time to read a file grows with the square of their number


def text(wiring: Wiring, file: str) -> str:
    """The machine file of a network that `file` describes."""
    return "\n".join(_parts(wiring, file)) + "\n"


def _parts(w: Wiring, file: str) -> Iterator[str]:
    edges = {name: list(_edges(links.edges)) for name, links in w.links.items()}
    listed = sum(map(len, edges.values())) + len(w.switches) + (0 if w.torus else len(w.endpoints))
    bounded(listed, MOST_LISTED, file, "names and links that count up from none before")
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
        yield _listed("edges", edges[name])
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
    """The edges, those written as one that join a node and a run of names, or two runs name by name."""
    split = {name: _split(name) for edge in edges for name in edge}
    at = 0
    while at < len(edges):
        a, b = edges[at]
        stars = _following(edges, at, split, 0, 1), _following(edges, at, split, 1, 0)
        pairs = _following(edges, at, split, 1, 1)
        longest = max(*stars, pairs)
        if longest < 3:
            # The other node comes first, because a file is read fast where the node before the sign has few links.
            yield f"{b} - {a}"
            at += 1
            continue
        left, right = (_run(*ends, split) for ends in zip((a, b), edges[at + longest - 1], strict=True))
        yield f"{right} - {left}" if longest in stars else f"{left} = {right}"
        at += longest


def _run(first: str, last: str, split: dict) -> str:
    """The names from the first to the last, which is the first where they do not count up."""
    return first if first == last else f"{first}..{split[last][1]}"


def _following(edges: Sequence[Edge], at: int, split: dict, left: int, right: int) -> int:
    """How many edges from `at` on have ends whose numbers grow by `left` and `right` from one to the next."""
    first = [split[name] for name in edges[at]]
    steps = (left, right)
    if any(step and not one for step, one in zip(steps, first, strict=True)):
        return 1
    end = at + 1
    while end < len(edges) and all(
        split[name] == (one[0], one[1] + step * (end - at)) if step else name == begin
        for name, one, step, begin in zip(edges[end], first, steps, edges[at], strict=True)
    ):
        end += 1
    return end - at
