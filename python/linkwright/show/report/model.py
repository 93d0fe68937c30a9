"""The parts of a report: plain, frozen data between the builders and the page.

A builder (``dissect``, or a study's) reads results and makes a `Report`. The page (``html``) draws any `Report` and
knows nothing about collectives, machines or papers. A new kind of result therefore needs a builder, never a template.

::

    Report
      Overview                    a machine on the first screen
        Tile, Finding, Picture    values, contradictions, a drawing
      Section                     a heading, a paragraph that explains what is shown, and items
        Table      Column, Cell   sortable; every cell has its text and its sort key
        Plot       Axis, Curve    points with intervals, modelled lines, limits
        HeatMap                   any size up to a few million cells
        BoxPlot    Box            spread over ranks or launches
        WhatIf     Slider, Point  sliders over points that were computed before
        Choice                    one of several charts, which the reader chooses
        Text                      paragraphs or preformatted text

The types enforce three rules: a value has a unit; a missing value is None with a reason (never 0, never "N/A"); a
measured curve is drawn as points with intervals, which a faint line joins, and only a model or a limit is a line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Number = int | float
Tone = Literal["good", "warn", "bad", "quiet"]


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its text, its sort key and its explanation."""

    text: str
    sort: Number | str | None = None  # None: the text itself
    detail: str = ""  # a second line in a muted colour: an interval, a reason
    tone: Literal["", "good", "warn", "bad", "quiet", "strong", "code"] = ""  # code: copied on click
    share: float | None = None  # 0..1: a bar behind the text, for percent of limit
    mark: str = ""  # a word after the text, for what is not a grade: `disturbed`


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    title: str
    unit: str = ""
    numeric: bool = False  # aligned right, sorted as a number
    help: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under column heads; the reader can sort them by any column."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]
    how_to_read: str = ""
    collapsed: bool = False
    empty: str = "Nothing to list."

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r}: row {number} has {len(row)} cells for {len(self.columns)} columns"
                )


@dataclass(frozen=True)
class Axis:
    """`unit` is a base unit (s, B, B/s, %, 1); prefixes are chosen when a number is printed."""

    title: str
    unit: str
    scale: Literal["log2", "log10", "linear"] = "linear"


