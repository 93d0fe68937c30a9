"""Whether the numbers of a row belong together.

A digit or a dot that a copy lost changes a time tenfold, and two outputs in one another change any column. A row states
its time up to four times:

    count x bytes of the type  divides  size
    algbw = size / time                          in all tools that print both
    busbw = factor x algbw                       the factor follows from the collective and the ranks

A row that contradicts itself is not read, but named. What is rounded may be apart by its last digit.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linkwright.base.units import KILO

from .kinds import LogRow

APART = 0.02  # of a number, beyond its last digit
RATE = 0.005  # 10^9 B/s: half of the last digit of a rate
_RATED = 1.0  # 10^9 B/s: rates above tell a factor
_MOST_RANKS = 1 << 22
# The size of an element by the names that tools have for types.
BYTES = {
    "int8": 1, "char": 1, "uint8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "f8e4m3": 1, "f8e5m2": 1, "float8_e4m3": 1,
    "float8_e5m2": 1, "half": 2, "float16": 2, "bfloat16": 2, "int32": 4, "int": 4, "uint32": 4, "float": 4,
    "float32": 4, "int64": 8, "uint64": 8, "double": 8, "float64": 8,
}  # fmt: skip
_WHOLE = ("allreduce", "broadcast", "reduce", "sendrecv")  # of which a rank sends or receives all elements
_RATED_BY_SIZE = (*_WHOLE, "allgather", "reduce_scatter", "alltoall", "gather", "scatter", None)


def time_and_rate(size: int, time: float, algbw: float | None, unit: float = 1.0, printed: str = "") -> str | None:
    """What is wrong with a size, a time in us and a rate in 10^9 B/s.

    Args:
        size: bytes.
        time: us.
        algbw: 10^9 B/s; None where the tool prints none.
        unit: of the printed rate, in 10^9 B/s.
        printed: the time as the tool prints it, in any unit.
    """
    if size and not time:
        return "the time is 0"
    if not size or algbw is None:
        return None
    rate = size / time / KILO
    off, known = abs(rate - algbw), APART * rate + RATE * unit
    if off <= known or (printed and off <= known + rate * min(1.0, last_digit(printed) / float(printed))):
        return None
    return f"time and algbw disagree: {size} B in {time:g} us are {rate:.4g} GB/s, not {algbw:g}"


def last_digit(word: str) -> float:
    """What the last digit of a printed number counts: 0.01 of `9.54`, 100000 of `1.8e+06`."""
    mantissa, _, exponent = word.lower().partition("e")
    power = int(exponent or 0) if exponent.lstrip("+-").isdecimal() or not exponent else 0
    return 10.0 ** (max(-30, min(30, power)) - len(mantissa.partition(".")[2]))


def count(size: int, elements: int | None, dtype: str, collective: str | None) -> str | None:
    """What is wrong with a number of elements; in some collectives it is that of one rank's block."""
    if elements is None or dtype not in BYTES or not size:
        return None
    block = elements * BYTES[dtype]
    if block == size or (collective not in _WHOLE and block and size % block == 0):
        return None
    return f"size and count disagree: {elements} x {BYTES[dtype]} B are not {size} B"


def is_rated_by_size(collective: str | None) -> bool:
    """Whether algbw is size / time; other tests count other bytes."""
    return collective in _RATED_BY_SIZE


@dataclass(frozen=True)
class Factors:
    """What busbw / algbw of a table says.

    Attributes:
        rows: those that agree with the others.
        odd: (line, complaint) of those that do not.
        ranks: how many ranks the factor is of: those that the log lists, or others; None if it cannot tell.
    """

    rows: tuple[LogRow, ...]
    odd: tuple[tuple[int, str], ...] = ()
    ranks: int | None = None


