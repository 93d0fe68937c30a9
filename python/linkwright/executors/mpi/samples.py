"""One file of samples per rank, and their merge.

    runs/<id>/ranks/rank-00003.jsonl    {"experiment": ..., "launch": 0, "rank": 1, "start_ns": [...], "ns": [...]}

Each rank appends its own starts (since the agreed one, in the common time) and durations, so none of them passes
through rank 0 while the clock runs. At the end every rank reads its file and sends it, so hosts need not share the
folder. Once merged into `samples.parquet`, the files are deleted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

from linkwright.ask import schedules
from linkwright.base.files import make_folder, named
from linkwright.store import journal
from linkwright.store.record import Record

from .world import World


def _path(folder: str | Path, rank: int) -> Path:
    return Path(folder) / "ranks" / f"rank-{rank:05}.jsonl"


def append(folder: str, world_rank: int, experiment: str, launch: int, rank: int, found: dict) -> None:
    """Write what this rank measured; `rank` is its number in the experiment."""
    line = {
        "experiment": experiment,
        "launch": launch,
        "rank": rank,
        "start_ns": schedules.rounded(found["start_ns"]),
        "ns": schedules.rounded(found["finish_ns"] - found["start_ns"]),
    }
    path = _path(folder, world_rank)
    make_folder(path.parent)
    with named(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, separators=(",", ":")) + "\n")


def read(folder: str, world_rank: int) -> list[dict]:
    """The whole lines of a rank's file."""
    return list(journal.read(_path(folder, world_rank)))


def remove(folder: str, world_rank: int) -> None:
    """Delete a rank's file; the last one takes the folder along."""
    path = _path(folder, world_rank)
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def merge(world: World, folder: Path, records: list[Record]) -> list[Record]:
    """The records of all launches with every rank's starts and durations; at rank 0, while the others serve."""
    world.order({"merge": str(folder.resolve())})
    files = world.comm.gather(read(str(folder.resolve()), 0))
    found: dict[tuple[str, int], dict[int, dict]] = {}
    for line in (line for lines in files for line in lines):
        found.setdefault((line["experiment"], line["launch"]), {})[line["rank"]] = line
    return [_with_ranks(record, found) for record in records]


def merged(world: World, folder: Path) -> None:
    """The files have been merged and written: every rank deletes its own."""
    world.order({"remove": str(folder.resolve())})
    remove(str(folder.resolve()), 0)


def _with_ranks(record: Record, found: dict[tuple[str, int], dict[int, dict]]) -> Record:
    ranks = found.get((record.experiment, record.launch))
    if not ranks or any(len(line["ns"]) != len(record.values_ns) for line in ranks.values()):
        return record  # a rank's file was lost with its host; the time of the slowest rank is known all the same
    in_order = [ranks[rank] for rank in sorted(ranks)]
    first = [min(starts) for starts in zip(*(line["start_ns"] for line in in_order), strict=True)]
    since_first = [
        [[round(start - zero, 2) for start, zero in zip(line["start_ns"], first, strict=True)], line["ns"]]
        for line in in_order
    ]
    return dataclasses.replace(record, ranks_ns=since_first)
