"""Points of figures 4 to 6 that the article's text states, and those that follow from its words.

The article prints no tables of its curves. `stated` are the points that a sentence names, and one that a later study
measured on the chip of a games console; `implied` are those between them ("flat to 512 B", "two or more SPEs reach"),
which are drawn beside the model and count in no error.
"""

from __future__ import annotations

from functools import lru_cache

from linkwright_evidence.published import number, reference_rows


def stated() -> list[dict[str, str]]:
    """The rows of the stated points."""
    return [row for row in reference_rows("cell", "known_points.csv") if row["basis"] != "implied"]


def point(unit: str, operation: str, issue: str, size: int, spes: int | str = "") -> float | None:
    """The latency of a DMA in `ns`, or the rate in `GB/s`: of one SPE, or of `spes` SPEs together."""
    return _values().get((unit, operation, issue, str(size), str(spes)))


@lru_cache(maxsize=1)
def _values() -> dict[tuple[str, ...], float]:
    columns = ("unit", "operation", "issue", "size_bytes", "spes")
    rows = reference_rows("cell", "known_points.csv")
    return {tuple(row[column] for column in columns): float(number(row["value"])) for row in rows}
