"""What the Inspector plugin of NCCL writes: a JSON object for each collective, one after another.

    {"header": {"rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {"hostname": "..."},
     "coll_perf": {"coll": "AllReduce", "coll_msg_size_bytes": 17179869184, "coll_exec_time_us": 61974,
                   "coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.1}}

A table has a row for each size, with the median of its times.

Source: NCCL, plugins/profiler/inspector, README.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from typing import Any

from .facts import Gathered
from .kinds import Log, LogRow, LogTable, Reader
from .lines import MOST_MICROS, MOST_ROWS, MOST_SIZE, Complaints, Source, number, shown, whole

TOOL = "NCCL Inspector"
_COLLECTIVES = {
    "AllReduce": "allreduce", "AllGather": "allgather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "Reduce": "reduce", "AllToAll": "alltoall", "SendRecv": "sendrecv", "Send": "sendrecv", "Recv": "sendrecv",
}  # fmt: skip
_REDUCES = ("allreduce", "reduce_scatter", "reduce")
_MOST_RANKS = 1 << 22
_MOST_OBJECT = 1 << 20  # characters

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

_Key = tuple[str, int | None, int | None]  # collective, ranks, nodes


def read(source: Source) -> Log:
    """A table for each collective and number of ranks."""
    gathered, complaints = Gathered(), Complaints()
    times: dict[_Key, dict[int, list[tuple[int, float]]]] = {}
    rows = 0
    for at, record in _records(source, complaints):
        perf, header = record.get("coll_perf"), record.get("header")
        if not isinstance(perf, dict) or not isinstance(header, dict):
            continue
        size = whole(perf.get("coll_msg_size_bytes"), MOST_SIZE)
        time = number(perf.get("coll_exec_time_us"), MOST_MICROS)
        name = _COLLECTIVES.get(str(perf.get("coll")))
        if not size or not time or name is None:
            complaints.add(at, f"no collective with a size and a time: `{shown(str(perf.get('coll')))}`")
        elif (rows := rows + 1) <= MOST_ROWS:
            key = (name, whole(header.get("n_ranks"), _MOST_RANKS), whole(header.get("nnodes"), _MOST_RANKS))
            times.setdefault(key, {}).setdefault(size, []).append((at, time))
    gathered.facts.library = "NCCL"
    tables = tuple(_table(key, its) for key, its in times.items())
    return Log(TOOL, tables, gathered.facts, (), 0, tuple(complaints.first))


def _table(key: _Key, times: dict[int, list[tuple[int, float]]]) -> LogTable:
    name, ranks, nodes = key
    rows = tuple(
        LogRow(size, statistics.median(time for _, time in its), its[0][0], count=len(its))
        for size, its in sorted(times.items())
    )
    return LogTable(TOOL, name, ranks, nodes, None, "sum" if name in _REDUCES else None, None, rows)


def _records(source: Source, complaints: Complaints) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of every line that holds one; objects over several lines are read as a whole."""
    pieces: list[str] = []
    begun, length, depth = 0, 0, 0
    for at, text in source.lines():
        begun = begun if pieces else at
        pieces.append(text)
        length += len(text)
        bare = _STRING.sub("", text)  # a brace in a name opens nothing
        depth += bare.count("{") - bare.count("}")
        if depth > 0 and length <= _MOST_OBJECT:
            continue
        whole_text = "".join(pieces).strip().strip("[],")
        if depth > 0:
            complaints.add(begun, "an object of more than 1 MiB")
        elif whole_text:
            try:
                found = json.loads(whole_text)
            except (ValueError, RecursionError):
                complaints.add(begun, f"not a JSON object: `{shown(whole_text)}`")
            else:
                if isinstance(found, dict):
                    yield begun, found
        pieces, length, depth = [], 0, 0
    if pieces:
        complaints.add(begun, "the last object is cut")


READER = Reader(
    TOOL, "the JSON lines of NCCL's Inspector plugin", "NCCL, plugins/profiler/inspector, README",
    lambda source: (source.begins("{") or source.begins("[")) and source.has(lambda text: '"coll_perf"' in text), read,
)  # fmt: skip
