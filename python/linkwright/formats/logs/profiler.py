"""Traces of Kineto, PyTorch's profiler: the collectives among their kernels, with sizes and groups.

    {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "dur": 512.3,
                      "args": {"Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576,
                               "dtype": "Float", "Group size": 8}}]}

A table has a row for each size, with the median of its times. A kernel waits for the slowest rank, so its time is that
of the collective and of the waiting.

Source: PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp; Kineto, the output of its Chrome trace.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from .facts import Gathered
from .kinds import Log, LogRow, LogTable, Reader
from .lines import MOST_MICROS, MOST_ROWS, MOST_SIZE, Complaints, Source, clean, number, shown, whole

TOOL = "PyTorch profiler"
_BYTES = {
    "Float": 4, "Double": 8, "Half": 2, "BFloat16": 2, "Byte": 1, "Char": 1, "Int": 4, "Long": 8, "Bool": 1,
    "Float8_e4m3fn": 1, "Float8_e5m2": 1,
}  # fmt: skip
_COLLECTIVES = {
    "allreduce": "allreduce", "allreduce_coalesced": "allreduce",
    "allgather": "allgather", "all_gather": "allgather", "_allgather_base": "allgather",
    "allgather_into_tensor_coalesced": "allgather",
    "reduce_scatter": "reduce_scatter", "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "alltoall", "all_to_allv": "alltoall", "send": "sendrecv", "recv": "sendrecv",
    "broadcast": "broadcast", "reduce": "reduce", "gather": "gather", "scatter": "scatter",
}  # fmt: skip
_REDUCES = ("allreduce", "reduce_scatter", "reduce")
_MOST_RANKS = 1 << 22

_Key = tuple[str, int | None, str]  # collective, ranks, data type


def read(source: Source) -> Log:
    """A table for each collective, group size and data type."""
    gathered, complaints = Gathered(), Complaints()
    document = source.document()
    events = document.get("traceEvents") if isinstance(document, dict) else None
    if not isinstance(events, list):
        complaints.add(1, "the trace is cut, or is not JSON")
        events = []
    tables = tuple(_table(key, its) for key, its in _times(events, complaints).items())
    if events and not tables and not complaints.first:
        complaints.add(1, _without(events))
    properties = document.get("deviceProperties") if isinstance(document, dict) else None
    for device in properties if isinstance(properties, list) else ():
        if isinstance(device, dict):
            name = clean(str(device.get("name", "")))[:200]
            gathered.facts.devices[name] = gathered.facts.devices.get(name, 0) + 1
    skipped = len(events) - sum(row.count for table in tables for row in table.rows)
    return Log(TOOL, tables, gathered.facts, (), skipped, tuple(complaints.first))


def _without(events: list[Any]) -> str:
    """Why a trace tells no times of collectives."""
    if any(isinstance(event, dict) and str(event.get("name", "")).startswith("NPKIT_") for event in events):
        return "a trace of NPKit holds steps of channels, but not times of collectives"
    return "no kernel of the trace names its collective and its size"


def _times(events: Iterable[Any], complaints: Complaints) -> dict[_Key, dict[int, list[float]]]:
    times: dict[_Key, dict[int, list[float]]] = {}
    rows = 0
    for at, event in enumerate(events, 1):
        args = event.get("args") if isinstance(event, dict) and event.get("cat") == "kernel" else None
        if not isinstance(args, dict) or "Collective name" not in args:
            continue
        if whole(args.get("Group size"), _MOST_RANKS) == 1:
            continue  # nothing moves in a group of one rank
        name, kind = _COLLECTIVES.get(str(args["Collective name"])), clean(str(args.get("dtype", "")))
        counts = [whole(args.get(key), MOST_SIZE) or 0 for key in ("In msg nelems", "Out msg nelems")]
        size, time = max(counts) * _BYTES.get(kind, 0), number(event.get("dur"), MOST_MICROS)
        if name is None or not size or not time:
            complaints.add(
                1, f"event {at}: no collective with a size and a time: `{shown(str(args['Collective name']))}`"
            )
        elif (rows := rows + 1) <= MOST_ROWS:
            key = (name, whole(args.get("Group size"), _MOST_RANKS), kind)
            times.setdefault(key, {}).setdefault(size, []).append(time)
    return times


def _table(key: _Key, times: dict[int, list[float]]) -> LogTable:
    name, ranks, kind = key
    rows = tuple(LogRow(size, statistics.median(its), 1, count=len(its)) for size, its in sorted(times.items()))
    return LogTable(TOOL, name, ranks, None, kind, "sum" if name in _REDUCES else None, None, rows)


READER = Reader(
    TOOL, "traces of Kineto: the collectives of a PyTorch program", "PyTorch, c10d/ParamCommsUtils.hpp",
    lambda source: source.begins("{") and source.has(lambda text: '"traceEvents"' in text), read,
)  # fmt: skip
