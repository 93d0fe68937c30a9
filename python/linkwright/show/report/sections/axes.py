"""The axes of a probe other than ranks and size, in words that name a series.

The column `axes` of a row has the form `order=random pages=4K neighbours=0`. Only axes that differ within a part name a
series.
"""

from __future__ import annotations

import numpy as np

from linkwright.base.rows import Column, Row, Rows, given, mapped, unique

from . import values


def stated(text: object) -> dict[str, str]:
    """`order=random pages=4K` as a mapping; empty for a schedule."""
    return dict(word.split("=", 1) for word in str(text).split() if "=" in word)


def variants(rows: Rows, leave_out: tuple[str, ...] = ()) -> Column:
    """For each row, the values of the axes that vary among the rows of its part, probe and metric."""
    found = np.full(len(rows), "", dtype=object)
    probes = rows.assign(place=np.arange(len(rows)))[given(rows["axes"])]
    for _, part in probes.by("part", "algorithm", "metric"):
        by_text = {text: stated(text) for text in unique(part["axes"])}
        keys = [key for key in next(iter(by_text.values())) if key not in leave_out]
        varied = [key for key in keys if len({axes.get(key) for axes in by_text.values()}) > 1]
        named = {text: ", ".join(word(key, axes.get(key, "")) for key in varied) for text, axes in by_text.items()}
        found[part["place"]] = [named[text] for text in part["axes"]]
    return found


def where(rows: Rows, **wanted: str) -> Rows:
    """The rows whose axes have these values; an axis that a row does not state matches any value."""
    kept = mapped(
        rows["axes"], lambda text: all(stated(text).get(key, value) == value for key, value in wanted.items())
    )
    return rows[kept.astype(bool)]


def word(key: str, value: str) -> str:
    """A word explains itself (`compare and swap`); a number needs the name of its axis (`pages 4K`)."""
    return f"{values.words(key)} {value}" if value[:1].isdigit() else values.words(value)


def pages(row: Row) -> str:
    """`pages of 2 MiB`, if the row states its pages."""
    size = stated(row["axes"]).get("pages")
    return f"pages of {size[:-1]} {size[-1]}iB" if size else ""
