"""What may be wrong with a job that hangs: each finding, and all of them with who waits for whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from linkwright.formats.hangs import Member, RankStatus

FORMAT = 1  # of the document

What = Literal["operation", "elements", "dtype"]


@dataclass(frozen=True)
class CallPlace:
    """A call of a group: what ranks are in or should be in."""

    group: str
    operation: str
    sequence: int


@dataclass(frozen=True)
class Behind:
    """Ranks that have not entered a call, wait for nobody, and are waited for.

    Attributes:
        place: the call.
        members: who; fewer than `count` where the dump does not list all.
        count: how many.
        launched: the last call that they have entered; None of a send or receive.
        waiting: who waits for them; empty if the dump gives only how many.
        waiting_count: how many.
        snapshot: whether the job may have been running.
        also: further calls that wait for the same ranks.
    """

    kind: ClassVar[str] = "behind"
    place: CallPlace
    members: tuple[Member, ...]
    count: int
    launched: int | None
    waiting: tuple[int, ...]
    waiting_count: int
    snapshot: bool
    also: tuple[CallPlace, ...] = ()


@dataclass(frozen=True)
class Busy:
    """Ranks that have called, but whose kernels have not begun, although no other call holds them up."""

    kind: ClassVar[str] = "not_begun"
    place: CallPlace
    members: tuple[Member, ...]
    waiting: tuple[int, ...]


@dataclass(frozen=True)
class Mismatch:
    """Ranks that differ in a call; `values` are what they have, the most frequent first, each with its ranks."""

    kind: ClassVar[str] = "mismatch"
    place: CallPlace
    what: What
    values: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class RankWait:
    """A rank in a call that cannot end before another rank comes."""

    rank: int
    place: CallPlace
    on: int


@dataclass(frozen=True)
class Cycle:
    """Ranks that wait for one another; `certain` unless the dumps do not say which kernels have begun."""

    kind: ClassVar[str] = "cycle"
    waits: tuple[RankWait, ...]
    certain: bool


@dataclass(frozen=True)
class Left:
    """Ranks in a call that others have completed."""

    kind: ClassVar[str] = "left_behind"
    place: CallPlace
    members: tuple[Member, ...]
    passed: tuple[int, ...]


@dataclass(frozen=True)
class Inside:
    """A call that all ranks of its group have entered alike, and none has completed.

    Attributes:
        place: the call.
        ranks: who.
        complete: whether the dumps tell which ranks the group has; otherwise others may be missing.
    """

    kind: ClassVar[str] = "inside"
    place: CallPlace
    ranks: tuple[int, ...]
    complete: bool


@dataclass(frozen=True)
class NoDump:
    """Ranks of which nothing is known where it decides who is waited for.

    Attributes:
        place: a call that may wait for them.
        ranks: who.
        given: those of whom there is a dump that does not reach back far enough.
        tool: whose dumps are missing.
        also: further such calls.
    """

    kind: ClassVar[str] = "no_dump"
    place: CallPlace
    ranks: tuple[int, ...]
    given: tuple[int, ...]
    tool: str
    also: tuple[CallPlace, ...] = ()


@dataclass(frozen=True)
class Absent:
    """Ranks or processes that are dead, unresponsive, in another state, or report an error."""

    kind: ClassVar[str] = "absent"
    condition: RankStatus
    group: str | None
    rest: tuple[tuple[str, int], ...]  # state of the other ranks -> how many


Finding = Behind | Busy | Mismatch | Cycle | Left | Inside | NoDump | Absent


@dataclass(frozen=True)
class Waiting:
    """Ranks in one call, and those that it waits for; `on_in` are the calls that these are in themselves."""

    place: CallPlace
    ranks: tuple[int, ...]
    on: tuple[int, ...]
    on_in: tuple[CallPlace, ...]


@dataclass(frozen=True)
class Hang:
    """All that dumps say of a job that hangs.

    Attributes:
        tools: which tools wrote the dumps.
        paths: the files.
        ranks: of whom something is known.
        size: ranks of the largest group; None if nothing says.
        groups: how many communicators or process groups.
        findings: the causes, the surest first; empty if nothing is wrong in the dumps.
        more: how many further findings there are.
        waits: who waits for whom.
        snapshot: whether all of it is a snapshot of a running job.
        moved: whether the ranks that are behind went on between two snapshots of the job; None if there is only one.
        unseen: ranks of which no line is in a log.
        complaints: (file, line, what is wrong) of what was not understood.
        ignored: files that are not dumps.
    """

    tools: tuple[str, ...]
    paths: tuple[str, ...]
    ranks: tuple[int, ...]
    size: int | None
    groups: int
    findings: tuple[Finding, ...]
    more: int
    waits: tuple[Waiting, ...]
    snapshot: bool
    moved: bool | None = None
    unseen: tuple[int, ...] = ()
    complaints: tuple[tuple[str, int, str], ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether operations of all ranks are there, as far as is known which ranks there are."""
        return bool(self.ranks) and self.groups > 0 and len(self.ranks) >= (self.size or 0)

    def document(self) -> dict[str, Any]:
        """The answer as plain values, for JSON."""
        findings = [{"kind": one.kind} | asdict(one) for one in self.findings]
        passes = not findings and not self.complaints and self.is_whole
        return {"format": FORMAT, "passes": passes} | asdict(self) | {"findings": findings}
