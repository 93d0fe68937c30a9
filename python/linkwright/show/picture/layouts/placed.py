"""A machine on a plane: a box per node, a path per edge."""

from __future__ import annotations

from dataclasses import dataclass, field

WIDTH = 1200.0
LETTER = 6.8  # width of a letter
BOX = 26.0  # height of a box with text
MARGIN = 8.0


@dataclass(frozen=True)
class Box:
    """A rectangle around its centre (x, y)."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Where everything is.

    Attributes:
        height: of the drawing; its width was given.
        boxes: by node.
        paths: by edge: two points; or a start, a control point and an end; or two stubs of two points each.
        frames: boxes of groups, with their names.
        behind: edges that are drawn behind the frames, because they pass other groups.
    """

    height: float
    boxes: list[Box]
    paths: list[tuple[float, ...]]
    frames: list[tuple[Box, str]] = field(default_factory=list)
    behind: frozenset[int] = frozenset()


def straight(a: Box, b: Box) -> tuple[float, ...]:
    """From centre to centre."""
    return a.x, a.y, b.x, b.y


def bent(a: Box, b: Box, share: float = 0.15) -> tuple[float, ...]:
    """A curve beside the straight line, by a share of its length."""
    across, down = b.x - a.x, b.y - a.y
    return a.x, a.y, (a.x + b.x) / 2 - down * share * 2, (a.y + b.y) / 2 + across * share * 2, b.x, b.y


def named(name: str, most: float) -> float:
    """The width of a box for a name, at most `most`."""
    return min(most, len(name) * LETTER + 16)
