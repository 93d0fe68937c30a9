"""Colour and marker of each series, assigned once for a page, by name: an algorithm looks the same in every chart.

Eight colours, which readers with any kind of colour vision can tell apart, times eight markers give 64 looks. Series
are served in reading order. Each takes the free look that shares its colour, then its marker, with the fewest series
that appear in a chart with it, so that two series of one chart never look alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from .model import Choice, Curve, Item, Plot, Report, Section

COLOURS, MARKERS = 8, 8  # --s0 ... of report.css; LW.markers of curve.js

Look = tuple[int, int]  # numbers of the colour and of the marker


def looks(report: Report) -> dict[str, Look]:
    """The look of every series of the page."""
    beside: dict[str, set[str]] = {}
    for plot in _plots(_items(report.sections)):
        names = {of(curve) for curve in plot.curves if _styled(curve)}
        for curve in filter(_styled, plot.curves):
            beside.setdefault(of(curve), set()).update(names - {of(curve)})
    found: dict[str, Look] = {}
    for name, others in beside.items():
        found[name] = _best(others, found)
    return found


def of(curve: Curve) -> str:
    """The series of a curve."""
    return curve.series or curve.name


def _styled(curve: Curve) -> bool:
    return curve.kind != "limit" and not curve.group


def _best(others: Iterable[str], found: Mapping[str, Look]) -> Look:
    near = [found[name] for name in others if name in found]
    taken = set(found.values())
    every = list(product(range(COLOURS), range(MARKERS)))
    free = [look for look in every if look not in taken] or [look for look in every if look not in near] or every

    def clashes(look: Look) -> tuple[int, int, int, int]:
        colour, marker = look
        return sum(c == colour for c, _ in near), sum(m == marker for _, m in near), colour, marker

    return min(free, key=clashes)


def _plots(items: Iterable[Item]) -> Iterator[Plot]:
    for item in items:
        if isinstance(item, Choice):
            yield from _plots(item.items)
        elif isinstance(item, Plot):
            yield item


def _items(sections: Iterable[Section]) -> Iterator[Item]:
    for section in sections:
        yield from section.items
        yield from _items(section.parts)
