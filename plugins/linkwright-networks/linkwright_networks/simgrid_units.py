"""Read rates, times and lists of numbers as SimGrid platforms write them: `1.25GBps`, `50us`, `0-15,20`.

A rate is in bits (`Gbps`) or bytes (`GBps`), with prefixes for powers of 10 or, with an `i`, of 2. SimGrid reads a
number without a unit as bytes per second or seconds and warns; here it is refused, unless it is a time of 0.
"""

from __future__ import annotations

import re
from decimal import Decimal

from linkwright.network_api import MOST_ENDPOINTS, FileError, Number, bounded

_NUMBER = r"([0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][-+]?[0-9]{1,2})?)"
_RATE = re.compile(_NUMBER + r"\s*([kKMGTPE]?)(i?)(b|B)ps", re.ASCII)
_TIME = re.compile(_NUMBER + r"\s*(ps|ns|us|ms|s|m|h|d|w)", re.ASCII)
_ZERO = re.compile(r"0+(\.0*)?", re.ASCII)
_POWERS = "kMGTPE"
_SECONDS = {
    "ps": Decimal("1e-12"), "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "ms": Decimal("1e-3"), "s": Decimal(1),
    "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400), "w": Decimal(604800),
}  # fmt: skip
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
LEAST_RATE, MOST_RATE, MOST_TIME = 1000, Decimal(10) ** 18, 1000


def rate(text: str, where: str) -> Decimal:
    """Read a rate in bytes per second."""
    match = _RATE.fullmatch(text.strip())
    if not match:
        cure = "a rate has a unit" if re.fullmatch(_NUMBER, text.strip(), re.ASCII) else "not a rate"
        raise FileError(f'{where} is `{text[:40]}`: {cure}; write such as "125MBps" (bytes) or "1Gbps" (bits)')
    power = (_POWERS.index(match[2].replace("K", "k")) + 1) if match[2] else 0
    value = Decimal(match[1]) * (1024 if match[3] else 1000) ** power / (8 if match[4] == "b" else 1)
    if not LEAST_RATE <= value <= MOST_RATE:
        raise FileError(f"{where} is `{text[:40]}`; write a rate from 1kBps to 10^9 GBps")
    return value


def time(text: str, where: str) -> Decimal:
    """Read a time in seconds."""
    if _ZERO.fullmatch(text.strip()):
        return Decimal(0)
    match = _TIME.fullmatch(text.strip())
    if not match:
        cure = "a time has a unit" if re.fullmatch(_NUMBER, text.strip(), re.ASCII) else "not a time"
        raise FileError(f'{where} is `{text[:40]}`: {cure}; write such as "50us"')
    value = Decimal(match[1]) * _SECONDS[match[2]]
    if value > MOST_TIME:
        raise FileError(f"{where} is `{text[:40]}`; write at most {MOST_TIME}s")
    return value


def radical(text: str, where: str) -> list[int]:
    """Expand `0-15,20` to the numbers that it lists."""
    numbers: list[int] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not match or last < first:
            raise FileError(f'{where} is `{text[:40]}`; write numbers such as "0-15,20"')
        bounded(len(numbers) + last - first + 1, MOST_ENDPOINTS, where, "hosts")
        numbers += range(first, last + 1)
    return numbers


def as_rate(bytes_per_s: Decimal, source: str, status: str = "documented") -> Number:
    """Write a rate in a readable unit."""
    unit, factor = ("GB/s", 10**9) if bytes_per_s >= 10**9 else ("MB/s", 10**6) if bytes_per_s >= 10**6 else ("B/s", 1)
    return Number(bytes_per_s / factor, unit, status, source)


def as_time(seconds: Decimal, source: str, status: str = "documented") -> Number:
    """Write a time in a readable unit."""
    unit, factor = ("s", 1) if seconds >= 1 else ("ms", 10**3) if seconds >= Decimal("1e-3") else ("us", 10**6)
    return Number(seconds * factor, unit, status, source)
