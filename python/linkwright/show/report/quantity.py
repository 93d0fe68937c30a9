"""Numbers for readers: SI prefixes for times and rates, IEC prefixes for sizes, and digits that the interval supports.

A value with an interval of +-3 ns is not printed to the picosecond. The decimals are chosen so that the half width
shows two digits (43.2 ns, interval 41.0 to 47.9). Without an interval, four significant digits are printed. GB = 10^9
bytes, GiB = 2^30.
"""

from __future__ import annotations

import math

# Unit in a results column -> (base unit, factor to it).
UNITS: dict[str, tuple[str, float]] = {
    "ps": ("s", 1e-12),
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "B": ("B", 1.0),
    "bytes": ("B", 1.0),
    "B/s": ("B/s", 1.0),
    "bytes/s": ("B/s", 1.0),
    "bytes_per_s": ("B/s", 1.0),
    "kB/s": ("B/s", 1e3),
    "MB/s": ("B/s", 1e6),
    "GB/s": ("B/s", 1e9),
    "GiB/s": ("B/s", 2.0**30),
    "TB/s": ("B/s", 1e12),
    "%": ("%", 1.0),
    "percent": ("%", 1.0),
    "ratio": ("1", 1.0),
    "1": ("1", 1.0),
    "": ("1", 1.0),
    "count": ("1", 1.0),
}

PREFIXES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps")),
    "B": ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "Flop/s": ((1e12, "TFlop/s"), (1e9, "GFlop/s"), (1e6, "MFlop/s"), (1.0, "Flop/s")),
    "Flop/s/W": ((1e12, "TFlop/s/W"), (1e9, "GFlop/s/W"), (1e6, "MFlop/s/W"), (1.0, "Flop/s/W")),
    "1/s": ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")),
    "1/s/W": ((1e9, "G/s/W"), (1e6, "M/s/W"), (1e3, "k/s/W"), (1.0, "/s/W")),
}


def base(unit: str | None) -> tuple[str, float]:
    """The base unit of a column's unit and the factor to it; an unknown unit is its own base."""
    return UNITS.get(unit or "", (unit or "1", 1.0))


def _prefix(value: float, unit: str) -> tuple[float, str]:
    steps = PREFIXES.get(unit)
    if not steps:
        return 1.0, "" if unit == "1" else unit
    size = abs(value) if unit == "B" else abs(float(f"{value:.4g}"))  # 999.996 ns is printed as 1 µs
    for factor, name in steps:
        if size >= factor:
            return factor, name
    return steps[-1] if value else (steps[0] if unit == "s" else steps[-1])


def _decimals(scaled: float, half_width: float | None) -> int:
    if half_width and half_width > 0:
        return max(0, min(4, 1 - math.floor(math.log10(half_width))))
    if scaled == 0:
        return 0
    return max(0, 3 - math.floor(math.log10(abs(scaled))))


def _grouped(scaled: float, decimals: int, trim: bool) -> str:
    text = f"{scaled:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if trim and "." in text else text


def text(value: float, unit: str) -> str:
    """`value` in the base unit `unit`: 4.31e-8 s is 43.1 ns, 65536 B is 64 KiB."""
    factor, name = _prefix(value, unit)
    scaled = value / factor
    return f"{_grouped(scaled, _decimals(scaled, None), trim=True)} {name}".rstrip()


def with_interval(value: float, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """The value and its interval with the same prefix and decimals; an unknown interval is an empty string."""
    if low is None or high is None:
        return text(value, unit), ""
    factor, name = _prefix(value, unit)
    decimals = _decimals(value / factor, (high - low) / 2 / factor)
    decimals = min(decimals, _decimals(value / factor, None) + 1)
    shown = f"{_grouped(value / factor, decimals, trim=False)} {name}".rstrip()
    return shown, f"{_grouped(low / factor, decimals, False)} – {_grouped(high / factor, decimals, False)}"


def size(size_bytes: float) -> str:
    """A message size: 65536 is 64 KiB."""
    return text(float(size_bytes), "B")


def signed_percent(share: float) -> str:
    """0.034 is +3.4 %; one decimal below 10 %."""
    return f"{'+' if share >= 0 else '-'}{percent(abs(share))}"


def percent(share: float) -> str:
    """0.724 is 72 %; one decimal below 10 %."""
    value = 100 * share
    return f"{value:,.1f} %" if abs(value) < 9.95 else f"{value:,.0f} %"


def plus_minus(precision: float) -> str:
    """0.012 is ±1.2 %."""
    return f"±{percent(precision)}"
