"""Cells that tables of several pages have: a modelled time, a share with its bar, a count, a size."""

from __future__ import annotations

from linkwright.base.units import NS_PER_S

from . import quantity
from .model import Cell


def time(time_ns: float, detail: str = "") -> Cell:
    """A time, such as 4.2 ms."""
    return Cell(quantity.text(time_ns / NS_PER_S, "s"), time_ns, detail)


def share(share: float) -> Cell:
    """A share with its bar, such as 12.3 %."""
    return Cell(f"{100 * share:.1f} %", share, share=min(1.0, share))


def count(number: int) -> Cell:
    """A count, such as 4,096; a dash below 0."""
    return Cell("—" if number < 0 else f"{number:,}", number)


def size(size_bytes: float) -> Cell:
    """A size, such as 64 KiB."""
    return Cell(quantity.size(size_bytes), size_bytes)
