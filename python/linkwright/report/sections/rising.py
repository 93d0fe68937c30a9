"""The best rate of a sweep, which is claimed only where the sweep shows it.

A sweep whose last size is more than 5 % faster than every smaller one has not reached its best: a larger message would
be faster still.
"""

from __future__ import annotations

import pandas as pd

from .. import quantity
from . import values

RISING = 0.05


def best(rows: pd.DataFrame) -> pd.DataFrame:
    """The row with the best rate at each size, by ascending size."""
    ranked = rows.sort_values(["size_bytes", "value"], ascending=[True, False], kind="stable")
    return ranked.drop_duplicates("size_bytes")


def is_rising(rows: pd.DataFrame) -> bool:
    """Whether the rate still rises at the largest size; two sizes at least."""
    rates = best(rows)["value"].to_numpy()
    return len(rates) > 1 and bool(rates[-1] > (1 + RISING) * rates[:-1].max())


def words(rows: pd.DataFrame, about: str = "") -> str:
    """'best 22.3 GB/s ±1.2 % at 256 KiB', or 'still rising at 2 MiB: 22.3 GB/s ±1.2 %'; `about` names the series."""
    row = rows.loc[rows["value"].idxmax()]
    rate, size = values.in_words(row), quantity.size(row["size_bytes"])
    said = f"still rising at {size}: {rate}" if is_rising(rows) else f"best {rate} at {size}"
    return f"{said} ({row[about]})" if about else said
