"""The input of a kernel: an array of 64-bit words, each a number or the address of an array.

Every kernel has one parameter, a pointer to such words in the order of its struct. So nothing is marshalled, and a test
can compare the names here with those of the struct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from linkwright.base.errors import WaivedError

from .merge import merged
from .stream import Stream

LINE_WORDS = 16  # each counter fills a line of 128 bytes
NO_RANK = 0xFFFFFFFF
DTYPES = ("f32", "f64", "i32", "i64", "u8", "bf16")
OPS = ("sum", "max", "min", "prod")
# Block memory begins with a head, followed by a pack for each thread, for the results of a fold.
HEAD_BYTES = 256
PACK_BYTES = 16
STUCK = 1  # a trouble that kernels report; the other one is two blocks on one SM

Word = int | np.ndarray


@dataclass(frozen=True)
class Job:
    """One launch of one kernel."""

    source: str  # file of the kernel, without its suffix
    kernel: str
    words: Mapping[str, Word]  # by field of the kernel's struct, in its order; arrays are uploaded
    blocks: int
    threads: int
    shared_bytes: int = 0
    cluster: int = 1
    defines: tuple[str, ...] = ()
    cooperative: bool = True

    def flat(self, address: Callable[[str, np.ndarray], int]) -> np.ndarray:
        """The words, with each array replaced by its `address`."""
        found = [
            address(name, word) if isinstance(word, np.ndarray) else int(word) for name, word in self.words.items()
        ]
        return np.array(found, np.uint64)


@dataclass(frozen=True)
class Placement:
    """Which SM plays which rank; in a cluster the hardware decides."""

    rank_of_sm: np.ndarray
    blocks: int  # of the launch: one for each SM
    whole_sm_bytes: int  # shared memory that leaves no room for a second block
    most_shared_bytes: int  # that a block may have

    @classmethod
    def on(cls, sms: list[int], ranks: int, whole_sm_bytes: int, most_shared_bytes: int) -> Placement:
        """Rank r on the r-th of these SMs."""
        rank_of_sm = np.full(max(sms) + 1, NO_RANK, np.uint32)
        rank_of_sm[sms[:ranks]] = np.arange(ranks, dtype=np.uint32)
        return cls(rank_of_sm, len(sms), whole_sm_bytes, most_shared_bytes)


def ranks_words(
    ranks: int, placement: Placement, delays_ns: np.ndarray, *, margin_ns: int, patience_ns: int
) -> dict[str, Word]:
    """The first words of a job whose blocks play ranks (`ranks.cuh`); one repetition for each row of delays."""
    repetitions = len(delays_ns)
    return {
        "ranks": ranks,
        "repetitions": repetitions,
        "arrivals": np.zeros(2 * LINE_WORDS, np.uint64),
        "rank_of_sm": placement.rank_of_sm,
        "sms": len(placement.rank_of_sm),
        "sm_of_rank": np.zeros(ranks, np.uint64),
        "delays": np.round(delays_ns).astype(np.uint64),
        "times": np.zeros((repetitions, ranks, 4), np.uint64),
        "trouble": np.zeros(5, np.uint64),
        "margin_ns": margin_ns,
        "patience_ns": patience_ns,
    }


def known_kind(words: dict[str, Word]) -> tuple[str, ...]:
    """Type and operator as definitions, so that a kernel is compiled only for them."""
    return (f"KNOWN_DTYPE={words['dtype']}", f"KNOWN_OP={words['op']}")


def walk(
    stream: Stream,
    memory: np.ndarray,
    placement: Placement,
    delays_ns: np.ndarray,
    *,
    dtype: str,
    op: str | None,
    threads: int,
    margin_ns: int,
    patience_ns: int,
    cluster: bool = False,
) -> Job:
    """A launch that walks `stream` once for each row of delays."""
    ranks = stream.ranks
    stream = merged(stream)
    homes, most_counters = stream.counter_homes()
    cluster_data = stream.rank_bytes + 15 & ~15
    front = HEAD_BYTES + PACK_BYTES * threads + (cluster_data + 8 * most_counters + 15 & ~15 if cluster else 0)
    if front > placement.most_shared_bytes:
        raise WaivedError(
            f"cuda: waived: a rank holds {stream.rank_bytes} bytes and the shared memory of a block "
            f"{placement.most_shared_bytes}; use a smaller size, or global memory"
        )
    in_shared = front + stream.link_bytes <= placement.most_shared_bytes
    shared = front + (stream.link_bytes if in_shared else 0)
    words: dict[str, Word] = {
        **ranks_words(ranks, placement, delays_ns, margin_ns=margin_ns, patience_ns=patience_ns),
        "rank_first": stream.rank_first,
        "instructions": stream.instructions,
        "waits": stream.waits,
        "pieces": stream.pieces,
        "raises": stream.raises,
        "memory": memory,
        "participant_first": stream.participant_first,
        "counters": np.zeros(0 if cluster else LINE_WORDS * len(stream.readers), np.uint64),
        "counter_home": homes,
        "cluster_counters": most_counters + most_counters % 2,
        "cluster_data": cluster_data,
        "linked": 0 if in_shared else np.zeros(ranks * stream.link_bytes, np.uint8),
        "link_bytes": stream.link_bytes,
        "dtype": DTYPES.index(dtype),
        "op": OPS.index(op or "sum"),
    }
    known = known_kind(words)
    return Job(
        source="schedule_walk",
        kernel="schedule_walk_in_cluster" if cluster else "schedule_walk",
        words=words,
        blocks=ranks if cluster else placement.blocks,
        threads=threads,
        shared_bytes=max(shared, placement.whole_sm_bytes),
        cluster=ranks if cluster else 1,
        defines=("WALK_IN_CLUSTER", *known) if cluster else known,
        cooperative=not cluster,
    )


def trouble_of(trouble: np.ndarray, who: str = "rank") -> str | None:
    """What went wrong during a kernel (`waiting.cuh`), in words."""
    what, rank, counter, wanted, found = (int(word) for word in trouble)
    if not what:
        return None
    if what == STUCK:
        return f"{who} {rank} waited too long for the counter at {counter:#x} to reach {wanted}; it was at {found}"
    return f"two blocks share an SM: SM {wanted} was to play {who} {rank} twice"
