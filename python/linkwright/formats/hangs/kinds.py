"""What a dump of a job that hangs states, whichever tool wrote it: facts only, without conclusions.

A dump is of one rank (PyTorch's flight recorder) or of several (NCCL RAS, a log of PyTorch's watchdog). Ranks are those
of the job where a dump relates its groups to the job; otherwise those of the group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from linkwright.formats.logs import Source

# A call was enqueued by the program, its kernel began, its kernel ended. `entered`: enqueued and not completed, but
# nothing says whether its kernel began.
State = Literal["scheduled", "entered", "started", "completed"]
# Why a rank takes no part: RAS cannot reach its process, gave it up, or got another answer from it than from the rest.
Status = Literal["unresponsive", "dead", "nocomm", "init", "running", "finalize", "abort", "error"]

MOST_RANKS = 1 << 22
MOST_CALLS = 1_000_000
MOST_SEQUENCE = 1 << 62

# What tools call an operation, in small letters and without underscores -> our key.
_OPERATIONS = {
    "allreduce": "allreduce", "allreducecoalesced": "allreduce", "allreducesparse": "allreduce",
    "allreducebarrier": "barrier", "barrier": "barrier", "allgather": "allgather", "allgatherbase": "allgather",
    "allgatherintotensorcoalesced": "allgather", "allgathercoalesced": "allgather", "reducescatter": "reduce_scatter",
    "reducescatterbase": "reduce_scatter", "reducescattertensorcoalesced": "reduce_scatter",
    "reducescattercoalesced": "reduce_scatter", "alltoall": "alltoall", "alltoallbase": "alltoall",
    "alltoallv": "alltoall", "broadcast": "broadcast", "broadcastoop": "broadcast", "reduce": "reduce",
    "reduceoop": "reduce", "gather": "gather", "scatter": "scatter", "send": "send", "recv": "recv",
    "coalesced": "coalesced",
}  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A rank of a group and where it runs; None where the dump does not say."""

    rank: int | None
    host: str | None = None
    gpu: str | None = None
    process: int | None = None


@dataclass(frozen=True)
class CommGroup:
    """A communicator or a process group.

    Attributes:
        key: what distinguishes it from others: the hash of a communicator, the name of a process group.
        name: what people call it.
        size: how many ranks it has; None if nothing says.
        ranks: the job's ranks in it, in its order; empty if nothing says.
        members: those of whom more is known than the rank.
    """

    key: str
    name: str
    size: int | None = None
    ranks: tuple[int, ...] = ()
    members: tuple[Member, ...] = ()


@dataclass(frozen=True)
class RankCall:
    """An operation that a rank has entered.

    Attributes:
        group: the key of its group.
        rank: who called.
        sequence: its number among the operations of the group, which is the same on all ranks.
        operation: our key, or the tool's name where we have none.
        variant: the tool's own name.
        state: how far it is.
        order: its place among all calls of the rank, over all groups.
        elements_in: elements of all inputs.
        elements_out: elements of all outputs.
        dtypes: types of inputs and outputs by the tool's names; empty if nothing says.
        p2p: whether it is a send or receive, or a batch of them, which are counted apart from collectives.
        peer: the other rank of a send or receive; None if nothing says.
    """

    group: str
    rank: int
    sequence: int
    operation: str
    variant: str
    state: State
    order: int
    elements_in: int | None = None
    elements_out: int | None = None
    dtypes: tuple[str, ...] = ()
    p2p: bool = False
    peer: int | None = None


@dataclass(frozen=True)
class RankProgress:
    """How far ranks of a group are.

    Attributes:
        group: the key of the group.
        launched: the last operation that they have entered, counted from 1; 0 before the first.
        ranks: who; empty where the dump gives only how many.
        count: how many ranks.
        operation: which operations are counted; None: all together.
        completed: the last operation that has ended; None if nothing says.
        since_begin: whether nothing before is missing, so that `launched` is exact.
    """

    group: str
    launched: int
    ranks: tuple[int, ...]
    count: int
    operation: str | None = None
    completed: int | None = None
    since_begin: bool = True


@dataclass(frozen=True)
class RankStatus:
    """What is said of ranks besides their operations.

    Attributes:
        group: the key of the group; None: of whole processes.
        status: what they are.
        members: who; fewer than `count` where the dump does not list all.
        count: how many.
        text: the error by the tool's words; empty if there is none.
    """

    group: str | None
    status: Status
    members: tuple[Member, ...]
    count: int
    text: str = ""


@dataclass(frozen=True)
class Dump:
    """All of a file.

    Attributes:
        tool: the tool that wrote it.
        path: the file.
        groups: communicators or process groups.
        calls: operations, as each rank entered them.
        progress: how far ranks are.
        conditions: ranks that are missing, dead, in another state or report an error.
        rank: whose dump it is; None if it is of several ranks.
        snapshot: whether it is of a running job, whose operations may end a moment later.
        version: the library's version.
        complaints: (line, what is wrong) of what was not understood; line 0 where there are no lines.
    """

    tool: str
    path: Path
    groups: tuple[CommGroup, ...]
    calls: tuple[RankCall, ...] = ()
    progress: tuple[RankProgress, ...] = ()
    conditions: tuple[RankStatus, ...] = ()
    rank: int | None = None
    snapshot: bool = False
    version: str | None = None
    complaints: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class DumpReader:
    """A format of dumps.

    Attributes:
        tool: the tool that writes it.
        summary: the format in a few words.
        source: where the format is described.
        recognises: whether a file has this format.
        read: read it; raises `FileError`.
        knows: whether a line is of this format; of texts only.
    """

    tool: str
    summary: str
    source: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Dump]
    knows: Callable[[str], object] | None = None


def operation_of(name: str) -> str:
    """Our key of an operation, or the tool's name in small letters."""
    bare = name.rpartition(":")[2].strip().lower()
    return _OPERATIONS.get(bare.replace("_", ""), bare)
