"""The outcome of an experiment in a launch: a `Record` of its samples, or an `Ended` that says why there are none.

Every executor builds only these two, so programs read fields and codes, never prose. A `Note` is a caveat on values:
its code is for programs, its text for people.

A launch is *disturbed* if other processes kept processors busy (`foreign`) or the clock of a processor changed
(`clock`). Its samples stay in the files, marked; only undisturbed launches count, or all of them if every one was
disturbed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from linkwright.base.errors import LinkwrightError

DISTURBANCES = ("foreign", "clock")
# Codes of an experiment without a value that no error names.
OUT_OF_TIME, ALL_DISTURBED, PROCESS_ENDED = "out-of-time", "all-disturbed", "process-ended"
UNTIMED = "untimed"


class Note(NamedTuple):
    """A caveat on a value: a code for programs, a sentence for people."""

    code: str  # a key of `schema.FLAGS` or `schema.CODES`, or `remark`
    text: str


UNWARMED = Note("unwarmed", "warm-up ended before its batches agreed")
NO_ARITHMETIC = Note("no-arithmetic", "without arithmetic")
UNCHECKED = Note("unchecked", "data not checked")


def remarks(*texts: str | None) -> list[Note]:
    """Notes for people only; None is left out."""
    return [Note("remark", text) for text in texts if text]


@dataclass(frozen=True, kw_only=True)
class Record:
    """The samples of one experiment in one launch; times in ns."""

    experiment: str = ""  # key; set by whoever runs the launch
    launch: int = 0
    values_ns: Sequence[float]  # of the slowest rank, sample by sample
    first_ns: float  # the cold first repetition
    batch: int = 1  # repetitions in a sample
    dropped: Mapping[str, int] = field(default_factory=dict)  # reason -> samples
    notes: tuple[Note, ...] = ()
    ranks_ns: Sequence[Sequence[Sequence[float]]] = ()  # (starts, durations) of each rank
    rank_ns: Sequence[float] = ()  # of a pattern, median time of each rank
    message_ns: Sequence[float] = ()  # of a pattern, percentiles 0 to 100 of the latencies of its messages
    row_ns: Sequence[float] | None = None  # first and last of five repetitions without a barrier between them
    canary_ns: tuple[float | None, float | None] = (None, None)  # before and after
    foreign: float | None = None  # processors that other processes kept busy, if too many
    clock_change: float | None = None  # relative, if too large
    clock_hz: float | None = None  # of the slowest processor, after the experiment
    start: str | None = None  # how ranks without a common clock start together
    residual_ns: float | None = None  # how far apart they start at most
    counted_bytes: float = 0  # of one operation of a probe
    moved_bytes: float = 0
    work: float = 0
    columns: Mapping[str, Sequence[float]] = field(default_factory=dict)  # further metrics of a probe
    limit_ns: float | None = None  # a bound that the measuring code knows
    limit_name: str | None = None
    watts: float | None = None

    @property
    def disturbance(self) -> str | None:
        """Why the samples are set aside; None if the launch was undisturbed."""
        seen = (self.foreign, self.clock_change)
        return next((reason for reason, found in zip(DISTURBANCES, seen, strict=True) if found), None)

    def named(self, experiment: str, launch: int) -> Record:
        """The same record, of launch number `launch` of `experiment`."""
        return dataclasses.replace(self, experiment=experiment, launch=launch)

    def noted(self, *notes: Note) -> Record:
        """The same record with more notes."""
        return dataclasses.replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class Ended:
    """Why an experiment has no samples and needs no further launch."""

    experiment: str
    launch: int
    status: str  # `waived`, `failed` or `out-of-time`
    reason: str
    code: str | None = None
    need_s: float | None = None  # of what ran out of time: seconds in a launch that would do

    @classmethod
    def by(cls, error: LinkwrightError, status: str, experiment: str, launch: int) -> Ended:
        """An experiment that an error ended."""
        return cls(experiment, launch, status, str(error), error.code)


Outcome = Record | Ended
_DEFAULTS = {f.name: f.default for f in dataclasses.fields(Record) if f.default is not dataclasses.MISSING}


def to_json(outcome: Outcome) -> dict[str, object]:
    """An outcome as one object of the journal; fields at their default are left out."""
    if isinstance(outcome, Ended):
        return {"ended": {name: value for name, value in vars(outcome).items() if value is not None}}
    return {
        "samples": {k: v for k, v in vars(outcome).items() if v != {} and (k not in _DEFAULTS or v != _DEFAULTS[k])}
    }


def from_json(values: Mapping[str, dict]) -> Outcome | None:
    """The inverse of `to_json`; None for another kind of journal record."""
    if "ended" in values:
        return Ended(**values["ended"])
    if "samples" not in values:
        return None
    found = dict(values["samples"])
    notes = tuple(Note(*note) for note in found.pop("notes", ()))
    return Record(**{**found, "notes": notes, "canary_ns": tuple(found.get("canary_ns", (None, None)))})


def launches(records: Iterable[Mapping[str, dict]]) -> list[Record]:
    """The launches among the records of a journal."""
    return [found for found in map(from_json, records) if isinstance(found, Record)]


def counting(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """The launches of one experiment that count, and those that are set aside."""
    kept = [record for record in records if record.values_ns]
    quiet = [record for record in kept if not record.disturbance]
    return (quiet, [record for record in kept if record.disturbance]) if quiet else (kept, [])
