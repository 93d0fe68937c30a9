"""All launches of one experiment together, as rows, limits and stopping rules see them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from linkwright.base.lazy import np
from linkwright.base.stats.summary import Summary, summarise
from linkwright.store.record import DISTURBANCES, Note, Record, counting


@dataclass(frozen=True)
class Measured:
    """The launches that count, and what was set aside; times in ns."""

    launches: tuple[np.ndarray, ...]  # samples of the slowest rank
    first_ns: float
    dropped: dict[str, int]  # reason -> samples
    notes: tuple[Note, ...]
    canaries: tuple[tuple[float | None, float | None], ...] = ()  # before and after, by launch
    in_a_row: tuple[tuple[float, float], ...] = ()  # first and last of five without a barrier, by launch
    rank_ns: tuple[np.ndarray, ...] = ()  # of a pattern, median time of each rank, by launch
    message_ns: tuple[np.ndarray, ...] = ()  # of a pattern, percentiles of the latencies of messages, by launch
    clocks_hz: tuple[float, ...] = ()  # of the slowest processor after the experiment, by launch
    disturbance: Note | None = None  # of every launch, if none was undisturbed
    # Error of the ranks' clocks and how they start together, by launch; empty if they share one clock.
    starts: tuple[tuple[float, str], ...] = ()
    carried: dict[str, float] = field(default_factory=dict)  # kind of rate -> bytes or work of one operation of a probe
    columns: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)  # other metrics of a probe, by launch
    limit: tuple[float, str] | None = None  # a bound that the measuring code knows, with its name
    watts: float | None = None  # drawn meanwhile, median over the launches that saw it

    @classmethod
    def of(cls, records: Sequence[Record]) -> Measured | None:
        """From the records of all launches; None if no launch kept a sample."""
        kept, set_aside = counting(records)
        if not kept:
            return None
        first = kept[0]
        return cls(
            launches=tuple(np.array(record.values_ns) for record in kept),
            first_ns=first.first_ns,
            dropped=_with_set_aside(dropped_samples(records), set_aside),
            notes=tuple(dict.fromkeys(note for record in kept for note in record.notes)),
            canaries=tuple(record.canary_ns for record in kept),
            in_a_row=tuple(tuple(record.row_ns) for record in kept if record.row_ns),
            rank_ns=tuple(np.array(record.rank_ns) for record in kept if record.rank_ns),
            message_ns=tuple(np.array(record.message_ns) for record in kept if record.message_ns),
            clocks_hz=tuple(record.clock_hz for record in kept if record.clock_hz),
            disturbance=_disturbance(kept) if first.disturbance else None,
            starts=tuple((record.residual_ns, record.start) for record in kept if record.start),
            carried={"counted_rate": first.counted_bytes, "moved_rate": first.moved_bytes, "work_rate": first.work},
            columns={
                metric: tuple(np.array(record.columns[metric]) for record in kept if metric in record.columns)
                for metric in dict.fromkeys(itertools.chain(*(record.columns for record in kept)))
            },
            limit=(first.limit_ns, first.limit_name) if first.limit_ns is not None else None,
            watts=median(record.watts for record in kept),
        )

    def summary(self) -> Summary:
        """The statistics of the samples."""
        return summarise(self.launches)

    def settled(self, target: float) -> bool:
        """Whether undisturbed launches agree within `target`, a share, so that measuring may stop."""
        found = self.summary().precision
        return self.disturbance is None and found is not None and found <= target


def median(values: Iterable[float | None]) -> float | None:
    """The median of the known values; None if there are none."""
    known = [value for value in values if value]
    return float(np.median(known)) if known else None


def dropped_samples(records: Sequence[Record]) -> dict[str, int]:
    """How many samples were dropped in all launches, by reason."""
    dropped: dict[str, int] = {}
    for record in records:
        for reason, count in record.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    return dropped


def _disturbance(records: Sequence[Record]) -> Note:
    """The caveat on an experiment without an undisturbed launch."""
    busy = max(record.foreign or 0 for record in records)
    change = max((record.clock_change or 0 for record in records), key=abs)
    load = f"others kept up to {busy:g} processors busy" if busy else ""
    moved = f"the clock of a processor changed by up to {change:+.1%}" if change else ""
    said = " or ".join(filter(None, [load, moved]))
    return Note("disturbed", f"{said} in every launch; stop other programs")


def _with_set_aside(dropped: dict[str, int], set_aside: Sequence[Record]) -> dict[str, int]:
    """Samples that guards dropped, and those of launches that were set aside as a whole."""
    dropped = {**dropped, **dict.fromkeys(DISTURBANCES, 0)}
    for record in set_aside:
        dropped[record.disturbance] += len(record.values_ns)
    return dropped
