"""What the device profiler of tt-metal writes, `profile_log_device.csv`: when each core began and ended each zone.

    ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64
    PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id,
        trace id counter, zone name, type, source line, source file, meta data             (one line in the file)
    0,1,1,BRISC,17212,3120951,0,7,,,RISCV0,ZONE_START,28,sender.cpp,
    0,1,1,BRISC,17213,3121503,0,7,,,RISCV0,ZONE_END,28,sender.cpp,
    0,1,1,BRISC,40121,3121560,8192,7,,,Transaction size in bytes,TS_DATA,60,sender.cpp,

Columns are found by their names, which have changed: `stat value`, `zone phase` with `begin` and `end`, and `run ID`
are the older ones. A zone is a scope of a kernel, or `...-FW` and `...-KERNEL` around all of it. Its time is that of
the slowest core. Runs of a program have a number (`run host ID`), and a zone that a core enters several times in a run
has as many times.

    kernel's zone      a table for each name, place in the source, processor and set of cores; a time for each entry
    firmware's zone    the same for each run, since nothing says which program it was
    #2                 the second of those that have the same name, bytes and number of cores
    stated numbers     of the vendor's data-movement tests: bytes and number of transactions, network and test

Cores of one chip share a clock, as the vendor's own analysis assumes. A zone that does not end is left out: the buffer
of its core was full. A core may not be read twice, so a second heading is refused.

Source: tt-metal, tt_metal/impl/profiler/profiler.cpp (`writeCSVHeader`), tools/tracy/process_device_log.py and
tests/tt_metal/tt_metal/data_movement; the older columns: tt_metal/tools/profiler, versions of 2024.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from linkwright.base.units import KILO

from .facts import Facts
from .kinds import Log, LogRow, LogTable, Reader, Zone
from .lines import MOST_RATE, MOST_ROWS, MOST_SIZE, Complaints, Source, number, shown, whole

TOOL = "tt-metal profiler"
_HEAD = re.compile(r"ARCH: (\w+), CHIP_FREQ\[MHz\]: (\S+?)(?:, Max Compute Cores: \d+)?\s*")
# Columns in the order in which they are taken; others say nothing of a time.
_RUN, _TRACE = "run host id", ("trace id", "trace id counter")
_ORDER = (
    "pcie slot", "core_y", "core_x", "time[cycles since reset]", "data", _RUN, "risc processor type", *_TRACE,
    "zone name", "type", "source line", "source file",
)  # fmt: skip
_MAY_MISS, _UNUSED = (_RUN, *_TRACE), ("timer_id", "run id", "meta data")
_RENAMED = {"stat value": "data", "zone phase": "type"}
_PROCESSORS = ("BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2", "ERISC")
_STARTS, _ENDS, _SUMS = ("ZONE_START", "begin"), ("ZONE_END", "end"), ("ZONE_TOTAL", "sum")
_STATED, _POINTS = "TS_DATA", ("TS_EVENT", "TS_DATA_16B")
_FIRMWARE = ("-FW", "-KERNEL")
_MOST_MARKERS = 4 * MOST_ROWS
_MOST_CYCLES, _MOST_PLACE, _MOST_MHZ, _MOST_NAME = (1 << 64) - 1, 1 << 16, 100_000, 120
# What the vendor's data-movement tests state of a run.
_BYTES, _COUNT, _NETWORK, _TEST = (
    "Transaction size in bytes", "Number of transactions", "NoC Index", "Test id",
)  # fmt: skip

_Core = tuple[int, int, int]  # chip, y, x: the order of ranks
_Run = tuple[int, str, str]  # run, trace, its replay
_Stated = tuple[tuple[str, int], ...]
_Columns = tuple[Callable[[list[str]], tuple[str, ...]], int]


class _Scope(NamedTuple):
    """A place in the source, on one kind of processor."""

    name: str
    risc: str
    line: str
    file: str

    @property
    def is_firmware(self) -> bool:
        return self.name.endswith(_FIRMWARE)


class _Entry(NamedTuple):
    """A zone of one core: when it began, how long it took, in cycles, and where that stands."""

    begun: int
    cycles: int
    at: int


class _Markers:
    """The markers of a file, by run."""

    def __init__(self) -> None:
        # (run, scope) -> core -> (time, line, whether it ends); else the line decides: ends stand below starts
        self.ends: dict[tuple[_Run, _Scope], dict[_Core, list[tuple[int, int, bool]]]] = {}
        self.sums: dict[tuple[_Run, _Scope], dict[_Core, list[_Entry]]] = {}
        self.stated: dict[tuple[_Run, str], dict[_Core, dict[str, int]]] = {}
        self.left_out = Complaints()

    def found(self) -> Iterator[tuple[_Run, _Scope, dict[_Core, list[_Entry]]]]:
        """The zones of each run; a core that lost one end of a zone has none of it."""
        yield from ((*key, by_core) for key, by_core in self.sums.items())
        for (run, scope), by_core in self.ends.items():
            entries = {core: self._entries(scope, core, its) for core, its in by_core.items()}
            if all(entries.values()):
                yield run, scope, entries

    def _entries(self, scope: _Scope, core: _Core, its: list[tuple[int, int, bool]]) -> list[_Entry]:
        opened: list[tuple[int, int]] = []
        found: list[_Entry] = []
        for time, at, ends in sorted(its):
            if not ends:
                opened.append((time, at))
                continue
            if not opened:
                break
            begun, first = opened.pop()
            found.append(_Entry(begun, time - begun, first))
        if opened or 2 * len(found) != len(its):
            self.left_out.add(its[0][1], f"`{scope.name}` of core {core[2]},{core[1]} has a start without an end")
            return []
        return sorted(found)


def read(source: Source) -> Log:
    """A table for each zone, with the time of its slowest core."""
    complaints, markers = Complaints(), _Markers()
    columns: _Columns | None = None
    mhz, skipped, rows = 0.0, 0, 0
    for at, text in source.lines():
        head = _HEAD.fullmatch(text)
        if not text.strip():
            continue
        if not mhz:
            mhz = (number(head[2], _MOST_MHZ) or 0.0) if head else 0.0
            if mhz < 1:
                complaints.add(at, f"no heading with the clock of the chip: `{shown(text)}`")
                break
        elif columns is None:
            columns = _columns(at, text, complaints)
            if columns is None:
                break
        elif head:
            complaints.add(at, "a second heading: the log of another run was appended; give one file for each")
            break
        elif (rows := rows + 1) > _MOST_MARKERS:
            complaints.add(
                at, f"more than {_MOST_MARKERS:,} markers; give a part of the file, with its first two lines"
            )
            break
        else:
            skipped += _take(at, text, columns, markers, complaints)
    if source.open_ended and rows:
        complaints.add(source.count, "the last line is not terminated, so its last number may be cut")
    tables = tuple(_tables(markers, mhz)) if not complaints.first else ()
    facts = tuple(complaints.first), tuple(markers.left_out.first)
    return Log(TOOL, tables, Facts(), (), skipped, *facts)


def _columns(at: int, text: str, complaints: Complaints) -> _Columns | None:
    """What takes the words of a line in the order of `_ORDER`, and how many words a line has."""
    names = [" ".join(name.split()).lower() for name in text.split(",")]
    names = [_RENAMED.get(name, name) for name in names]
    if unknown := [name for name in names if name not in (*_ORDER, *_UNUSED)]:
        complaints.add(at, f"column `{shown(unknown[0])}` is not known")
    elif len(set(names)) < len(names):
        complaints.add(at, "two columns have the same name")
    elif missing := [name for name in _ORDER if name not in (*names, *_MAY_MISS)]:
        complaints.add(at, f"column `{missing[0]}` is missing; logs from 2024 on have it")
    else:
        # The word of a column that is missing is the empty one that is put behind the others.
        return itemgetter(*(names.index(name) if name in names else len(names) for name in _ORDER)), len(names)
    return None


def _take(at: int, text: str, columns: _Columns, markers: _Markers, complaints: Complaints) -> int:
    """Keep a marker; whether it was one that says nothing of a zone."""
    in_order, count = columns
    words = text.split(",")
    if len(words) != count:
        complaints.add(at, f"{len(words)} columns, and the heading has {count}")
        return 0
    words.append("")
    slot, y, x, cycles, value, run, risc, trace, replay, name, kind, line, file = map(str.strip, in_order(words))
    place = [found for word in (slot, y, x) if (found := whole(word, _MOST_PLACE)) is not None]
    numbers = [found for word in (cycles, value, run or "0") if (found := whole(word, _MOST_CYCLES)) is not None]
    if len(place) + len(numbers) < 6 or risc not in _PROCESSORS:
        complaints.add(at, f"no marker of a core with a time: `{shown(text)}`")
        return 0
    core, (time, data, run_number) = (place[0], place[1], place[2]), numbers
    key = ((run_number, trace, replay), _Scope(name[:_MOST_NAME], risc, line, file))
    if kind == _STATED:
        if name not in (_BYTES, _COUNT, _NETWORK, _TEST):
            return 1
        markers.stated.setdefault((key[0], risc), {}).setdefault(core, {})[name] = data
    elif kind in _POINTS:
        return 1
    elif kind not in (*_STARTS, *_ENDS, *_SUMS):
        complaints.add(at, f"a marker of a type that is not known: `{shown(kind)}`")
    elif not name:
        markers.left_out.add(at, "a zone without a name: the runtime did not find it in its sources")
    elif kind in _SUMS:
        markers.sums.setdefault(key, {}).setdefault(core, []).append(_Entry(time, data, at))
    else:
        markers.ends.setdefault(key, {}).setdefault(core, []).append((time, at, kind in _ENDS))
    return 0


def _tables(markers: _Markers, mhz: float) -> Iterator[LogTable]:
    """One table for each zone; runs on the same cores that state the same are repetitions."""
    zones = list(markers.found())
    named: dict[tuple[_Run, str], set[str]] = defaultdict(set)
    for run, scope, _ in zones:
        if not scope.is_firmware:
            named[run, scope.risc].add(scope.name)
    grouped: dict[tuple[object, ...], tuple[_Scope, _Run, tuple[_Core, ...], _Stated, list[list[_Entry]]]] = {}
    for run, scope, by_core in zones:
        cores = tuple(sorted(by_core))
        if len({len(its) for its in by_core.values()}) > 1:
            first = by_core[cores[0]][0].at
            markers.left_out.add(first, f"cores have entered `{scope.name}` on {scope.risc} different numbers of times")
            continue
        stated: _Stated = ()
        if len(named[run, scope.risc]) == 1 and not scope.is_firmware:
            stated = _alike(markers.stated.get((run, scope.risc), {}), cores)
        key = (scope, cores, stated, run[0] if scope.is_firmware else None)
        kept = grouped.setdefault(key, (scope, run, cores, stated, []))[-1]
        kept += [list(each) for each in zip(*(by_core[core] for core in cores), strict=True)]
    alike: Counter[tuple[object, ...]] = Counter()
    for scope, run, cores, stated, repeats in grouped.values():
        if not (table := _table(scope, run, cores, dict(stated), repeats, mhz, markers.left_out)):
            continue
        assert table.zone
        kind = (table.zone, table.ranks, table.rows[0].size)
        alike[kind] += 1
        name = table.zone.name + (f" #{alike[kind]}" if alike[kind] > 1 else "")
        yield replace(table, zone=Zone(name, table.zone.transactions))


def _alike(stated: Mapping[_Core, dict[str, int]], cores: Iterable[_Core]) -> _Stated:
    """What all cores state alike."""
    found = [stated.get(core, {}) for core in cores]
    return tuple(sorted(pair for pair in found[0].items() if all(pair in its.items() for its in found)))


def _table(
    scope: _Scope, run: _Run, cores: tuple[_Core, ...], stated: Mapping[str, int], repeats: list[list[_Entry]],
    mhz: float, left_out: Complaints,
) -> LogTable | None:  # fmt: skip
    samples = tuple(tuple(_times(cores, its, mhz)) for its in sorted(repeats))
    slowest = [max(time for _, time in its) for its in samples]
    time = statistics.median(slowest)
    line = min(entry.at for its in repeats for entry in its)
    if not time:
        left_out.add(line, f"`{scope.name}` took 0 cycles and has no time")
        return None
    words = [scope.name, scope.risc]
    words += [f"run {run[0]}"] if scope.is_firmware else []
    words += [f"{word} {stated[key]}" for key, word in ((_TEST, "test"), (_NETWORK, "noc")) if key in stated]
    size, count = stated.get(_BYTES, 0), stated.get(_COUNT, 1)
    rate = size * count * len(cores) / time / KILO
    if size > MOST_SIZE or rate > MOST_RATE or (size and not count):
        left_out.add(line, f"the bytes stated for `{scope.name}` cannot be; its time is read without them")
        size, rate = 0, 0.0
    row = LogRow(size, time, line, rate or None, count=len(samples), samples=samples)
    zone = Zone(" ".join(words), count if size else 1)
    return LogTable(TOOL, None, len(cores), None, "uint8", None, None, (row,), "zone", zone=zone)


def _times(cores: tuple[_Core, ...], entries: list[_Entry], mhz: float) -> Iterator[tuple[float, float]]:
    """Start, since the first core of the chip, and duration of each core, in us."""
    first: dict[int, int] = {}
    for (chip, *_), entry in zip(cores, entries, strict=True):
        first[chip] = min(entry.begun, first.get(chip, entry.begun))
    for (chip, *_), entry in zip(cores, entries, strict=True):
        yield (entry.begun - first[chip]) / mhz, entry.cycles / mhz


READER = Reader(
    TOOL, "the CSV of tt-metal's device profiler: zones of kernels on the cores of a chip",
    "tt-metal, tt_metal/impl/profiler/profiler.cpp",
    lambda source: _HEAD.fullmatch(next((text for _, text in source.lines() if text.strip()), "")) is not None, read,
)  # fmt: skip
