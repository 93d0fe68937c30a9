"""A picture that stands still, as one <svg>: for pages, documents and paper.

Without a simulation, a link has the colour of its class and is as thick as it is fast; with one, both say how busy it
was on average. The colours of `colours.py` are written into the drawing.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from typing import Any

from linkwright.base import units

from . import colours
from .scene import Scene

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_INDENT, _LINE = 8.0, 20.0  # of the legend
_LEAST_TEXT = 7.0
_THIN, _THICK = 1.0, 7.0
_ROOMY = 26.0


def svg(scene: Scene, *, dark: bool | None = False) -> str:
    """The drawing; with `dark` None it is light or dark as the reader prefers, where the viewer knows that."""
    legend, height = _legend(scene)
    body = "".join([*_links(scene, True), *_frames(scene), *_links(scene, False), *_nodes(scene), legend])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {scene["width"]:g} {height:.0f}" '
        f'width="{scene["width"]:g}" height="{height:.0f}" role="img" font-family="{_FONT}" font-size="13">'
        f"<title>{words(scene['about'])}</title><style>{colours.style(dark)}</style>"
        f'<rect class="ground" width="{scene["width"]:g}" height="{height:.0f}"/>{body}</svg>\n'
    )


def words(text: str) -> str:
    """Words, escaped, without the characters that XML does not have."""
    return html.escape("".join(c if c.isprintable() else " " for c in text))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _box(kind: str, place: Sequence[float], told: str) -> str:
    x, y, width, height = place
    rounding = min(4.0, height / 5, width / 5)
    at = f'x="{_n(x - width / 2)}" y="{_n(y - height / 2)}" width="{_n(width)}" height="{_n(height)}"'
    return f'<rect class="{kind}" {at} rx="{_n(rounding)}"><title>{words(told)}</title></rect>'


def _frames(scene: Scene) -> Iterator[str]:
    for name, x, y, width, height in scene["frames"]:
        yield _box("frame", (x, y, width, height), name)
        size = min(12.0, height * 0.18, width / max(6, len(name)) * 1.5)
        if size >= _LEAST_TEXT:
            yield f'<text class="quiet" x="{_n(x - width / 2 + 5)}" y="{_n(y - height / 2 + size + 2)}" '
            yield f'font-size="{_n(size)}">{words(name)}</text>'


def _links(scene: Scene, behind: bool) -> Iterator[str]:
    """Those behind the frames, or the others; busier ones over idler ones."""
    time, nodes, scale = scene["time"], scene["nodes"], _scale(scene)
    fastest = max((rate or 0 for _, _, _, rate, _ in scene["links"]), default=0)
    numbers = range(scene["behind"]) if behind else range(scene["behind"], len(scene["links"]))
    for number in numbers if time is None else sorted(numbers, key=time["links"].__getitem__):
        a, b, kind, rate, path = scene["links"][number]
        told = f"{nodes[a][0]} – {nodes[b][0]}: {scene['classes'][kind]}"
        told += f", {units.format_rate(rate)} each way" if rate else ""
        if time is None:
            colour, share = f"k{min(kind, colours.KINDS - 1)}", math.sqrt(rate / fastest) if rate and fastest else 0.2
        else:
            share = time["links"][number]
            colour, told = f"b{colours.step(share)}", f"{told}, busy {share:.0%} of the time"
        wide = _n((_THIN + share * (_THICK - _THIN)) * scale)
        tip = f"<title>{words(told)}</title>"
        yield f'<path class="link {colour}" stroke-width="{wide}" d="{outline(path)}">{tip}</path>'


def _scale(scene: Scene) -> float:
    """Links are thinner where there are many, or where boxes are small."""
    smallest = min((min(row[5], row[6]) for row in scene["nodes"]), default=_ROOMY)
    return max(0.2, min(1.0, 14 / math.sqrt(len(scene["links"]) + 1), smallest / _ROOMY))


def outline(path: Sequence[float]) -> str:
    """The path of an edge as SVG writes it."""
    points = [f"{_n(path[k])} {_n(path[k + 1])}" for k in range(0, len(path), 2)]
    if len(points) == 3:
        return f"M{points[0]}Q{points[1]} {points[2]}"
    return "".join(f"M{start}L{end}" for start, end in zip(points[::2], points[1::2], strict=True))


def _nodes(scene: Scene) -> Iterator[str]:
    time = scene["time"]
    for number, (name, kind, label, *place, rank) in enumerate(scene["nodes"]):
        told, load = name, ""
        if rank >= 0 and kind == "endpoint" and name != f"rank {rank}":
            told += f" (rank {rank})"
        if time is not None and time["nodes"][number] is not None:
            share = time["nodes"][number]
            told, load = f"{told}: its ports are busy {share:.0%} of the time", f" b{colours.step(share)}"
        if kind == "frame":  # it is drawn already
            continue
        yield _box(kind + load, place, told)
        yield from _label(label, place, load)


def _label(label: str, place: Sequence[float], load: str) -> Iterator[str]:
    x, y, width, height = place
    size = min(13.0, height * 0.6, 1.7 * width / max(1, len(label)))
    if label and size >= _LEAST_TEXT:
        at = f'x="{_n(x)}" y="{_n(y + size * 0.36)}" font-size="{_n(size)}" text-anchor="middle"'
        yield f'<text class="on{load}" {at}>{words(label)}</text>'


def _legend(scene: Scene) -> tuple[str, float]:
    """The keys below the drawing, in as many lines as they need, and where they end."""
    drawn, x, y = "", _INDENT, scene["height"] + 12
    for colour, told in _keys(scene):
        wide = 44 + len(told) * 7.2
        if x > _INDENT and x + wide > scene["width"]:
            x, y = _INDENT, y + _LINE
        drawn += f'<rect class="{colour}" x="{_n(x)}" y="{_n(y)}" width="22" height="8" rx="2"/>'
        drawn += f'<text class="quiet" x="{_n(x + 28)}" y="{_n(y + 9)}">{words(told)}</text>'
        x += wide
    return drawn, y + _LINE


def _keys(scene: Scene) -> list[tuple[str, str]]:
    if scene["time"] is not None:
        return [(f"b{step}", colours.edge(step)) for step in (0, 1, 3, 5, 7)]
    found: list[tuple[str, str]] = []
    if scene["classes"] == ["link"]:  # of a fabric without classes
        return found
    for number, kind in enumerate(scene["classes"]):
        rates: list[Any] = sorted({row[3] for row in scene["links"] if row[2] == number and row[3]})
        each = f", {units.format_rate(rates[0])}" if len(rates) == 1 else ""
        found.append((f"k{min(number, colours.KINDS - 1)}", f"{kind}{each}"))
    return found
