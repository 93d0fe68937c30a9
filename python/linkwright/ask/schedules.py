"""Turn questions into schedules, and run schedules: the calls into the native half."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linkwright import _native
from linkwright._native import How
from linkwright.ask.answer import Answer, ask
from linkwright.ask.question import Collective, Continued, Pattern, Program, Scheduled
from linkwright.base.errors import LinkwrightError, ShapeError, TooLargeError
from linkwright.base.lazy import np
from linkwright.base.stats.quantile import percentiles
from linkwright.base.units import Time
from linkwright.store.record import UNCHECKED, UNWARMED, Note, Record, remarks

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkwright.base.native_types import LaunchColumns


# A compute in traffic takes 1 ns for each operation, the unit of GOAL. Computes of a collective, such as the tiles that
# a protocol skips, run at the rate of the machine.
OPERATIONS_PER_S = 1e9

# Ranks up to which no schedule is too large.
MOST_COUNTED = 512
# What a simulation in memory can hold, and what each takes.
MOST_OPERATIONS, BYTES_PER_OPERATION = 1 << 25, 100
MOST_RANKS, BYTES_PER_RANK = 1 << 20, 1500
# Chunks of messages that arrive at one rank.
MOST_CHUNKS = 1 << 20
# A collective of more is simulated by one rank that stands for all, where ranks are alike: it takes milliseconds.
ALIKE_FROM = 1 << 20


def of(question: Scheduled, rings: Sequence[Sequence[int]] | None = None) -> _native.Schedule:
    """Return the schedule that answers a question; a ring algorithm follows `rings`, by default in rank order."""
    if question.own:
        return question.own.given()
    if error := too_large(question):
        raise error
    if isinstance(question, Pattern):
        return _native.Schedule.pattern(question.algorithm, **shape(question))
    return _native.Schedule.build(question.algorithm_key, **shape(question), rings=rings)


def at_once(ranks: int, messages: Sequence[tuple[int, int, int]]) -> _native.Schedule:
    """Return messages (from, to, bytes) that all start at once, each to a place of its own at its target.

    Raises:
        ShapeError: the sizes have too small a common divisor.
    Example:
        >>> at_once(3, [(0, 2, 8), (1, 2, 12)])
        <Schedule pattern over 3 ranks: 2 operations, 2 messages>
    """
    chunk = math.gcd(*(size for _, _, size in messages))
    lengths = [size // chunk if chunk else 1 for _, _, size in messages]
    arriving = [0] * ranks
    for (_, target, _), length in zip(messages, lengths, strict=True):
        arriving[target] += length
    chunks = max(arriving)
    if chunks > MOST_CHUNKS:
        raise ShapeError(f"sizes have no larger common divisor than {chunk} B; round them to whole KiB")
    builder = _native.Builder("pattern", ranks, chunk * chunks, element_bytes=1)
    builder.buffer("input", chunks)
    builder.buffer("output", chunks)
    builder.step()
    for (source, target, _), length in zip(messages, lengths, strict=True):
        arriving[target] -= length
        builder.put(source, target, "input", 0, length, into="output", at=arriving[target])
    return builder.finish()


def shape(question: Scheduled) -> dict[str, Any]:
    """Return the keywords for `Schedule.build` or, for a pattern, for `Schedule.pattern`."""
    names = ("ranks", "elements", "element_bytes", "root", "grid")
    found: dict[str, Any] = {name: getattr(question, name) for name in names}
    if isinstance(question, Pattern):
        found |= {"count": question.messages, "both_ways": question.both_ways}
    if isinstance(question, Collective) and question.exchange:
        found |= question.exchange.shape
    return found


def expected_operations(question: Scheduled) -> int:
    """Return about how many operations a schedule will have, without making it; 0 if they are few or unknown."""
    if question.own:
        return len(question.own.schedule) if question.own.schedule else 0
    if question.ranks <= MOST_COUNTED or not isinstance(question, Collective):
        return 0
    return _grown(question.algorithm_key, question.ranks)


def too_large(question: Scheduled) -> TooLargeError | None:
    """Return why the schedule of a question does not fit into memory, and what would; None if it fits."""
    count, fewer = expected_operations(question), question.ranks
    if question.own or (count <= MOST_OPERATIONS and fewer <= MOST_RANKS):
        return None
    while fewer > MOST_RANKS or (count and _grown(question.algorithm_key, fewer) > MOST_OPERATIONS):
        fewer //= 2
    need = count * BYTES_PER_OPERATION + question.ranks * BYTES_PER_RANK
    limits = [f"about {count:,} operations (at most {MOST_OPERATIONS:,})"] if count > MOST_OPERATIONS else []
    limits += [f"{question.ranks:,} ranks (at most {MOST_RANKS:,})"] if question.ranks > MOST_RANKS else []
    return TooLargeError(
        f"{question.algorithm_key}: too large to simulate every rank: {' and '.join(limits)}, {need >> 30:,} GiB; "
        f"use at most {fewer:,} ranks"
    )


def engine_kind(question: Collective) -> str:
    """Return the kind of question for the native half.

    `collective` simulates every rank, `fold` one rank that stands for all, `stream` one rank where ranks are alike and
    else every rank.
    """
    if too_large(question):
        return "fold"
    return "stream" if expected_operations(question) > ALIKE_FROM else "collective"


def _grown(algorithm: str, ranks: int) -> int:
    """Return the operations on many ranks, as they grow between two smaller numbers that are as prime or as even."""
    small = (64, 256) if ranks & (ranks - 1) == 0 else (61, 251)
    first, second = _counted(algorithm, small)
    if not second:
        return 0
    growth = math.log(second / max(first, 1)) / math.log(small[1] / small[0])
    return round(second * math.pow(ranks / small[1], growth))


@functools.lru_cache(256)
def _counted(algorithm: str, several: tuple[int, int]) -> tuple[int, int]:
    """Return the operations on each of two numbers of ranks; zeros if the algorithm has none for them."""
    try:
        first, second = (
            _parts(_native.Schedule.build(algorithm, count, 16 * count, element_bytes=4)) for count in several
        )
    except LinkwrightError:
        return 0, 0
    return first, second


def _parts(schedule: _native.Schedule) -> int:
    """Return the operations, one for each run of chunks and for each rank of a set."""
    return int(schedule.operations()["runs"].sum()) + sum(map(len, schedule.sets))


def moved_bytes(question: Pattern | Program) -> int:
    """Return the bytes that all messages of traffic move, both directions together."""
    if isinstance(question, Program):
        return int(of(question).sent_bytes().sum())
    return _native.pattern_bytes(question.algorithm, **shape(question))


def run_threads(schedule: _native.Schedule, question: Scheduled, **options: object) -> Record:
    """Run one launch on threads."""
    if question.placement:
        cpus = _native.cpus()
        options["cpus"] = [cpus[i] for i in question.placement]
    how = {name: getattr(question, name) for name in ("dtype", "op", "skew", "issue")}
    found = _native.run_threads(schedule, how | options)
    # Columns by (sample, rank) become one row for each rank.
    starts, finishes = (found[name].reshape(-1, found["ranks"]).T for name in ("start_ns", "finish_ns"))
    traffic = not isinstance(question, Collective)
    return Record(
        values_ns=rounded(found["slowest_ns"]),
        ranks_ns=[[rounded(s), rounded(f - s)] for s, f in zip(starts, finishes, strict=True)],
        first_ns=round(found["first_ns"], 2),
        rank_ns=rounded(np.median(finishes - starts, axis=1)) if traffic and starts.size else (),
        message_ns=rounded(percentiles(found["message_ns"])),
        row_ns=found["row_ns"] and rounded(np.array(found["row_ns"])),
        batch=found["batch"],
        dropped=found["drops"],
        notes=(*_notes(found), *of_issue(question.issue, "a fence")),
    )


def rounded(values_ns: npt.NDArray[np.float64] | Sequence[float]) -> list[float]:
    """Round to a hundredth of a nanosecond, far below the resolution of any clock."""
    return list(map(float, np.round(np.asarray(values_ns), 2)))


def of_issue(issue: str | None, completing: str) -> list[Note]:
    """Note the issue policy that is used in place of one that cannot be followed exactly, and what completes puts."""
    if not issue or not issue.startswith("window("):
        return []
    batch = issue.replace("window", "batch")
    return remarks(f"{completing} completes all puts under way at once, so {issue} runs as {batch}")


def _notes(found: LaunchColumns) -> Iterator[Note]:
    """Yield the caveats of these samples."""
    if found["oversubscribed"]:
        sharing = f"{found['ranks']} ranks share {len(set(found['cpus']))} processors"
        yield Note("oversubscribed", f"oversubscribed: {sharing}")
    if found["unpinned"]:
        yield Note("unpinned", found["unpinned"])
    if not found["warmed_up"]:
        yield UNWARMED
    if not found["checked_elements"]:
        yield UNCHECKED


def lowered(
    schedule: _native.Schedule, machine: _native.Machine, path: str | None, placement: tuple[int, ...] | None = None
) -> _native.Schedule:
    """Lower a schedule for a machine, its path and the endpoint of each rank, to run it more than once or to look at it
    first.
    """
    return _native.lower(schedule, machine, path, placement)


def how(question: Scheduled, **more: Any) -> How:
    """Return how the schedule of a question runs; `more` are other or further fields of `How`."""
    own, collective = question.own, isinstance(question, Collective)
    seats = question.placement
    if seats and own and own.continued:
        seats = seats[: own.given().ranks]  # a schedule that represents a longer one may be over the first nodes
    fields = {name: getattr(question, name) for name in ("issue", "path", "skew", "arithmetic")}
    fields |= {
        "placement": seats or None,
        "operations_per_s": None if collective else OPERATIONS_PER_S,
        "launch_ps": own.launch_ps if own else 0,
        "channels": own.channels if own else None,
        "across": own.across if own else None,
        "sends": own.sends if own else None,
    }
    return How(**fields | more)


def time(question: Scheduled, machine: _native.Machine, answered: Answer | None = None, **more: Any) -> Time:
    """Return the simulated time of a question; of a schedule that represents a longer one, that of the longer one.

    `answered` is the answer to its schedule, where that was asked for already.
    """
    own, options = question.own, how(question, **more)
    answer = answered or ask(machine, of(question), options)
    if own is None or own.continued is None:
        return answer.time
    asked: Any = question  # those that have a schedule of their own say so in their own class
    others = (replace(asked, own=replace(own, schedule=other)) for other in own.continued.others)
    return line(own.continued, answer, [ask(machine, of(other), how(other, **more)) for other in others])


def line(stated: Continued, own: Answer, others: Sequence[Answer]) -> Time:
    """Return the time that a schedule represents, from its answer and those of `stated.others`.

    It is never below what links and threads need.
    """
    shorter, longer = others[0].slowest.ps, (others[1] if stated.longer else own).slowest.ps
    least = max(stated.least_ps, own.bound.time.ps if own.bound else 0)
    return Time(max(least, round(own.slowest.ps + stated.times * (longer - shorter))))