def factors(rows: Sequence[LogRow], collective: str | None, ranks: int | None, unit: float = 1.0) -> Factors:
    """Compare busbw / algbw of the rows of a table with one another, and with the ranks that the log lists."""
    rated = [row for row in rows if row.algbw and row.busbw and row.algbw >= _RATED * unit]
    if not rated:
        return Factors(tuple(rows))
    expected = _factor(collective, ranks)
    odd = _odd(rated, expected, unit) if expected else set()
    if expected and len(odd) <= len(rated) / 2:
        usual = expected
    else:
        best = [max(rated, key=lambda row: row.algbw or 0)] if len(rated) < 3 else rated
        usual = statistics.median(map(_ratio, best))
        odd = _odd(rated, usual, unit)
    if collective is not None and not _is_possible(collective, usual):
        said = f"busbw is {usual:.4g} x algbw, which {collective} has on no number of ranks"
        return Factors((), tuple((row.line, said) for row in rows))
    kept = tuple(row for row in rows if id(row) not in odd) if odd else tuple(rows)
    said = tuple(
        (row.line, f"algbw and busbw disagree: {row.busbw:g} is not {usual:.4g} x {row.algbw:g} GB/s")
        for row in (rated if odd else ())
        if id(row) in odd
    )
    if expected is None or _factor(collective, 2) == _factor(collective, 3):
        return Factors(kept, said)
    if usual == expected:
        return Factors(kept, said, ranks)
    return Factors(kept, said, _ranks(collective, [row for row in rated if id(row) not in odd], usual, unit))


def ranks_of(rows: Sequence[LogRow], collective: str | None, unit: float = 1.0) -> int | None:
    """Return the number of ranks that busbw / algbw is of, for a log that lists none; None if it cannot tell."""
    rated = [row for row in rows if row.algbw and row.busbw and row.algbw >= _RATED * unit]
    if not rated or _factor(collective, 2) == _factor(collective, 3):
        return None
    return _ranks(collective, rated, statistics.median(map(_ratio, rated)), unit)


def _ratio(row: LogRow) -> float:
    return (row.busbw or 0) / (row.algbw or 1)


def _odd(rows: Iterable[LogRow], factor: float, unit: float) -> set[int]:
    """The rows whose factor differs from this one by more than rounding, by `id`; all have rates."""
    rates = ((row, row.algbw or 1, row.busbw or 1) for row in rows)
    return {
        id(row)
        for row, algbw, busbw in rates
        if abs(busbw / algbw / factor - 1) > APART + unit * (RATE / algbw + RATE / busbw)
    }


def bus_factor(collective: str, ranks: int) -> float:
    """Return busbw over size / time, as nccl-tests counts; a send has no other ranks to count."""
    from linkwright import _native

    known = None if collective == "sendrecv" else _native.bus_factor(collective, ranks)
    return 1.0 if known is None else known


def _factor(collective: str | None, ranks: int | None) -> float | None:
    if collective not in _RATED_BY_SIZE or collective is None or not ranks:
        return None
    return bus_factor(collective, ranks)


def _is_possible(collective: str, factor: float) -> bool:
    """Whether a collective has this factor on some number of ranks."""
    least, most = (_factor(collective, ranks) or factor for ranks in (2, _MOST_RANKS))
    return least * (1 - APART) <= factor <= most * (1 + APART)


def _ranks(collective: str | None, rows: Iterable[LogRow], factor: float, unit: float) -> int | None:
    """The number of ranks that a factor is of; None if rounding leaves several."""
    most = 2.0 if collective == "allreduce" else 1.0
    best = max(rows, key=lambda row: row.algbw or 0, default=None)
    if best is None or factor >= most:
        return None
    ranks = most / (most - factor)
    rounding = unit * (RATE / (best.algbw or 1) + RATE / (best.busbw or 1))
    doubt = ranks * rounding * factor / (most - factor)
    sure = doubt < 0.5 and abs(ranks - round(ranks)) <= doubt + 0.1
    return round(ranks) if sure and 2 <= ranks <= _MOST_RANKS else None
