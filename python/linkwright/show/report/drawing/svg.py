"""Pieces of a drawing: elements, a scale of colours that colour-blind readers can order, its legend.

Every drawing is 420 units wide, so that its text is readable without magnification on a telephone. Colours are classes
(`q0` is least, `q5` most) which the style sheet of the page defines; every coloured shape has its value as a tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import escape

from .. import quantity

WIDTH = 420.0
STEPS = 6
LEGEND_HEIGHT = 34.0
_LOG_FROM = 5.0  # a range of more than this factor is shown on a logarithmic scale
_LEAST_RANGE = 1.1  # values closer than this factor do not fill the scale, because they hardly differ


def element(tag: str, content: str = "", **attributes: object) -> str:
    """One element; `content` is markup already, attribute values are escaped, `_` in names is `-`."""
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for name, value in attributes.items()
        if value != ""
    )
    return f"<{tag}{named}>{content}</{tag}>"


def _short(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    """Words at a place; `kind` is a class: `name`, `quiet`."""
    return element("text", str(escape(words)), x=x, y=y, class_=kind, text_anchor="" if anchor == "start" else anchor)


def box(place: tuple[float, float, float, float], kind: str, tip: str = "", radius: float = 3.0) -> str:
    """A rectangle (x, y, width, height) with a tooltip."""
    x, y, width, height = place
    told = element("title", str(escape(tip))) if tip else ""
    return element("rect", told, x=x, y=y, width=width, height=height, rx=min(radius, width / 4), class_=kind)


def label(x: float, y: float, words: str, value: str = "") -> str:
    """The words in the middle of a shape, in an ink that is legible on its colour."""
    return text(x, y + 4, words, f"on {value}".strip())


def drawing(height: float, parts: Iterable[str], about: str) -> str:
    """The whole drawing; `about` is read out to those who cannot see it."""
    body = element("title", str(escape(about))) + "".join(parts)
    return element("svg", body, viewBox=f"0 0 {WIDTH:g} {height:.0f}", role="img", class_="machine")


@dataclass(frozen=True)
class Scale:
    """Values in a base unit as one of `STEPS` colours, the least as `q0`."""

    low: float
    high: float
    unit: str

    @classmethod
    def of(cls, values: Iterable[float], unit: str) -> Scale | None:
        """From the least to the greatest of the values; None if there are none."""
        found = [value for value in values if math.isfinite(value)]
        if not found or min(found) == max(found):
            return cls(found[0], found[0], unit) if found else None
        return cls(min(found), max(max(found), _LEAST_RANGE * min(found)), unit)

    @property
    def logarithmic(self) -> bool:
        """Whether equal steps are equal factors."""
        return self.low > 0 and self.high > _LOG_FROM * self.low

    def colour(self, value: float | None) -> str:
        """The class of a value; `none` where there is no value."""
        if value is None or not math.isfinite(value):
            return "none"
        place = self._place(value)
        return f"q{min(STEPS - 1, max(0, int(place * STEPS)))}"

    def _place(self, value: float) -> float:
        if self.high <= self.low:
            return 0.0
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def edges(self) -> list[float]:
        """The values at which the colours change, with both ends."""
        if self.logarithmic:
            return [self.low * (self.high / self.low) ** (k / STEPS) for k in range(STEPS + 1)]
        return [self.low + (self.high - self.low) * k / STEPS for k in range(STEPS + 1)]

    def words(self, value: float) -> str:
        """The value with three digits."""
        return quantity.text(float(f"{value:.3g}"), self.unit)

    def legend(self, top: float, title: str) -> list[str]:
        """A bar of all colours below a drawing, with its ends in words."""
        if self.high <= self.low:
            return [box((4, top + 18, 26, 11), "q0"), text(38, top + 28, self.words(self.low), anchor="start"),
                    text(4, top + 10, title, "quiet", "start")]  # fmt: skip
        width, edges = (WIDTH - 8) / STEPS, self.edges()
        boxes = [box((4 + k * width, top + 16, width, 9), f"q{k}", radius=0) for k in range(STEPS)]
        ends: Sequence[tuple[int, str]] = ((0, "start"), (STEPS // 2, "middle"), (STEPS, "end"))
        told = [text(4 + k * width, top + 37, self.words(edges[k]), anchor=anchor) for k, anchor in ends]
        return [text(4, top + 10, title, "quiet", "start"), *boxes, *told]
