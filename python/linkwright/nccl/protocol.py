"""Chunks, slices, and the choice of the low-latency mode, as both versions do it.

    1.3.4   buffer 2 MiB, 2 chunks of 1 MiB, 2 slices each; chunk = min(1 MiB, ceil(rest / N)) up to 16 KiB
    2.3.5   buffer 4 MiB per ring, 2 chunks of 2 MiB, 2 slices (8 for broadcast and reduce); chunk = min(2 MiB,
            ceil(rest / (N rings))) up to threads x 8 B

A ring algorithm sends whole blocks; cut into as many slices as these chunks have (`pipeline`), at most two under way
per hop (`window(2)`), it is the same pipeline. The loops of NCCL go round all steps for one chunk before the next chunk
begins; here step after step, each for all chunks. Both keep every link busy all the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.errors import unknown
from linkwright.nccl.search import VERSIONS

MIB = 1 << 20
IN_FLIGHT = 2
MOST_SLICES = 64  # of one block; more change nothing but the number of events
LINE_DATA_BYTES = 8
LAST_BOUND_BYTES = 32
FIRST_THREADS = 64
P100_THREADS = 128  # halved from 256, which remains the limit of the low-latency mode
LIMIT_THREADS = 256
FLOAT_BYTES = 4


@dataclass(frozen=True)
class Plan:
    """How one collective is cut."""

    chunk_bytes: int
    slices: int  # of each block that a step sends
    issue: str = f"window({IN_FLIGHT})"


def plan(version: str, collective: str, size_bytes: int, ranks: int, rings: int = 1) -> Plan:
    """Chunk and slices of a collective of `size_bytes` over `ranks` ranks on `rings` rings."""
    if version not in VERSIONS:
        raise unknown("version of NCCL", version, VERSIONS)
    whole = collective in ("broadcast", "reduce")
    block = -(-size_bytes // (rings * (1 if whole else ranks)))
    if version == "1.3.4":
        most, grain, steps = MIB, 512 * 8 * FLOAT_BYTES, 2
    else:
        most, grain, steps = 2 * MIB, P100_THREADS * 8, 8 if whole else 2
    chunk = max(grain, min(most, -(-block // grain) * grain))
    chunks = max(1, -(-block // chunk))
    return Plan(chunk, max(1, min(MOST_SLICES, chunks * steps, block // FLOAT_BYTES or 1)))


def low_latency(size_bytes: int, ranks: int, rings: int) -> int | None:
    """Rings that 2.3.5 uses in its low-latency mode; None where it takes the normal one."""
    threads = FIRST_THREADS
    while threads < LIMIT_THREADS:
        needed = -(-size_bytes // (LINE_DATA_BYTES * threads * ranks))
        if needed <= (1 if ranks <= 4 else LIMIT_THREADS // 64):
            used = max(1, min(needed, rings))
            if size_bytes <= LINE_DATA_BYTES * ranks * used * threads:
                return used
        threads *= 2
    needed = -(-size_bytes // (LINE_DATA_BYTES * threads * ranks))
    used = max(1, min(needed, rings))
    return used if size_bytes <= LAST_BOUND_BYTES * ranks * used * threads else None
