"""Traces of Kineto, PyTorch's profiler: the collectives among their kernels, with sizes and groups.

    {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "dur": 512.3,
                      "args": {"Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576,
                               "dtype": "Float", "Group size": 8}}]}

A table has a row for each size, with the median of its times. A kernel waits for the slowest rank, so its time is that
of the collective and of the waiting; traces of several ranks tell them apart (`ranks.py`). Kernels of ranks belong
together if their group and `Seq` are equal, or, in older traces, their place among those of a group and size.

Source: PyTorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp; Kineto, the output of its Chrome trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import ranks
from .facts import Gathered
from .kinds import Log, Reader
from .lines import MOST_MICROS, MOST_ROWS, MOST_SIZE, Complaints, Source, clean, number, shown, whole
from .reading import Key, of_samples

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
_MOST_RANKS = 1 << 22

_Timed = tuple[Key, int | None, ranks.Sample]


def read(source: Source) -> Log:
    """A table for each collective, group size and data type."""
    return read_all([source])


def read_all(sources: Sequence[Source]) -> Log:
    """The same of the traces of several ranks."""
    gathered, complaints = Gathered(), Complaints()
    samples: list[_Timed] = []
    skipped = 0
    for source in sources:
        document = source.document()
        events = document.get("traceEvents") if isinstance(document, dict) else None
        if not isinstance(events, list):
            complaints.add(1, "the trace is cut, or is not JSON")
            continue
        its = list(_times(events, _rank(document, source), complaints))
        if events and not its and not complaints.first:
            complaints.add(1, _without(events))
        samples += its
        skipped += len(events) - len(its)
        properties = document.get("deviceProperties")
        for device in properties if isinstance(properties, list) else ():
            if isinstance(device, dict):
                name = clean(str(device.get("name", "")))[:200]
                gathered.facts.devices[name] = gathered.facts.devices.get(name, 0) + 1
    return of_samples(TOOL, _numbered(samples), gathered.facts, complaints, skipped)


def _rank(document: dict[str, Any], source: Source) -> int | None:
    """Whose trace it is, as it states or the name of the file does."""
    info = document.get("distributedInfo")
    stated = whole(info.get("rank"), _MOST_RANKS) if isinstance(info, dict) else None
    named = re.search(r"rank[-_]?(\d{1,7})", source.path.name, re.IGNORECASE)
    return int(named[1]) if stated is None and named else stated


def _numbered(samples: Sequence[_Timed]) -> list[_Timed]:
    """The same; times without `Seq` get their place in the trace if all ranks have equally many of a kind."""
    counts: dict[tuple[object, ...], dict[int, int]] = {}
    found = []
    for key, count, one in samples:
        if one.sequence is None and one.group is not None and one.rank is not None:
            its = counts.setdefault((key, one.group, one.size), {})
            at = its[one.rank] = its.get(one.rank, 0) + 1
            one = one._replace(sequence=at)
        found.append((key, count, one))
    uneven = {kind for kind, its in counts.items() if len(set(its.values())) > 1}
    return [
        (key, count, one._replace(sequence=None) if (key, one.group, one.size) in uneven else one)
        for key, count, one in found
    ]


def _without(events: list[Any]) -> str:
    """Why a trace tells no times of collectives."""
    if any(isinstance(event, dict) and str(event.get("name", "")).startswith("NPKIT_") for event in events):
        return "a trace of NPKit holds steps of channels, but not times of collectives"
    return "no kernel of the trace names its collective and its size"


def _times(events: Iterable[Any], rank: int | None, complaints: Complaints) -> Iterator[_Timed]:
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
            count = whole(args.get("Group size"), _MOST_RANKS)
            group = [args.get(word) for word in ("Process Group Name", "Process Group Ranks")]
            named = clean(" ".join(one for one in group if isinstance(one, str)))[:200] or None
            sequence = whole(args.get("Seq"), MOST_SIZE)
            yield (name, count, None, kind), count, ranks.Sample(name, size, time, 1, named, sequence, rank)


READER = Reader(
    TOOL, "traces of Kineto: the collectives of a PyTorch program", "PyTorch, c10d/ParamCommsUtils.hpp",
    lambda source: source.begins("{") and source.has(lambda text: '"traceEvents"' in text), read,
    read_all,
)  # fmt: skip
