"""Claims on which algorithm is faster, on progress signals and on noise, from medians over launches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwright_evidence.outcome import Claim
from linkwright_evidence.wormhole.allreduce import BO_SIZES_KIB, Timing, sizes_kib

SETTLED = (2, 3, 4)  # the runs, from 0, that do the same work
# Of the 16 cases, recursive doubling was faster in all but one.
EXCEPTIONS = 1
MOST_SPREAD = 0.01
BEST_SIGNALS = 32

# (variant, size in KiB, arithmetic) -> timing of the runs.
Times = dict[tuple[str, int, bool], Timing]


def check(times: Times, signals: Sequence[dict]) -> list[Claim]:
    """Claims 15 to 18; `signals` is the table of progress signals."""
    return [_full_order(times), _swing_is_slower(times), _signals(signals), _noise(times)]


def spread(timing: Timing) -> float:
    """Quartile distance of the slowest rank over the settled runs of all launches, as a share of their median."""
    low, middle, high = np.percentile([timing.slowest_of_each(run=run) for run in SETTLED], (25, 50, 75))
    return float((high - low) / middle)


def _full_order(times: Times) -> Claim:
    ranking = ("rd_BO", "swing_BO", "rd_LO", "swing_LO", "SM")
    cases = [(size, rule) for size in BO_SIZES_KIB for rule in ("own", "first")]
    wrong = [
        f"{size} kB {rule}-start ({', '.join(found)})"
        for size, rule in cases
        if (found := sorted(ranking, key=lambda v: times[v, size, True].slowest(rule))) != list(ranking)
    ]
    why = f"{len(cases) - len(wrong)} of {len(cases)} cases" + (f"; not {'; '.join(wrong)}" if wrong else "")
    return Claim("W-15", "the order by run time is BO RD, BO Swing, LO RD, LO Swing, SM", not wrong, why)


def _swing_is_slower(times: Times) -> Claim:
    """Claim 16, by the settled runs of all launches."""
    slower, faster = [], []
    for kind in ("LO", "BO"):
        for size in sizes_kib(f"swing_{kind}"):
            timings = (times[f"{order}_{kind}", size, True] for order in ("swing", "rd"))
            swing, doubling = (np.median([t.slowest_of_each(run=run) for run in SETTLED]) for t in timings)
            by = float(100 * (swing / doubling - 1))
            (slower if by > 0 else faster).append((by, f"{kind} {size} kB by {abs(by):.2f} %"))
    won = ", ".join(case for _, case in faster) or "none"
    why = f"Swing is slower in {len(slower)} cases, at most {max(slower)[1] if slower else 0}; faster in {won}"
    statement = "Swing is slightly slower than recursive doubling in all of 16 cases but one"
    return Claim("W-16", statement, len(faster) <= EXCEPTIONS, why)


def _signals(rows: Sequence[dict]) -> Claim:
    best = {}
    for variant in dict.fromkeys(row["variant"] for row in rows):
        own = [row for row in rows if row["variant"] == variant]
        best[variant] = min(own, key=lambda row: row["time_us"])["signals"]
    holds = all(BEST_SIGNALS / 2 <= signals <= BEST_SIGNALS * 2 for signals in best.values())
    why = ", ".join(f"{variant} is fastest with {signals}" for variant, signals in best.items())
    return Claim("W-17", "32 progress signals per step are best, within a factor of 2 (128 kB)", holds, why)


def _noise(times: Times) -> Claim:
    """Claim 18, by the settled runs of all launches; the only noise is the phase in which tiles poll."""
    spreads = {key[:2]: spread(timing) for key, timing in times.items() if key[2] and timing.others}
    over = {key: share for key, share in spreads.items() if share >= MOST_SPREAD}
    (variant, size), most = max(spreads.items(), key=lambda item: item[1])
    why = f"{len(spreads) - len(over)} of {len(spreads)} cases; at most {100 * most:.2f} % ({variant} {size} kB)"
    return Claim("W-18", "over repeats, the IQR of the slowest rank is below 1 % of its median", not over, why)