@dataclass(frozen=True)
class Curve:
    """One series of points: `measured` is drawn as points, `model` as a line with points, `limit` as a dashed line.

    Curves of one `series` (default: the name) have one colour and marker on the whole page; a limit takes the colour of
    the series that it names. Curves of one `group` are drawn in grey, and share one entry of the legend.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    kind: Literal["measured", "model", "limit"] = "measured"
    notes: Sequence[str] = ()  # per point, shown on hover: n, status, name of the limit
    series: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        for part in ("y", "low", "high", "notes"):
            length = len(getattr(self, part))
            if length != len(self.x) and (length or part == "y"):
                raise ValueError(f"curve {self.name!r}: {length} values of {part} for {len(self.x)} of x")


@dataclass(frozen=True)
class Plot:
    """Curves over one pair of axes."""

    title: str
    x: Axis
    y: Axis
    curves: Sequence[Curve]
    how_to_read: str = ""
    wide: bool = False
    dodge: bool = False  # spread measured points of one x sideways, so that none hides another
    summary: str = ""  # one line below the title: what the chart says
    scatter: bool = False  # measured points are not joined


@dataclass(frozen=True)
class HeatMap:
    """A matrix: row = source, column = destination, diagonal = self. NaN is a missing cell, `missing` its reason.

    `ends` are what the lowest and highest colours mean where values are ratios: the scale is then logarithmic with 1 in
    its middle.
    """

    title: str
    unit: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    rows_title: str = "source"
    columns_title: str = "destination"
    scale: Literal["linear", "log10"] = "linear"
    missing: str = "no result"
    how_to_read: str = ""
    wide: bool = False
    ends: Sequence[str] = ()

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.columns))
        for part in ("values", "low", "high"):
            matrix = getattr(self, part)
            if matrix is not None and np.shape(matrix) != shape:
                raise ValueError(f"heat map {self.title!r}: {part} is {np.shape(matrix)}, its names give {shape}")


@dataclass(frozen=True)
class Box:
    """Five numbers of one distribution; `low` and `high` are the ends of the whiskers."""

    name: str
    low: float
    q1: float
    median: float
    q3: float
    high: float
    n: int
    outliers: Sequence[float] = ()


@dataclass(frozen=True)
class BoxPlot:
    """Distributions side by side."""

    title: str
    y: Axis
    boxes: Sequence[Box]
    how_to_read: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Choice:
    """Charts of one kind, of which the reader sees the one that is chosen; first the first."""

    title: str
    items: Sequence[Plot | HeatMap | BoxPlot]
    how_to_read: str = ""


@dataclass(frozen=True)
class Text:
    """Paragraphs, or one preformatted block under a heading that expands on click."""

    paragraphs: Sequence[str]
    title: str = ""
    preformatted: bool = False


@dataclass(frozen=True)
class Moving:
    """The picture of a machine over time, of one schedule or of several in step: scenes of
    `linkwright.show.picture`."""

    scenes: Sequence[Any]
    title: str = ""


@dataclass(frozen=True)
class Slider:
    """One thing that the reader may change: its values in order, and the one that it has first."""

    title: str
    stops: Sequence[str]
    first: int = 0


@dataclass(frozen=True)
class Point:
    """What is true at one setting of all sliders: a text for each name, and a share for each part."""

    texts: Sequence[str]
    shares: Sequence[float]


@dataclass(frozen=True)
class WhatIf:
    """Sliders over points that were computed before.

    The point of stops (i, j, ...) is the one at i, j, ... of an array whose last slider varies fastest; None if there
    is no value. `parts` are the shares of a whole that its bar shows.
    """

    title: str
    sliders: Sequence[Slider]
    names: Sequence[str]  # of what a point tells
    points: Sequence[Point | None]
    parts: Sequence[str]
    how_to_read: str = ""

    def __post_init__(self) -> None:
        expected = math.prod(len(slider.stops) for slider in self.sliders)
        if len(self.points) != expected:
            raise ValueError(f"what-if {self.title!r}: {len(self.points)} points, its sliders have {expected}")


Item = Table | Plot | HeatMap | BoxPlot | Choice | Text | Moving | WhatIf


@dataclass(frozen=True)
class Section:
    """A heading, an explanation of what is shown, and the items."""

    title: str
    items: Sequence[Item] = ()
    intro: str = ""
    parts: Sequence[Section] = ()  # one level of sub-sections
    folded: bool = False  # until the reader opens it


@dataclass(frozen=True)
class Badge:
    """A count in the header: 214 tight, 3 wide."""

    count: int
    label: str
    tone: Tone = "quiet"


@dataclass(frozen=True)
class Tile:
    """One answer on the first screen: a value, how sure it is, and what it is compared with."""

    title: str  # Latency
    value: str  # 62.1 ns; empty if there is none, and `about` says why
    about: str  # at which size, between which endpoints, by which algorithm
    precision: str = ""  # ±1.2 %, or exact
    tone: Literal["", "warn", "quiet"] = ""
    more: Sequence[str] = ()  # further values of the same subject
    compared: Sequence[tuple[str, str]] = ()  # (with what, how the value compares)
    rated: str = ""  # 88 % of limit
    share: float | None = None  # 0..1: a bar, for percent of the limit


@dataclass(frozen=True)
class Finding:
    """Something that contradicts what was claimed, published, seen before or planned."""

    what: str
    than: str  # compared with what
    cure: str  # what to do
    weight: int  # 100: nothing else matters; 10: good to know
    subject: Literal["machine", "run"] = "machine"
    odd: bool = True  # whether it makes its subject suspicious; else it is good to know

    def __str__(self) -> str:
        return f"{self.what}, {self.than}"


@dataclass(frozen=True)
class Picture:
    """A drawing of the machine as one <svg> element, and what its colours mean."""

    title: str
    svg: str
    caption: str


@dataclass(frozen=True)
class Overview:
    """One machine on the first screen."""

    name: str
    kind: str  # measured, or model
    state: Literal["healthy", "suspicious", "unsure"]
    verdict: str
    tiles: Sequence[Tile]
    findings: Sequence[Finding] = ()  # the weightiest first
    picture: Picture | None = None

    @property
    def headline(self) -> str:
        """The state in one or two words; a description is consistent, a machine is healthy."""
        words = {"suspicious": "Suspicious", "unsure": "Not sure"}
        return words.get(self.state, "Consistent" if self.kind == "model" else "Healthy")


@dataclass(frozen=True)
class Report:
    """A whole page: the header, one overview for each machine, and the sections."""

    title: str
    subtitle: str = ""
    facts: Sequence[tuple[str, str]] = ()
    badges: Sequence[Badge] = ()
    overviews: Sequence[Overview] = ()
    sections: Sequence[Section] = field(default_factory=tuple)
