"""Units: the only module that converts between text and bytes or seconds.

Simulated times are `Time`, in picoseconds; measured times are nanoseconds (`_ns`). Sizes are bytes (`_bytes`), and
rates are bytes per second (`_bytes_per_s`). On the command line K, M and G are 1024-based, as in nccl-tests; a printed
GB is 10^9 bytes and a GiB is 2^30.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from .errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# The only factors between units of time, and the only prefixes of rates and counts.
PS_PER_NS, PS_PER_US, PS_PER_MS, PS_PER_S = 1e3, 1e6, 1e9, 1e12
NS_PER_US, NS_PER_MS, NS_PER_S = 1e3, 1e6, 1e9
US_PER_S, S_PER_NS, S_PER_H = 1e6, 1e-9, 3600.0
KILO, MEGA, GIGA, TERA = 1e3, 1e6, 1e9, 1e12

_FACTOR = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,30})([KMGT]?)(iB)?", re.ASCII)
_DURATION = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)(ns|us|ms|s|m|min|h)?", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

SIZE_HELP = "bytes; K, M, G are 1024-based"
MAX_BYTES = 1 << 50
MAX_S = 10 * 366 * 86400.0


@dataclass(frozen=True, order=True, repr=False)
class Time:
    """A simulated time: a whole number of picoseconds, read in any unit.

    Example:
        >>> from linkwright.base.units import Time
        >>> time = Time(1_500_000)
        >>> time.us, time.ns, str(time)
        (1.5, 1500.0, '1.50 us')
        >>> Time(2_000_000) - time, time * 2, time / Time(3_000_000)
        (Time(500000), Time(3000000), 0.5)
    """

    ps: int

    def __post_init__(self) -> None:
        """Refuse what is not a whole number."""
        operator.index(self.ps)

    @property
    def ns(self) -> float:
        """In nanoseconds."""
        return self.ps / PS_PER_NS

    @property
    def us(self) -> float:
        """In microseconds."""
        return self.ps / PS_PER_US

    @property
    def ms(self) -> float:
        """In milliseconds."""
        return self.ps / PS_PER_MS

    @property
    def s(self) -> float:
        """In seconds."""
        return self.ps / PS_PER_S

    def __add__(self, other: Time) -> Time:
        return Time(self.ps + other.ps) if isinstance(other, Time) else NotImplemented

    def __sub__(self, other: Time) -> Time:
        return Time(self.ps - other.ps) if isinstance(other, Time) else NotImplemented

    def __mul__(self, times: float) -> Time:
        return Time(round(self.ps * times))

    __rmul__ = __mul__

    @overload
    def __truediv__(self, other: Time) -> float: ...
    @overload
    def __truediv__(self, other: float) -> Time: ...
    def __truediv__(self, other: Time | float) -> float | Time:
        return self.ps / other.ps if isinstance(other, Time) else Time(round(self.ps / other))

    def __bool__(self) -> bool:
        return self.ps != 0

    def __repr__(self) -> str:
        return f"Time({self.ps})"

    def __str__(self) -> str:
        return format_time(self.ns)


ZERO = Time(0)


@overload
def in_ns(ps: float) -> float: ...
@overload
def in_ns(ps: npt.NDArray[Any]) -> npt.NDArray[np.float64]: ...
def in_ns(ps: float | npt.NDArray[Any]) -> float | npt.NDArray[np.float64]:
    """Convert picoseconds, or a column of them, to nanoseconds."""
    return ps / PS_PER_NS


def in_us(ps: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Convert a column of picoseconds to microseconds."""
    return ps / PS_PER_US


def parse_size(text: str) -> int:
    """Read a size in bytes.

    Args:
        text: a whole number, with K, M, G or T for powers of 1024: `8`, `64K`, `1M`, `2GiB`; at most 1024T.
    Returns:
        The size in bytes.
    Raises:
        UsageError: the text is not a size.
    Example:
        >>> import linkwright as lw
        >>> lw.parse_size("64K")
        65536
    """
    match = _SIZE.fullmatch(text.strip())
    if not match or (match[3] and not match[2]):
        raise UsageError(
            f"size `{text}` is not a number of bytes; write a whole number, with K, M or G for "
            "powers of 1024: `8`, `64K`, `1M`"
        )
    size = int(match[1]) * _FACTOR[match[2]]
    if size > MAX_BYTES:
        raise UsageError(f"size `{text}` is beyond {format_size(MAX_BYTES)}, more than the memory of any machine")
    return size


def format_size(size_bytes: int) -> str:
    """The shortest exact text that `parse_size` reads back: `65536` becomes `64K`."""
    for suffix in ("T", "G", "M", "K"):
        if size_bytes and size_bytes % _FACTOR[suffix] == 0:
            return f"{size_bytes // _FACTOR[suffix]}{suffix}"
    return str(size_bytes)


