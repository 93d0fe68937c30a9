"""What the Inspector plugin of NCCL writes: a JSON object for each collective, one after another.

    {"header": {"rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {"hostname": "..."},
     "coll_perf": {"coll": "AllReduce", "coll_algo": "RING", "coll_proto": "LL", "coll_sn": 1407,
                   "coll_msg_size_bytes": 17179869184, "coll_exec_time_us": 61974, "coll_algobw_gbs": 277.2,
                   "coll_busbw_gbs": 485.1}}

A table has a row for each size, with the median of its times; of an operation that several ranks have timed, it is the
time of the transfer (`ranks.py`). From format 4.3 on, `header` and `metadata` stand in the `dump_stats` object before
the records alone. Sizes of an allgather and a reduce-scatter are those of one rank.

Source: NCCL, plugins/profiler/inspector, README, formats 4.0 to 4.4.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from . import ranks
from .facts import Facts
from .kinds import Log, Reader
from .lines import MOST_MICROS, MOST_ROWS, MOST_SIZE, Complaints, Source, clean, number, shown, whole
from .reading import Key, of_samples

TOOL = "NCCL Inspector"
COLLECTIVES = {
    "AllReduce": "allreduce", "AllGather": "allgather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
    "Reduce": "reduce", "AllToAll": "alltoall", "SendRecv": "sendrecv", "Send": "sendrecv", "Recv": "sendrecv",
}  # fmt: skip
BY_RANK = ("allgather", "reduce_scatter")  # sizes are of one rank
_MOST_RANKS = 1 << 22
_MOST_OBJECT = 1 << 20  # characters

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def read(source: Source) -> Log:
    """A table for each collective and number of ranks."""
    return read_all([source])


def read_all(sources: Sequence[Source]) -> Log:
    """The same of the files of several ranks."""
    facts, complaints = Facts(), Complaints()
    samples = itertools.islice((one for source in sources for one in _samples(source, complaints)), MOST_ROWS)
    facts.library = "NCCL"
    return of_samples(TOOL, samples, facts, complaints)


def _samples(source: Source, complaints: Complaints) -> Iterator[tuple[Key, int | None, ranks.Sample]]:
    """(table, ranks of the communicator, time) of every collective."""
    last: object = None  # the header of the records that follow
    for at, record in _records(source, complaints):
        if "dump_stats" in record:
            last = record.get("header")
        perf, header = record.get("coll_perf"), record.get("header", last)
        if not isinstance(perf, dict) or not isinstance(header, dict):
            if isinstance(perf, dict):
                complaints.add(at, "a record without a header, and no `dump_stats` before it")
            continue
        name, time = COLLECTIVES.get(str(perf.get("coll"))), number(perf.get("coll_exec_time_us"), MOST_MICROS)
        size = whole(perf.get("coll_msg_size_bytes"), MOST_SIZE)
        if not size or not time or name is None:
            complaints.add(at, f"no collective with a size and a time: `{shown(str(perf.get('coll')))}`")
            continue
        count, nodes = (whole(header.get(key), _MOST_RANKS) for key in ("n_ranks", "nnodes"))
        if name in BY_RANK:
            size *= count or 1
        group = header.get("id")
        chosen = (perf.get("coll_algo"), perf.get("coll_proto"))
        yield (name, count, nodes, None), count, ranks.Sample(
            name, size, time, at, clean(group)[:80] if isinstance(group, str) else None,
            whole(perf.get("coll_sn"), MOST_SIZE), whole(header.get("rank"), _MOST_RANKS),
            " ".join(clean(one)[:40] for one in chosen if isinstance(one, str) and one != "unknown"),
        )  # fmt: skip


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
    read_all,
)  # fmt: skip
