"""Chunks, slices, and the choice of the low-latency mode, as both versions do it.

    1.3.4   buffer 2 MiB, 2 chunks of 1 MiB, 2 slices each; chunk = min(1 MiB, ceil(rest / N)) up to 16 KiB
    2.3.5   buffer 4 MiB per ring, 2 chunks of 2 MiB, 2 slices (8 for broadcast and reduce); chunk = min(2 MiB,
            ceil(rest / (N rings))) up to threads x 8 B

A ring algorithm sends whole blocks. Cut into as many slices as these chunks have (`pipeline`), with at most two in
flight per hop (`window(2)`), it is the same pipeline. NCCL takes one chunk through all steps before the next chunk
begins; here each step handles all chunks before the next step. Either way every link is busy all the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright.base.errors import check_known
from linkwright.libraries.nccl.search import VERSIONS

MIB = 1 << 20
IN_FLIGHT = 2
MOST_SLICES = 64  # of one block; more would only add events
LINE_DATA_BYTES = 8
LAST_BOUND_BYTES = 32
THREADS = (64, 128, 256)  # that the low-latency mode tries in turn
MOST_RINGS_EARLY = 4  # that it may need, on more than 4 ranks, before it takes the last number of threads
P100_THREADS = 128  # halved from 256, which remains the limit of the low-latency mode
FLOAT_BYTES = 4


@dataclass(frozen=True)
class Plan:
    """How one collective is cut."""

    chunk_bytes: int
    slices: int  # of each block that a step sends
    issue: str = f"window({IN_FLIGHT})"


def plan(version: str, collective: str, size_bytes: int, ranks: int, rings: int = 1) -> Plan:
    """Chunk and slices of a collective of `size_bytes` over `ranks` ranks on `rings` rings."""
    check_known("version of NCCL", version, VERSIONS)
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
    for threads in THREADS:
        last = threads == THREADS[-1]
        needed = -(-size_bytes // (LINE_DATA_BYTES * threads * ranks))
        used = max(1, min(needed, rings))
        bound = LAST_BOUND_BYTES if last else LINE_DATA_BYTES
        if size_bytes <= bound * ranks * used * threads and (last or needed <= (1 if ranks <= 4 else MOST_RINGS_EARLY)):
            return used
    return None
