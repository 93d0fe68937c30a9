"""The claims about the tables, each judged on the model and, for comparison, on the page.

That the 99th percentile is never below the mean, that raw buffers are never slower than the caller's, and that time
grows with size follows from how the model is made, so two claims state how much instead, and the third is not judged:
the facts count the steps of the page that get faster, which are noise.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

from linkwright_evidence.outcome import Claim, numbered

from .grid import MODES, PRINT_STEP_US, STATISTICS, VALUES, Grid

FIRST, LAST = VALUES[0], VALUES[-1]
# Mode -> the largest distance of the 99th percentile from the mean that the page prints, in us.
MOST_GAP = {"user": 0.5, "raw": 0.4, "mmio": 1.1}
# How far a sum of growths may be from the printed one.
CORNER = 0.03
_ROUNDING = 1e-9  # of sums of printed numbers


def check(model: Grid, page: Grid) -> list[Claim]:
    """All claims in order."""
    judges: list[tuple[str, Callable[[Grid, Grid], tuple[bool, str]]]] = [
        ("mmio is faster than raw for inputs up to 128 values and slower from 256 values on", _mmio_or_raw),
        ("raw is faster than user, as printed, in 78 of 81 cells of the mean (3 more or less)", _raw_or_user),
        ("mmio is faster than user up to 128 values, about equal at 256, slower from 512", _mmio_or_user),
        (
            "raw and mmio: at the largest sizes the sum of one-sided growths, 3.4 and 36.8 us (3 % more or less)",
            _additive,
        ),
        ("user is sub-additive: at the largest sizes at least 1 us less than the sum", _sub_additive),
        ("p99 less mean: a median of about 0.2 us in each mode, at most 0.5, 0.4 and 1.1 us (0.1 more or less)", _gap),
        ("mmio: an input byte costs about 40 times an output byte", _cost_ratio),
        ("up to 512 values in both directions raw changes by at most 0.2 us", _flat),
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
    less = [round(grid["raw", "mean", i, o], 1) < round(grid["user", "mean", i, o], 1) for i in VALUES for o in VALUES]
    return abs(sum(less) - 78) <= 3, f"{sum(less)} of {len(less)} cells"


def _mmio_or_user(grid: Grid, page: Grid) -> tuple[bool, str]:
    pairs = _pairs(grid, page, "mmio", "user", ["mean"])
    below = _count(less < 0 for i, less in pairs if i <= 128)
    above = _count(less > 0 for i, less in pairs if i >= 512)
    between = [less for i, less in pairs if i == 256]
    # "About equal": some pairs go either way, or all lie within one print step.
    equal = max(between) >= -_ROUNDING >= min(between) or all(abs(x) <= PRINT_STEP_US for x in between)
    middle = f"at 256 {sum(x < -_ROUNDING for x in between)} of {len(between)} faster"
    return below[0] and above[0] and equal, f"faster in {below[1]}, {middle}, slower in {above[1]}"


def _corner(grid: Grid, mode: str) -> tuple[float, float]:
    """Largest sizes both ways, and what one-sided growths add up to."""
    t = lambda i, o: grid[mode, "mean", i, o]  # noqa: E731
    return t(LAST, LAST), t(LAST, FIRST) + t(FIRST, LAST) - t(FIRST, FIRST)


def _additive(grid: Grid, page: Grid) -> tuple[bool, str]:
    corners = {mode: (*_corner(grid, mode), _corner(page, mode)[1]) for mode in ("raw", "mmio")}
    text = ", ".join(f"{mode} {corner:.1f} against {total:.1f} us" for mode, (corner, total, _) in corners.items())
    holds = (
        abs(corner - total) <= PRINT_STEP_US + _ROUNDING and abs(total / printed - 1) <= CORNER
        for corner, total, printed in corners.values()
    )
    return all(holds), text


def _sub_additive(grid: Grid, page: Grid) -> tuple[bool, str]:
    corner, total = _corner(grid, "user")
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
    usual = all(abs(m - 0.2) <= PRINT_STEP_US / 2 + _ROUNDING for m in medians.values())
    return usual and all(
        abs(max(gaps[mode]) - most) <= PRINT_STEP_US + _ROUNDING for mode, most in MOST_GAP.items()
    ), text


def _cost_ratio(grid: Grid, page: Grid) -> tuple[bool, str]:
    t = lambda i, o: grid["mmio", "mean", i, o]  # noqa: E731
    ratio = (t(LAST, FIRST) - t(FIRST, FIRST)) / (t(FIRST, LAST) - t(FIRST, FIRST))
    return 30 <= ratio <= 50, f"{ratio:.0f} times"


def _flat(grid: Grid, page: Grid) -> tuple[bool, str]:
    times = [grid[k] for k in page if k[:2] == ("raw", "mean") and max(k[2:]) <= 512]
    spread = max(times) - min(times)
    return spread <= 0.2 + _ROUNDING, f"{spread:.2f} us"
