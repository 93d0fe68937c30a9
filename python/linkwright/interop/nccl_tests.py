"""The text that nccl-tests prints, for the many scripts that read it.

    #       size         count      type   redop    root     time   algbw   busbw #wrong
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)
            1024           256     float     sum      -1    12.34    0.08    0.08      0

Each algorithm on each number of ranks is a table of its own below a comment that names it, because
nccl-tests prints one collective per run. Times are medians of the slowest rank, where nccl-tests
prints a mean; rates follow by the same formulas. There is one group of columns, not two: a schedule is
in place or not, and only that was run. What was not checked has `N/A` wrong elements, as nccl-tests
prints without its check. Intervals, limits and everything but collectives have no place in the format.

Read back, a file must have its header before its numbers, all columns in each line, sizes that grow,
and the line `Out of bounds values` at its end: what lacks one of them was cut or mixed. What the library
logs in between (`NCCL INFO`) and what a shell wrote before are passed over, as are lines of 0 bytes.

Source: nccl-tests, src/common.cu (`BenchTime`) and doc/PERFORMANCE.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from linkwright.errors import StoreError
from linkwright.executors import is_modelled
from linkwright.experiment import DTYPES, MAX_RANKS, OPS

from .formats import Content, Exporter, Importer
from .importing import (
    MOST_MICROS,
    NAME_MOST,
    Defaults,
    Imported,
    Lines,
    check_growth,
    is_name,
    known_collective,
    number_of,
    shown,
    size_of,
    whole_of,
)

# Our data types by the names that NCCL has for them.
_TYPES = {"f32": "float", "f64": "double", "i32": "int32", "i64": "int64", "u8": "uint8", "bf16": "bfloat16"}
# Its operators; the last three are none of ours, so they are only shown.
_OPS = ("none", *OPS, "avg", "mulsum", "all")
# Lines of the library among those of the benchmark.
_OTHER = re.compile(r"\b[NR]CCL (INFO|WARN|TRACE|ABORT|version)\b")
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
        raise StoreError(f"{content.run}: holds no finished collective; `--as csv` writes whatever it holds")
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
    count = time["size_bytes"] // DTYPES[time["dtype"]]
    rates = "".join(f" {_number(rate and rate / 1e9, 7)}" for rate in (alg_bw, bus_bw))
    unchecked = is_modelled(time["executor"]) or "unchecked" in (time["flags"] or "").split(",")
    return (
        f"{time['size_bytes']:>12} {count:>13} {_TYPES[time['dtype']]:>9} {time['op'] or 'none':>7} {_root(time):>7} "
        f"{_number(time['value'] / 1e3, 8)}{rates} {'N/A' if unchecked else '0':>6}\n"
    )


def _number(value: float | None, width: int) -> str:
    """Three significant digits at least, because the format's two decimals lose small values."""
    if value is None:
        return f"{'N/A':>{width}}"
    return f"{value:>{width}.2f}" if value >= 1 else f"{value:>{width}.3g}"


def _root(row: dict) -> int:
    """The root, or -1 for a collective without one."""
    from linkwright import _native

    rooted = {entry["key"] for entry in _native.collectives() if entry["rooted"]}
    return row["root"] if row["collective"] in rooted else -1


_TABLE = re.compile(r"# (\w+)/(\S+), (\d+) ranks, (\S+) on (.+)")
_STARTING = re.compile(r"#\s*Collective test starting: (\w+)_perf")
_COLUMNS = 9


def parse(path: Path, text: str, defaults: Defaults) -> list[Imported]:
    """All numbers of a file."""
    lines = Lines(path, text)
    found: list[Imported] = []
    table = Imported(
        0, defaults.collective, "nccl", defaults.ranks or 0, 0, "", None, 0, "time", 0.0, "nccl-tests", defaults.machine
    )
    headed, ended, before, devices = False, False, None, 0
    for number, line in lines:
        if line.startswith("#"):
            table = _named(lines, number, line, table)
            devices += bool(re.match(r"#\s+Rank\s+\d+\s", line))
            ended = ended or "Out of bounds values" in line
            if re.match(r"#\s+size\s+count\s+type", line):
                headed, before = True, None
        elif line.strip() and not _OTHER.search(line) and (headed or line.split()[0].isdecimal()):
            if not headed:
                raise lines.refuse(number, "numbers before the header `# size count type ...`; give whole files")
            if ended:
                raise lines.refuse(
                    number, "numbers after `# Out of bounds values`: two outputs were joined; split them"
                )
            read = _read(lines, number, line.split(), replace(table, ranks=table.ranks or devices))
            if not read.size_bytes:
                continue  # fewer bytes than ranks, so nothing was sent
            found.append(read)
            check_growth(lines, number, found[-1].size_bytes, before)
            before = found[-1].size_bytes
    if not found or not ended:
        end = max(1, len(lines.lines))
        raise lines.refuse(end, "the file ends before `# Out of bounds values`, so it is cut; run the benchmark again")
    return found


def _named(lines: Lines, number: int, line: str, table: Imported) -> Imported:
    """The table with what a comment says of it: our own name of a table, or nccl-tests' beginning."""
    if match := _TABLE.match(line):
        words = ("collective", "algorithm", "ranks", "executor", "machine")
        said = dict(zip(words, match.groups(), strict=True))
        ranks = whole_of(lines, number, said["ranks"], "number of ranks", MAX_RANKS)
        table = replace(table, **{**said, "ranks": ranks})
    elif match := _STARTING.match(line):
        table = replace(table, collective=match[1].replace("all_", "all"))
    else:
        return table
    if table.collective is None or not known_collective(table.collective):
        raise lines.refuse(number, f"collective `{shown(str(table.collective))}` is unknown; leave the table out")
    for name in (table.algorithm, table.executor, table.machine):
        if not is_name(name):
            raise lines.refuse(number, f"`{shown(name)}` is no name; give 1 to {NAME_MOST} printable characters")
    return table


def _read(lines: Lines, number: int, words: list[str], table: Imported) -> Imported:
    if len(words) < _COLUMNS:
        raise lines.refuse(number, f"{len(words)} columns, at least {_COLUMNS} expected; the line is cut")
    if table.collective is None:
        raise lines.refuse(number, "the file does not name its collective; give it with --collective")
    if not table.ranks:
        raise lines.refuse(number, "the file does not list its ranks; give their number with --ranks")
    types = {nccl: ours for ours, nccl in _TYPES.items()}
    size, _, kind, op, root, time = words[:6]
    if kind not in types:
        raise lines.refuse(number, f"type `{shown(kind)}` is not one of {', '.join(types)}; leave the line out")
    if words[8] not in ("0", "N/A"):
        raise lines.refuse(number, f"{shown(words[8])} wrong elements: a wrong result has no time; mend the run")
    if op not in _OPS:
        raise lines.refuse(number, f"redop `{shown(op)}` is not one of {', '.join(_OPS)}; leave the line out")
    return replace(
        table,
        line=number,
        size_bytes=size_of(lines, number, size),
        dtype=types[kind],
        op=None if op == "none" else op,
        root=0 if root == "-1" else whole_of(lines, number, root, "root", table.ranks - 1),
        value=number_of(lines, number, time, "time", MOST_MICROS) * 1e3,
    )


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
IMPORTER = Importer(
    "nccl-tests",
    _SUMMARY,
    "Reads what nccl-tests prints, and what `export` wrote. Times are means over iterations, so rows have no interval; "
    "a line with wrong elements is refused. Of the two groups of columns only the first, out of place, is read.",
    _SOURCE,
    parse,
)
