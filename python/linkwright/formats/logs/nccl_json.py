"""The document that nccl-tests writes with `-J FILE.json`, from version 2.17 on.

    {"version": 1, "args": [...], "env": [...], "nccl_version": 22703, "config": {...},
     "devices": [{"rank": 0, "hostname": "...", "device_info": "..."}],
     "results": [{"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "-1",
                  "out_of_place": {"time": 11.2, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": 0}, "in_place": {...}}]}

Source: nccl-tests, src/util.cu.
"""

from __future__ import annotations

import re
from typing import Any

from . import checks
from .facts import Gathered
from .kinds import Log, LogRow, LogTable, Reader
from .lines import MOST_MICROS, MOST_RATE, MOST_ROWS, MOST_SIZE, Complaints, Source, clean, number, whole
from .nccl_text import COLLECTIVES, TOOL

_PLACES = (("out_of_place", False), ("in_place", True))


def recognises(source: Source) -> bool:
    """Whether it is such a document."""
    return source.begins("{") and source.has(lambda text: '"results"' in text and '"config"' in text)


def read(source: Source) -> Log:
    """The one table of a document."""
    document = source.document()
    complaints, gathered = Complaints(), Gathered()
    if not isinstance(document, dict):
        complaints.add(1, "the document is cut, or is not JSON")
        return Log(TOOL, (), gathered.facts, (), 0, tuple(complaints.first))
    ranks, nodes = _devices(document, gathered)
    _environment(document, gathered)
    rows: dict[tuple[str, str, str], list[LogRow]] = {}
    program = " ".join(str(word) for word in document["args"]) if isinstance(document.get("args"), list) else ""
    match = re.search(r"(\w+)_perf\b", program)
    collective = COLLECTIVES.get(match[1]) if match else None
    for at, result in enumerate(_list(document.get("results"))[:MOST_ROWS], 1):
        key = tuple(clean(str(result.get(name, ""))) for name in ("type", "redop", "root"))
        rows.setdefault((key[0], key[1], key[2]), []).extend(_rows(at, result, collective, complaints))
    tables = tuple(
        LogTable(
            TOOL, collective, ranks, nodes, kind, None if redop == "none" else redop, whole(root, 1 << 20),
            _agreeing(its, collective, ranks, complaints),
        )
        for (kind, redop, root), its in rows.items()
        if its
    )  # fmt: skip
    return Log(TOOL, tables, gathered.facts, (), 0, tuple(complaints.first))


def _rows(at: int, result: dict[str, Any], collective: str | None, complaints: Complaints) -> list[LogRow]:
    size, elements = whole(result.get("size"), MOST_SIZE), whole(result.get("count"), MOST_SIZE)
    found: list[LogRow] = []
    fault = None if size is not None else "has no size"
    if size and checks.is_rated_by_size(collective):
        fault = checks.count(size, elements, str(result.get("type")), collective)
    for name, in_place in _PLACES:
        its = result.get(name)
        if not size or not isinstance(its, dict):
            continue
        time = number(its.get("time"), MOST_MICROS)
        algbw, busbw = (number(its.get(key), MOST_RATE) for key in ("alg_bw", "bus_bw"))
        if time is None:
            fault = fault or "has no time"
            continue
        if checks.is_rated_by_size(collective):
            fault = fault or checks.time_and_rate(size, time, algbw)
        wrong = number(its.get("nwrong"), 1e18)
        found.append(LogRow(size, time, at, algbw, busbw, in_place, None if wrong is None else int(wrong)))
    if fault or (size and not found):
        complaints.add(1, f"result {at}: {fault or 'has no time'}")
        return []
    return found


def _agreeing(
    rows: list[LogRow], collective: str | None, ranks: int | None, complaints: Complaints
) -> tuple[LogRow, ...]:
    checked = checks.factors(rows, collective, ranks)
    for at, fault in checked.odd:
        complaints.add(1, f"result {at}: {fault}")
    if checked.ranks not in (None, ranks):
        complaints.add(1, f"busbw / algbw is that of {checked.ranks} ranks, and the document lists {ranks}")
    return checked.rows


def _devices(document: dict[str, Any], gathered: Gathered) -> tuple[int | None, int | None]:
    devices = _list(document.get("devices"))
    for device in devices[: 1 << 20]:
        name = clean(str(device.get("device_info", "")))[:200]
        gathered.facts.devices[name] = gathered.facts.devices.get(name, 0) + 1
    hosts = len({str(device.get("hostname")) for device in devices}) or None
    gathered.facts.hosts = hosts
    return len(devices) or None, hosts


def _environment(document: dict[str, Any], gathered: Gathered) -> None:
    gathered.see(f"nccl-library={whole(document.get('nccl_version'), 1 << 30) or 0}")
    if not document.get("nccl_version"):
        gathered.facts.library = gathered.facts.version = None
    for text in document["env"] if isinstance(document.get("env"), list) else ():
        if isinstance(text, str) and text.startswith(("NCCL_", "RCCL_")):
            gathered.see(clean(text[:500]))


def _list(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


READER = Reader(
    TOOL, "the JSON of nccl-tests (`-J FILE`), from version 2.17 on", "nccl-tests, src/util.cu", recognises, read
)
