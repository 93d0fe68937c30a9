"""Results of tests: our own lines, logs of benchmarks, and run folders of the pattern `pairs`.

    *.jsonl        lines that `locate --run` wrote: test, cells, bytes per second; the machine's name is checked
    [ROUND.]HOST+HOST[+HOST].log   nccl-tests sendrecv, OSU bandwidth or perftest between these hosts; `2@HOST` is
                   rank 2 of a host. Logs with the same `ROUND.` were run at the same time
    a run folder   `linkwright run pattern/pairs --on mpi`: one number for all its messages, the slowest

nccl-tests sendrecv is a ring both ways between two ranks; OSU and perftest send from the first to the second.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from linkwright.base import files
from linkwright.base.errors import FileError
from linkwright.base.units import GIGA, KILO, format_gb_per_s
from linkwright.formats.logs import read_log

from .effects import FaultModel
from .parts import HostLayout
from .posterior import Observation
from .rounds import Cell, Test

KIND = "linkwright locate"
MOST_LINES, MOST_CELLS = 10_000, 1 << 16
_MOST_RATE = 1e15
# A rate that is faster than the wire by more times the noise is impossible; unless most of so many rates are.
_FASTER, _AGREE = 5.0, 4
_APART = 5.0  # times the noise: two results of one message that differ more contradict each other


@dataclass(frozen=True)
class Results:
    """What some files say.

    Attributes:
        seen: the tests, in order.
        remarks: what was left out, in words.
    """

    seen: tuple[Observation, ...]
    remarks: tuple[str, ...]


def read(paths: Sequence[Path], layout: HostLayout, hosts: Sequence[str]) -> Results:
    """Read the results of tests.

    Args:
        paths: files and run folders.
        layout: of the machine that they are said to be of.
        hosts: names of its hosts as logs and files spell them.

    Raises:
        FileError: a file is of another machine, of no known format, or names hosts that the machine has not.
    """
    seen: list[Observation] = []
    remarks: list[str] = []
    together: dict[str, list[tuple[list[Cell], list[float], str]]] = {}
    for path in paths:
        if not path.exists():
            raise FileError(
                f"{path}: no such file; give the results of tests: a log, a file written by --log, or a run"
            )
        name = files.shown_name(path.name)
        if path.is_dir():
            seen += _folder(path, layout, remarks)
        elif path.suffix == ".jsonl":
            seen += _lines(path, layout, remarks)
        else:
            turn, ranks = _named(path, layout, hosts)
            cells, rates = _log(path, ranks)
            together.setdefault(turn or name, []).append((cells, rates, name))
    for turn, its in together.items():
        cells = [cell for found, _, _ in its for cell in found]
        if len(set(cells)) < len(cells):
            raise FileError(f"{its[0][2]}: {turn} has two logs of the same pair; name repeated tests differently")
        rates = [rate for _, found, _ in its for rate in found]
        seen.append(Observation(Test(turn, tuple(cells)), tuple(rates), its[0][2] if len(its) == 1 else turn))
    if not any(rate == rate for one in seen for rate in one.rates):
        raise FileError(f"{', '.join(str(path) for path in paths)}: no test has a rate; run one and give its results")
    return Results(tuple(seen), tuple(remarks))


@dataclass(frozen=True)
class ImpossibleRate:
    """A rate of a result that is faster than the links of its message: (source, target) ranks, bytes per second."""

    source: str
    flow: tuple[int, int]
    rate: float
    most: float


@dataclass(frozen=True)
class CheckedRates:
    """Results next to what the described links carry.

    Attributes:
        seen: the results, with NaN in place of impossible rates.
        impossible: those that were set aside.
        above: how many rates are above; if most of several are, the description is what is wrong, and none is set
            aside.
        count: how many rates there are.
    """

    seen: tuple[Observation, ...]
    impossible: tuple[ImpossibleRate, ...]
    above: int
    count: int

    @property
    def usable(self) -> bool:
        """Whether any rate is possible."""
        return any(rate == rate for one in self.seen for rate in one.rates)

    def words(self, name: Callable[[int], str]) -> Iterator[str]:
        """Sentences about them; `name` is that of a rank."""
        if self.above > len(self.impossible):
            yield (
                f"{self.above} of {self.count} rates are above what their links are described to carry; correct the "
                "machine file"
            )
        for one in self.impossible:
            a, b = map(name, one.flow)
            yield (
                f"impossible: {one.source}: {a} to {b} at {format_gb_per_s(one.rate / GIGA, 4)}, and its links carry "
                f"{format_gb_per_s(one.most / GIGA, 4)}; set aside: repeat the test, or correct the machine file"
            )


def contradictions(seen: Iterable[Observation], name: Callable[[int], str], noise: float) -> list[str]:
    """Sentences about messages that were fast in one test and slow in the same test at another time."""
    known: dict[tuple[Test, Cell], tuple[float, str]] = {}
    found = []
    for one in seen:
        for cell, rate in zip(one.test.cells, one.rates, strict=True):
            before = known.setdefault((one.test, cell), (rate, one.source or one.test.name))
            if rate == rate and before[0] == before[0] and abs(math.log(rate / before[0])) > _APART * noise:
                a, b = map(name, cell[0])
                found.append(
                    f"{a} to {b}: {format_gb_per_s(before[0] / GIGA, 4)} in {before[1]} and "
                    f"{format_gb_per_s(rate / GIGA, 4)} in "
                    f"{one.source or one.test.name}, the same test: both count; a fault may come and go"
                )
    return found[:10]


def possible(model: FaultModel, seen: Sequence[Observation], noise: float) -> CheckedRates:
    """Set aside rates that no described link carries."""
    above = [np.nan_to_num(np.array(one.rates)) > (1 + _FASTER * noise) * model.most(one.test) for one in seen]
    rates = sum(sum(rate == rate for rate in one.rates) for one in seen)
    count = sum(int(its.sum()) for its in above)
    if rates >= _AGREE and 2 * count > rates:
        return CheckedRates(tuple(seen), (), count, rates)
    kept, aside = [], []
    for one, its in zip(seen, above, strict=True):
        most = model.most(one.test) if its.any() else ()
        aside += [
            ImpossibleRate(one.source or one.test.name, one.test.cells[at][0], one.rates[at], float(most[at]))
            for at in np.flatnonzero(its).tolist()
        ]
        kept.append(replace(one, rates=tuple(np.where(its, np.nan, one.rates).tolist())))
    return CheckedRates(tuple(kept), tuple(aside), count, rates)


def line(machine: str, ranks: int, one: Observation, size: int) -> str:
    """The line of a test for a file of results."""
    rates = [None if rate != rate else round(rate) for rate in one.rates]
    value = {
        "kind": KIND, "machine": machine, "ranks": ranks, "test": one.test.name, "size_bytes": size,
        "cells": one.test.cells, "bytes_per_s": rates,
    }  # fmt: skip
    return json.dumps(value, separators=(",", ":")) + "\n"


def _lines(path: Path, layout: HostLayout, remarks: list[str]) -> list[Observation]:
    text = files.read_text(path, "results of tests")
    rows = text.splitlines()
    if len(rows) > MOST_LINES:
        raise FileError(f"{path}: more than {MOST_LINES:,} lines; give the latest")
    found = []
    for number, row in enumerate(rows, 1):
        where = f"{path}:{number}"
        try:
            value = json.loads(row)
        except (ValueError, RecursionError):
            if number == len(rows) and not text.endswith("\n"):
                remarks.append(f"{where}: the last test is cut off and left out")
                break
            raise FileError(
                f"{where}: not a line of results; give a file that `locate --run --log FILE` wrote"
            ) from None
        found.append(_row(value, where, layout))
    return found


def _row(value: object, where: str, layout: HostLayout) -> Observation:
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise FileError(f"{where}: not a line of results; give a file that `locate --run --log FILE` wrote")
    if value.get("machine") != layout.name or value.get("ranks") != layout.machine.ranks:
        said = f"{str(value.get('machine'))[:80]} with {str(value.get('ranks'))[:20]} ranks"
        raise FileError(
            f"{where}: results of {said}, not of {layout.name} with {layout.machine.ranks}; name that machine with --on"
        )
    cells, rates, name = value.get("cells"), value.get("bytes_per_s"), value.get("test")
    fits = isinstance(cells, list) and isinstance(rates, list) and 0 < len(cells) == len(rates) <= MOST_CELLS
    if not (fits and isinstance(name, str) and all(map(_is_rate, rates))):
        raise FileError(f"{where}: `cells` and `bytes_per_s` are lists of equal length, of pairs of ranks and of rates")
    made = []
    for cell in cells:
        good = isinstance(cell, list) and 0 < len(cell) <= MOST_CELLS and all(_is_flow(flow, layout) for flow in cell)
        if not good:
            raise FileError(
                f"{where}: {str(cell)[:60]}: is no list of [from, to] of ranks 0 to {layout.machine.ranks - 1}"
            )
        made.append(tuple((flow[0], flow[1]) for flow in cell))
    return Observation(
        Test(name[:80], tuple(made)), tuple(math.nan if rate is None else float(rate) for rate in rates), where
    )


def _is_rate(value: object) -> bool:
    return value is None or (type(value) in (int, float) and 0 < value <= _MOST_RATE)  # type: ignore[operator]


def _is_flow(flow: object, layout: HostLayout) -> bool:
    if not isinstance(flow, list) or len(flow) != 2 or any(type(end) is not int for end in flow):
        return False
    return flow[0] != flow[1] and all(0 <= end < layout.machine.ranks for end in flow)


def _named(path: Path, layout: HostLayout, hosts: Sequence[str]) -> tuple[str, list[int]]:
    """The round and the ranks that the name of a log states."""
    stem = files.shown_name(path.name).removesuffix(".log").removesuffix(".txt")
    number = {host: at for at, host in enumerate(hosts)}
    head, dot, rest = stem.partition(".")
    turn, stem = (head, rest) if dot and "+" in rest and _ends(head)[1] not in number else ("", stem)
    ranks = []
    for text in stem.split("+"):
        place, host = _ends(text)
        if host not in number or "+" not in stem:
            raise FileError(
                f"{path.name}: a log is named by its hosts, `[round.]{hosts[0]}+{hosts[-1]}.log`, and {host[:60]} is "
                f"none of {layout.name}; rename it, or give the names with --hosts"
            )
        if not 0 <= place < layout.each:
            raise FileError(f"{path.name}: {text[:60]}: a host has ranks 0 to {layout.each - 1}")
        ranks.append(layout.ranks_of[number[host]][place])
    if len(set(ranks)) < len(ranks):
        raise FileError(f"{path.name}: names a rank twice; a message needs two")
    return turn, ranks


def _ends(text: str) -> tuple[int, str]:
    place, at, host = text.partition("@")
    return (int(place), host) if at and place.isdecimal() and len(place) < 6 else (0, text)


def _log(path: Path, ranks: Sequence[int]) -> tuple[list[Cell], list[float]]:
    """The one number of a log, at its largest size, and the messages behind it."""
    log = read_log(path)
    forth = tuple(zip(ranks, (*ranks[1:], ranks[0]), strict=True))
    found: list[tuple[int, float, Cell]] = []
    for table in log.tables:
        if table.collective == "sendrecv" or table.quantity == "bandwidth":
            if table.ranks not in (None, len(ranks)):
                raise FileError(f"{path}: was run on {table.ranks} ranks, and its name states {len(ranks)}; rename it")
            if table.quantity == "bandwidth" and len(ranks) != 2:
                raise FileError(f"{path}: {table.tool} bandwidth is of two ranks, and its name states {len(ranks)}")
            for row in table.rows:
                rate = row.algbw or (row.size / row.time / KILO if row.time else 0.0)
                cell = forth[:1] if table.quantity == "bandwidth" else forth
                found.append((row.size, rate, cell))
    for link in log.links:
        if link.medium == "port" and link.rate and len(ranks) == 2:
            both = link.both_ways
            found.append((link.size or 0, link.rate / (2 if both else 1), forth if both else forth[:1]))
    found = [one for one in found if one[1] > 0]
    if not found:
        raise FileError(
            f"{path}: has no rate of a message; give the log of nccl-tests sendrecv_perf, of osu_bw, or of ib_write_bw"
        )
    largest = max(size for size, _, _ in found)
    its = [one for one in found if one[0] == largest]
    return [its[0][2]], [min(rate for _, rate, _ in its) * GIGA]


def _folder(path: Path, layout: HostLayout, remarks: list[str]) -> list[Observation]:
    from linkwright.store import run as runs

    rows = runs.find(path.parent, path.name).results()
    found = []
    for at in range(len(rows)):
        row = {name: rows[name][at] for name in _COLUMNS}
        if row["algorithm"] != "pairs" or row["metric"] != "time" or row["status"] != "ok":
            continue
        ranks, size, ns = (_number(row[name]) for name in ("ranks", "size_bytes", "value"))
        if ranks != layout.machine.ranks or not size or not ns:
            remarks.append(f"{path}: {row['experiment']} is of {ranks:g} ranks, not {layout.machine.ranks}: left out")
            continue
        half = layout.machine.ranks // 2
        flows = [(a, a + half) for a in range(half)]
        flows += [(b, a) for a, b in flows] if row["both_ways"] else []
        rate = size * max(1.0, _number(row["messages"])) / ns * GIGA
        found.append(Observation(Test(str(row["experiment"]), (tuple(flows),)), (rate,), str(path)))
    if not found:
        raise FileError(f"{path}: holds no times of `pattern/pairs` on {layout.machine.ranks} ranks; run that pattern")
    return found


_COLUMNS = ("experiment", "algorithm", "metric", "status", "ranks", "size_bytes", "value", "messages", "both_ways")


def _number(value: object) -> float:
    return float(str(value)) if value is not None else 0.0
