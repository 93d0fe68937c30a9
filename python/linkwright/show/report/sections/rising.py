"""The best rate of a sweep, which is claimed only where the sweep shows it.

A sweep whose last size is more than 5 % faster than every smaller one has not reached its best: a larger message would
be faster still.
"""

from __future__ import annotations

from linkwright.base.rows import Rows

from .. import quantity
from . import values

RISING = 0.05


def best(rows: Rows) -> Rows:
    """The row with the best rate at each size, by ascending size."""
    ranked = rows.ordered("size_bytes", "-value")
    return ranked.distinct("size_bytes")


def is_rising(rows: Rows) -> bool:
    """Whether the rate still rises at the largest size; two sizes at least."""
    rates = best(rows)["value"]
    return len(rates) > 1 and bool(rates[-1] > (1 + RISING) * rates[:-1].max())


def words(rows: Rows, about: str = "") -> str:
    """'best 22.3 GB/s ±1.2 % at 256 KiB', or 'still rising at 2 MiB: 22.3 GB/s ±1.2 %'; `about` names the series."""
    row = rows.greatest("value")
    rate, size = values.in_words(row), quantity.size(row["size_bytes"])
    said = f"still rising at {size}: {rate}" if is_rising(rows) else f"best {rate} at {size}"
    return f"{said} ({row[about]})" if about else said
