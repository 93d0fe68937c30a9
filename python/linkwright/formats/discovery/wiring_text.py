"""The machine file of a `Wiring`.

Runs of names are written as one, `leaf 0..31`, and so are links between runs, because a file with fewer strings is read
faster and easier to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from linkwright._native import runs_of_names
from linkwright.formats.discovery.wiring import Axis, Edge, Number, Wiring, bounded
from linkwright.machines import writer

MOST_LISTED = 40_000  # names and edges; the time to read a file grows with the square of their number

Table = dict[str, Any]


def text(wiring: Wiring, file: str) -> str:
    """The machine file of a network that `file` describes."""
    return writer.text(document(wiring, file))


def document(w: Wiring, file: str) -> Table:
    """The tables of the machine file."""
    levels = w.levels or [("endpoint", len(w.endpoints))]
    head = {"name": w.name, "summary": w.summary, "description": w.description, "format": 1, "sources": w.sources}
    found: Table = {
        "machine": head,
        "level": [{"name": name, "count": count, "source": w.endpoint_source} for name, count in levels],
        "endpoints": {**_endpoints(w), "source": w.endpoint_source},
        "fabric": _fabric(w),
        "path": {"message": PATH},
    }
    fabric = found["fabric"]
    joined = sum(len(links["edges"]) for links in fabric.get("links", {}).values())
    listed = joined + len(fabric.get("switches", [])) + len(found["endpoints"].get("names", []))
    bounded(listed, MOST_LISTED, file, "names and links that are not numbered consecutively")
    return found


PATH: Table = {
    "summary": "a message, complete when delivered; combining is free",
    "completion": "delivered",
    "fused_combine": True,
}


def stated(number: Number) -> Table:
    """A number as the table that a machine file has."""
    value = int(number.value) if number.value == int(number.value) else float(number.value)
    return writer.number(value, number.unit, number.status, number.source)


def _endpoints(w: Wiring) -> Table:
    """Their names: by a pattern if they count up from 0."""
    if w.torus:
        return {"grid": [axis.side for axis in w.torus], "name": w.endpoints[0]}
    listed = runs_of_names(w.endpoints)
    found = re.fullmatch(r"(|.*[^0-9])0\.\.(\d+)", listed[0])
    if len(listed) == 1 and found:
        return {"count": len(w.endpoints), "name": found[1] + "{i}"}
    return {"names": w.endpoints}


def _fabric(w: Wiring) -> Table:
    fabric: Table = {"kind": "flow"}
    if w.switches:
        fabric["switches"] = runs_of_names(w.switches)
    if w.torus:
        fabric["torus"] = _torus(w.torus, w.endpoint_source)
    if w.links:
        fabric["links"] = {
            name: {
                "source": links.source,
                "bandwidth": stated(links.bandwidth),
                **({"latency": stated(links.latency)} if links.latency is not None else {}),
                "edges": list(edges(links.edges)),
            }
            for name, links in w.links.items()
        }
    if w.throughput:
        fabric["switch"] = {name: {"throughput": stated(number)} for name, number in w.throughput.items()}
    if w.routes:
        fabric["pair"] = {
            f"{a} -> {b}": {"route": list(own.route), **({"rate": stated(own.rate)} if own.rate else {})}
            for (a, b), own in w.routes.items()
        }
    fabric["transport"] = {"message": _transport(w)}
    return fabric


def _torus(axes: Sequence[Axis], source: str) -> Table:
    """What all axes have in common, and how others differ from the first."""

    def values(axis: Axis) -> Table:
        return {"bandwidth": stated(axis.bandwidth), "latency": stated(axis.latency), "wrap": axis.wrap}

    first = values(axes[0])
    found: Table = {"routing": "dimension_order", "source": source, **first}
    for name, axis in zip("xyzwvu", axes, strict=False):
        own = {key: value for key, value in values(axis).items() if value != first[key]}
        if own:
            found[name] = own
    return found


def _transport(w: Wiring) -> Table:
    transport: Table = {"links": [*(["torus"] if w.torus else []), *w.links], "start": stated(w.start)}
    if w.relays or w.torus:
        transport["relays"] = "forward"
    if w.rate:
        transport["rate"] = stated(w.rate)
    return transport


_NUMBERED = re.compile(r"(|.*[^0-9])(0|[1-9][0-9]{0,8})", re.ASCII)


def _split(name: str) -> tuple[str, int] | None:
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def edges(pairs: Sequence[Edge]) -> Iterator[str]:
    """Yield the edges, those written as one that join a node and a run of names, or two runs name by name."""
    split = {name: _split(name) for edge in pairs for name in edge}
    at = 0
    while at < len(pairs):
        a, b = pairs[at]
        stars = _following(pairs, at, split, 0, 1), _following(pairs, at, split, 1, 0)
        twins = _following(pairs, at, split, 1, 1)
        longest = max(*stars, twins)
        if longest < 3:
            # The other node comes first, because a file is read fast where the node before the sign has few links.
            yield f"{b} - {a}"
            at += 1
            continue
        left, right = (_run(*ends, split) for ends in zip((a, b), pairs[at + longest - 1], strict=True))
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
