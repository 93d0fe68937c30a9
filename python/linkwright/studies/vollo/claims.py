"""The nine claims about the tables, each judged on the model and, for comparison, on the open cells.

Only pairs of published cells are compared, on the model too, so that both judgements concern the same pairs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from linkwright.studies.outcome import Claim, numbered

from .grid import MODES, PRINT_STEP_US, STATISTICS, VALUES, Grid

FIRST, LAST = VALUES[0], VALUES[-1]
_ROUNDING = 1e-9  # of sums of printed numbers


def check(model: Grid, page: Grid) -> list[Claim]:
    """All claims in order."""
    judges: list[tuple[str, Callable[[Grid, Grid], tuple[bool, str]]]] = [
        ("mmio is faster than raw for inputs up to 128 values and slower from 256 values on", _mmio_or_raw),
        ("raw is never slower than user", _raw_or_user),
        ("mmio is faster than user up to 128 values, about equal at 256, slower from 512", _mmio_or_user),
        ("raw and mmio are additive in input and output: corner against the sum of one-sided growths", _additive),
        ("user is sub-additive: at the largest sizes at least 1 us less than the sum", _sub_additive),
        ("p99 is at least the mean in every cell; the gap has a median of about 0.2 us in each mode", _gap),
        ("mmio: an input byte costs about 40 times an output byte", _cost_ratio),
        ("up to 512 values in both directions raw changes by at most 0.2 us", _flat),
        ("time does not decrease with size by more than 0.2 us, one cell apart", _monotone),
    ]
    claims = []
    for number, (statement, judge) in enumerate(judges, 1):
        holds, on_model = judge(model, page)
        _, on_page = judge(page, page)
        claims.append(numbered("V", number, statement, holds, f"model: {on_model}; page: {on_page}"))
    return claims


def _pairs(grid: Grid, page: Grid, a: str, b: str, stats: Iterable[str]) -> list[tuple[int, float]]:
    """(input, time of `a` minus time of `b`) wherever both cells are published."""
    return [
        (i, grid[a, s, i, o] - grid[b, s, i, o])
        for s in stats
        for o in VALUES
        for i in VALUES
        if (a, s, i, o) in page and (b, s, i, o) in page
    ]


def _count(right: Iterable[bool]) -> tuple[bool, str]:
    verdicts = list(right)
    return all(verdicts), f"{sum(verdicts)} of {len(verdicts)} pairs"


def _mmio_or_raw(grid: Grid, page: Grid) -> tuple[bool, str]:
    return _count((less < 0) == (i <= 128) for i, less in _pairs(grid, page, "mmio", "raw", STATISTICS))


def _raw_or_user(grid: Grid, page: Grid) -> tuple[bool, str]:
    return _count(more <= _ROUNDING for _, more in _pairs(grid, page, "raw", "user", STATISTICS))


def _mmio_or_user(grid: Grid, page: Grid) -> tuple[bool, str]:
    pairs = _pairs(grid, page, "mmio", "user", ["mean"])
    below = _count(less < 0 for i, less in pairs if i <= 128)
    above = _count(less > 0 for i, less in pairs if i >= 512)
    between = [less for i, less in pairs if i == 256]
    # "About equal": some pairs go either way, or all lie within one print step.
    equal = max(between) >= -_ROUNDING >= min(between) or all(abs(x) <= PRINT_STEP_US for x in between)
    middle = f"at 256 {sum(x < -_ROUNDING for x in between)} of {len(between)} faster"
    return below[0] and above[0] and equal, f"faster in {below[1]}, {middle}, slower in {above[1]}"


def _corner(grid: Grid, mode: str, first: int) -> tuple[float, float]:
    """Largest sizes both ways, and what one-sided growths add up to; `first` is the smallest input beside output."""
    t = lambda i, o: grid[mode, "mean", i, o]  # noqa: E731
    return t(LAST, LAST), t(LAST, _least_output(mode)) + t(first, LAST) - t(FIRST, FIRST)


def _least_output(mode: str) -> int:
    """Smallest output whose cell is published at the largest input: raw and mmio were held out below."""
    return 64 if mode == "raw" else FIRST


def _additive(grid: Grid, page: Grid) -> tuple[bool, str]:
    corners = {mode: _corner(grid, mode, FIRST) for mode in ("raw", "mmio")}
    text = ", ".join(f"{mode} {corner:.1f} against {total:.1f} us" for mode, (corner, total) in corners.items())
    return all(abs(corner - total) <= PRINT_STEP_US + _ROUNDING for corner, total in corners.values()), text


def _sub_additive(grid: Grid, page: Grid) -> tuple[bool, str]:
    corner, total = _corner(grid, "user", 64)
    return corner <= total - 1.0, f"{corner:.1f} against {total:.1f} us"


def _gap(grid: Grid, page: Grid) -> tuple[bool, str]:
    gaps = {
        mode: [
            grid[mode, "p99", i, o] - grid[mode, "mean", i, o]
            for o in VALUES
            for i in VALUES
            if (mode, "mean", i, o) in page
        ]
        for mode in MODES
    }
    medians = {mode: statistics.median(each) for mode, each in gaps.items()}
    text = ", ".join(f"{mode} median {medians[mode]:.2f}, most {max(gaps[mode]):.2f} us" for mode in MODES)
    never_below = all(gap >= -_ROUNDING for each in gaps.values() for gap in each)
    return never_below and all(abs(m - 0.2) <= PRINT_STEP_US / 2 + _ROUNDING for m in medians.values()), text


def _cost_ratio(grid: Grid, page: Grid) -> tuple[bool, str]:
    t = lambda i, o: grid["mmio", "mean", i, o]  # noqa: E731
    ratio = (t(LAST, FIRST) - t(FIRST, FIRST)) / (t(FIRST, LAST) - t(FIRST, FIRST))
    return 30 <= ratio <= 50, f"{ratio:.0f} times"


def _flat(grid: Grid, page: Grid) -> tuple[bool, str]:
    times = [grid[k] for k in page if k[:2] == ("raw", "mean") and max(k[2:]) <= 512]
    spread = max(times) - min(times)
    return spread <= 0.2 + _ROUNDING, f"{spread:.2f} us"


def _monotone(grid: Grid, page: Grid) -> tuple[bool, str]:
    drops = []
    for mode, statistic, i, o in page:
        for key in ((mode, statistic, 2 * i, o), (mode, statistic, i, 2 * o)):
            if key in page and grid[mode, statistic, i, o] - grid[key] > 0.2 + _ROUNDING:
                drops.append(f"{mode} {statistic} in {key[2]} out {key[3]}")
    return not drops, f"{len(drops)} larger drops" + (f" ({'; '.join(drops)})" if drops else "")
