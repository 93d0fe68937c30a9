"""Draws time per message over ranks as an SVG, with the latency of memory as the limit. Used by simulators.py."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 810, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 240, 30, 60
COLOURS = ["#1f6feb", "#d1570a", "#1a7f37", "#8250df", "#bf3989", "#57606a"]


@dataclass(frozen=True)
class Curve:
    """Points (ranks, ns) under one name; a limit is drawn as a broken line without marks."""

    name: str
    points: Sequence[tuple[float, float]]
    limit: bool = False


def chart(curves: Sequence[Curve]) -> str:
    """An SVG with both axes logarithmic."""
    xs = [x for curve in curves for x, _ in curve.points]
    ys = [y for curve in curves for _, y in curve.points]
    x_low, x_high = math.log2(min(xs)), math.log2(max(xs))
    y_low, y_high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [*_axes(at, range(math.ceil(x_low), math.floor(x_high) + 1, 2), range(y_low, y_high + 1))]
    for number, curve in enumerate(curves):
        parts += _curve(at, curve, COLOURS[number % len(COLOURS)], TOP + 14 + 20 * number)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


def _axes(at, doublings: Sequence[int], decades: Sequence[int]) -> list[str]:
    """Grid lines with their numbers, and the names of the axes."""
    parts = []
    (left, bottom), (right, top) = at(2 ** doublings[0], 10 ** decades[0]), at(2 ** doublings[-1], 10 ** decades[-1])
    for power in doublings:
        x, _ = at(2**power, 10 ** decades[0])
        parts.append(f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="#e4e7eb"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{2**power:,}</text>')
    for decade in decades:
        for step in range(1, 10 if decade != decades[-1] else 2):
            _, y = at(2 ** doublings[0], step * 10**decade)
            colour = "#c5ccd3" if step == 1 else "#eef0f2"
            parts.append(f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="{colour}"/>')
        _, y = at(2 ** doublings[0], 10**decade)
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{10**decade:,}</text>')
    middle = (left + right) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 14}" text-anchor="middle">ranks</text>')
    parts.append(f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">'
                 "processor time per message (ns)</text>")  # fmt: skip
    return parts


def _curve(at, curve: Curve, colour: str, key_y: float) -> list[str]:
    """A line with marks, and its entry in the key."""
    colour = "#24292f" if curve.limit else colour
    dash = ' stroke-dasharray="6 4"' if curve.limit else ""
    places = [at(x, y) for x, y in curve.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    key_x = WIDTH - RIGHT + 14
    parts = [
        f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>',
        f'<line x1="{key_x}" y1="{key_y - 4}" x2="{key_x + 22}" y2="{key_y - 4}" stroke="{colour}" '
        f'stroke-width="1.6"{dash}/>',
        f'<text x="{key_x + 28}" y="{key_y}">{curve.name}</text>',
    ]
    if not curve.limit:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>' for x, y in places]
    return parts
