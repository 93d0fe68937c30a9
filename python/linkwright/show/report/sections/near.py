"""A matrix in words: groups of near pairs, pairs that stand out, and whether both directions are equal."""

from __future__ import annotations

from collections.abc import Iterable

from linkwright.base.rows import Rows
from linkwright.base.stats import near
from linkwright.store.topology import Topology

from .. import quantity
from ..model import Cell, Column, Table
from ..runs import Run, is_rate

_NAMED_PAIRS = 4  # pairs of an anomaly that one line names
_OPEN_ROWS = 16
MODELLED = "The levels of a model are numbered by distance."
MEASURED = (
    "A group is named after what its processors share, as the kernel reports. Pairs that are far from the others with "
    "the same name are flagged. The two directions of a pair count as one, with their mean; their difference is below "
    "the name of the matrix."
)

_COLUMNS = (
    Column("What"),
    Column("Group"),
    Column("Pairs", numeric=True),
    Column("Median", "s", numeric=True),
    Column("Range", "s", numeric=True),
    Column("Of the nearest", numeric=True, help="median over the median of the nearest group"),
    Column("For example"),
)


def table(run: Run, machine: str, matrices: Iterable[tuple[str, Rows]]) -> Table | None:
    """The groups in one machine's matrices, given as (what it shows, rows); matrices of rates have no groups."""
    modelled = bool(run.rows[run.rows["machine"] == machine]["modelled"].all())
    topology = run.topology(machine)
    body = [line for what, rows in matrices for line in _lines(what, rows, topology, modelled)]
    if not body:
        return None
    gap = near.GAP_MODELLED if modelled else near.GAP_MEASURED
    how = f"A group ends where the next value is more than {quantity.percent(gap)} greater."
    how = f"{how} {MODELLED if modelled else MEASURED}"
    return Table(f"{machine}: groups of pairs", _COLUMNS, body, how, collapsed=len(body) > _OPEN_ROWS)


def _lines(what: str, rows: Rows, topology: Topology, modelled: bool) -> list[list[Cell]]:
    rows = rows[(rows["source"] != rows["destination"]) & (rows["value"] > 0)]
    if not len(rows) or is_rate(rows["unit"][0]):
        return []
    gap = near.GAP_MODELLED if modelled else near.GAP_MEASURED
    found = dict(zip(zip(rows["source"], rows["destination"], strict=True), rows["value"], strict=True))
    even = _symmetry_words(near.symmetry(found, gap))
    groups = near.near_groups(found if modelled else near.both_ways(found), topology.relation, gap)
    nearest = min(group.cluster.median for group in groups)
    lines = [_row(group, nearest, "→" if modelled else "–") for group in groups]
    return [[Cell(what, detail="" if number else even), *line] for number, line in enumerate(lines)]


def _symmetry_words(found: near.Symmetry) -> str:
    if not found.worst:
        return "not run in both directions"
    most = f"{100 * (found.worst_ratio - 1):.0f} %"
    if not found.uneven:
        return f"symmetric within {most}"
    pair = f"{found.worst[0]} and {found.worst[1]}"
    return f"not symmetric: {found.uneven:,} of {found.compared:,} pairs, {pair} by {most}"


def _row(group: near.NearGroup, nearest: float, arrow: str) -> list[Cell]:
    cluster, times = group.cluster, group.cluster.median / nearest
    shown = [f"{a} {arrow} {b}" for a, b in sorted(cluster.members)[: _NAMED_PAIRS if group.anomaly else 1]]
    more = len(cluster.members) - len(shown)
    if group.anomaly:
        away = f"{cluster.median / group.typical:.2f}× the others of its group"
        name = Cell("far from its group", detail=f"{group.name}; {away}", tone="warn")
        shown += [f"and {more:,} more"] if more else []
    else:
        name = Cell(group.name, tone="strong")
    low, high = (quantity.text(value, "s") for value in (cluster.low, cluster.high))
    return [
        name,
        Cell(f"{len(cluster.members):,}", len(cluster.members)),
        Cell(quantity.text(cluster.median, "s"), cluster.median),
        Cell(low if low == high else f"{low} – {high}", cluster.low),
        Cell(f"{times:.2f}×", times),
        Cell(", ".join(shown)),
    ]
