"""The text that nccl-tests prints, for the many scripts that read it.

    #       size         count      type   redop    root     time   algbw   busbw #wrong
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)
            1024           256     float     sum      -1    12.34    0.08    0.08      0

Each algorithm on each number of ranks is a table of its own below a comment that names it, because
nccl-tests prints one collective per run. Times are medians of the slowest rank, where nccl-tests
prints a mean; rates follow by the same formulas. There is one group of columns, not two: a schedule is
in place or not, and only that was run. What was not checked has `N/A` wrong elements, as nccl-tests
prints without its check. Intervals, limits and everything but collectives have no place in the format.

`linkwright.formats.logs` reads it back, as it reads what nccl-tests prints.

Source: nccl-tests, src/common.cu (`BenchTime`) and doc/PERFORMANCE.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from linkwright.ask.question import collectives
from linkwright.base.errors import StoreError
from linkwright.base.units import GIGA, NS_PER_US
from linkwright.executors import is_modelled

from .formats import Content, Exporter
from .logs import BYTES

# Our data types by the names that NCCL has for them.
_TYPES = {
    "f32": "float", "f64": "double", "i32": "int32", "i64": "int64", "u8": "uint8", "bf16": "bfloat16", "f16": "half",
    "i8": "int8", "u32": "uint32", "u64": "uint64", "f8e4m3": "f8e4m3", "f8e5m2": "f8e5m2",
}  # fmt: skip
_METRICS = ("time", "alg_bw", "bus_bw")
_HEAD = (
    f"#{'size':>11} {'count':>13} {'type':>9} {'redop':>7} {'root':>7} {'time':>8} {'algbw':>7} {'busbw':>7} #wrong\n"
    f"#{'(B)':>11} {'(elements)':>13} {'':>9} {'':>7} {'':>7} {'(us)':>8} {'(GB/s)':>7} {'(GB/s)':>7}\n"
)


def _render(content: Content) -> str:
    """All collectives of a run; a run without any is an error."""
    rows = [row for row in content.rows if row["collective"] and row["metric"] in _METRICS]
    rows = [row for row in rows if row["value"] is not None]
    if not rows:
        raise StoreError(f"{content.run}: holds no finished collective; `--as csv` writes all its rows")
    lines = [f"# linkwright {content.run}; times are medians of the slowest rank\n"]
    for name, its_rows in itertools.groupby(rows, key=_table_name):
        lines += [f"#\n# {name}\n", _HEAD, *_lines(its_rows)]
    return "".join([*lines, "# Out of bounds values : 0 OK\n"])


def _table_name(row: dict) -> str:
    return f"{row['collective']}/{row['algorithm']}, {row['ranks']} ranks, {row['executor']} on {row['machine']}"


def _lines(rows: Iterable[dict]) -> Iterator[str]:
    for _, its_rows in itertools.groupby(rows, key=lambda row: row["experiment"]):
        metrics = {row["metric"]: row for row in its_rows}
        time = metrics.get("time")
        if time is not None:
            yield _line(time, *(metrics.get(name, {}).get("value") for name in _METRICS[1:]))


def _line(time: dict, alg_bw: float | None, bus_bw: float | None) -> str:
    count = time["size_bytes"] // BYTES[time["dtype"]]
    rates = "".join(f" {_number(rate and rate / GIGA, 7)}" for rate in (alg_bw, bus_bw))
    unchecked = is_modelled(time["executor"]) or "unchecked" in (time["flags"] or "").split(",")
    return (
        f"{time['size_bytes']:>12} {count:>13} {_TYPES[time['dtype']]:>9} {time['op'] or 'none':>7} {_root(time):>7} "
        f"{_number(time['value'] / NS_PER_US, 8)}{rates} {'N/A' if unchecked else '0':>6}\n"
    )


def _number(value: float | None, width: int) -> str:
    """Three significant digits at least, because the format's two decimals lose small values."""
    if value is None:
        return f"{'N/A':>{width}}"
    return f"{value:>{width}.2f}" if value >= 1 else f"{value:>{width}.3g}"


def _root(row: dict) -> int:
    """The root, or -1 for a collective without one."""
    traits = collectives().get(row["collective"])
    return row["root"] if traits and traits["rooted"] else -1


_SUMMARY = "the text of nccl-tests: size, count, type, redop, root, time, algbw, busbw, #wrong"
_SOURCE = "nccl-tests, src/common.cu and doc/PERFORMANCE.md"
EXPORTER = Exporter(
    "nccl-tests",
    _SUMMARY,
    "One table for each collective, algorithm and number of ranks, with medians as times. Holds no intervals, limits, "
    "point-to-point experiments or probes; those stay in `csv` and `json`.",
    _SOURCE,
    _render,
    needs="finished collectives",
)