def format_grid(sides: Iterable[int]) -> str:
    """Format (4, 4, 2) as `4x4x2`."""
    return "x".join(map(str, sides))


def parse_duration_s(text: str, with_unit: bool = False) -> float:
    """Read seconds from `90`, `90s`, `500ms` or `2m`; `with_unit` rejects a bare number, as for modelled times."""
    match = _DURATION.fullmatch(text.strip())
    if not match or float(match[1]) == 0:
        raise UsageError(f"duration `{text}` is not a positive time; write `90s`, `500ms` or `2m`")
    if with_unit and not match[2]:
        raise UsageError(f"duration `{text}` has no unit; write `{text}ns`, `{text}us`, `{text}ms` or `{text}s`")
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if seconds > MAX_S:
        raise UsageError(f"duration `{text}` is longer than ten years; write a shorter one")
    return seconds


def size_sweep(min_bytes: int, max_bytes: int, factor: int) -> list[int]:
    """Return `min_bytes`, multiplied by `factor` up to and including `max_bytes`."""
    if min_bytes == 0:
        raise UsageError("a sweep cannot grow from 0 bytes; start at 1, or list the sizes")
    if max_bytes < min_bytes:
        raise UsageError(
            f"the largest size {format_size(max_bytes)} is below the smallest, {format_size(min_bytes)}; swap them"
        )
    if factor < 2:
        raise UsageError(f"a sweep with factor {factor} does not grow; use 2 or more")
    sizes = [min_bytes]
    while sizes[-1] * factor <= max_bytes:
        sizes.append(sizes[-1] * factor)
    return sizes


def parse_sizes(text: str) -> list[int]:
    """Read sizes in bytes, each once: `8,64K,1M`, or `1M..8G`, which doubles from the first to the last."""
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        found += size_sweep(parse_size(first), parse_size(last), 2) if dots else [parse_size(first)]
    return list(dict.fromkeys(found))


def counted(number: int, thing: str = "experiment") -> str:
    """Format a count: `1 experiment`, `2 experiments`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def format_time(time_ns: float | None) -> str:
    """Format a time with three to four significant digits and a suitable unit: `812 ns`, `1.24 us`."""
    if time_ns is None:
        return ""
    for unit, scale in (("ns", 1.0), ("us", NS_PER_US), ("ms", NS_PER_MS), ("s", NS_PER_S)):
        if abs(time_ns) < scale * KILO or unit == "s":
            return f"{_digits(time_ns / scale)} {unit}"
    raise AssertionError("unreachable")


def format_us(time_us: float) -> str:
    """Format a time in microseconds like `format_time`."""
    return format_time(time_us * NS_PER_US)


def format_ps(time_ps: float) -> str:
    """Format a time in picoseconds like `format_time`."""
    return format_time(time_ps / PS_PER_NS)


def format_rate(rate_bytes_per_s: float | None) -> str:
    """Format a rate as `12.30 GB/s`, with GB = 10^9 bytes; in MB/s or kB/s where two decimals would say little."""
    if rate_bytes_per_s is None:
        return ""
    unit, scale = _rate_unit(rate_bytes_per_s)
    return f"{_digits(rate_bytes_per_s / scale)} {unit}"


def format_gb_per_s(rate: float, digits: int = 3) -> str:
    """Format a rate in 10^9 B/s with significant digits, in the unit of `format_rate`: `12.3 GB/s`, `59.9 MB/s`."""
    unit, scale = _rate_unit(rate * GIGA)
    return f"{rate * GIGA / scale:.{digits}g} {unit}"


def _rate_unit(rate_bytes_per_s: float) -> tuple[str, float]:
    """The unit of a rate, and its bytes per second: the next smaller one below a tenth."""
    for unit, scale in (("GB/s", GIGA), ("MB/s", MEGA)):
        if abs(rate_bytes_per_s) >= scale / 10 or not rate_bytes_per_s:
            return unit, scale
    return "kB/s", KILO


def format_scaled(value: float, unit: str) -> str:
    """Format a value: `93.9 GFlop/s`, `372 M/s` for a rate of things, `0.25` without a unit."""
    if not unit:
        return f"{value:.4g}"
    for prefix, scale in (("T", TERA), ("G", GIGA), ("M", MEGA), ("k", KILO)):
        if abs(value) >= scale:
            return f"{_digits(value / scale)} {prefix}{unit.removeprefix('1')}"
    return f"{_digits(value)} {unit}"


def _digits(value: float) -> str:
    magnitude = abs(value)
    decimals = 0 if magnitude >= 1000 or value == int(value) else 1 if magnitude >= 100 else 2
    return f"{value:.{decimals}f}"
