"""Building a cost table: simulate points, refine where the straight line is wrong, measure the error that is left."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from linkwright import executors
from linkwright.advise.cost_curve import ROUNDS, WITHIN, CostCurve, Error, Fields, error_of, rising
from linkwright.ask.question import DTYPES
from linkwright.base.errors import UsageError
from linkwright.base.units import NS_PER_US
from linkwright.executors import ModelledTarget
from linkwright.machines import AS_DESCRIBED, Variant
from linkwright.session.suite.context import Context
from linkwright.session.suite.expand import expand
from linkwright.session.suite.load import one_part
from linkwright.session.suite.model import Work, in_order, simulate

Point = tuple[float, str]  # time in microseconds, and the algorithm that takes it
Simulate = Callable[[Iterable[int]], dict[int, Point]]
# As many ranks as a table may be asked for where it names none.
_MOST = 4096


def fields(
    machine: str, collectives: Sequence[str], ranks: Sequence[int] | None, algorithms: str, sizes: Sequence[int],
    dtype: str, grid: tuple[int, ...] | None = None, variant: Variant = AS_DESCRIBED,
) -> Fields:  # fmt: skip
    """The table of a machine, as the fields of a `CostTable`."""
    if not collectives or not sizes:
        raise UsageError("a cost table needs at least one collective and one size")
    target = executors.resolve_one(machine, max(ranks) if ranks else None, grid, most=_MOST, variant=variant)
    if not isinstance(target, ModelledTarget):
        raise UsageError(f"{machine}: costs are simulated; name a described machine (`linkwright list machines`)")
    counts = list(dict.fromkeys(ranks or [target.extent.ranks]))
    made = [
        _curve(target, collective, count, algorithms, dtype, sizes)
        for collective in dict.fromkeys(collectives)
        for count in counts
    ]
    digest = hashlib.sha256(target.recipe.text.encode()).hexdigest()[:16]
    return target.machine_name, digest, algorithms, dtype, tuple(made)


def _fastest(
    target: ModelledTarget, collective: str, ranks: int, algorithms: str, dtype: str, sizes: Iterable[int]
) -> dict[int, Point]:
    """The least time at each size, in their order, by the size that is really moved."""
    wanted = tuple(sorted(sizes))
    if not wanted:
        return {}
    suite = one_part(
        "cost", collective, collectives=(collective,), algorithms=tuple(algorithms.split(",")), ranks=(ranks,),
        sizes=wanted, dtype=dtype,
    )  # fmt: skip
    asked = expand(suite, target.extent)
    work = Work(target, Context.of(target, "", "cost"), {suite.parts[0].name: ()}, 0)
    found: dict[int, Point] = {}
    for question, rows in in_order(asked, simulate(work, asked)):
        time = next((row["value"] for row in rows if row["metric"] == "time"), None)
        if not isinstance(time, int | float):  # waived or failed
            continue
        point = (time / NS_PER_US, question.algorithm)
        size = question.size_bytes or 0
        found[size] = min(found.get(size, point), point, key=lambda each: each[0])
    return dict(sorted(found.items()))


def _curve(
    target: ModelledTarget, collective: str, ranks: int, algorithms: str, dtype: str, sizes: Sequence[int]
) -> CostCurve:
    fastest = functools.partial(_fastest, target, collective, ranks, algorithms, dtype)
    points = fastest(sizes)
    if not points:
        raise UsageError(
            f"{collective} on {ranks} ranks of {target.name}: no algorithm of `{algorithms}` has a time; "
            "`linkwright simulate` says why"
        )
    _refine(points, fastest)
    ordered = tuple(sorted(points))
    times = tuple(round(time, 6) for time in rising([points[size][0] for size in ordered]))
    curve = CostCurve(collective, ranks, ordered, times, tuple(points[s][1] for s in ordered), Error(0, 0.0, 0.0, 0.0))
    checks = fastest({_between(a, b, 1 / 3) for a, b in _intervals(points)} - points.keys())
    return replace(
        curve, error=error_of([curve.time_us(size) for size in checks], [time for time, _ in checks.values()])
    )


def _refine(points: dict[int, Point], simulate: Simulate) -> None:
    """Add the middle of two points where the straight line between them is wrong, and look again at both halves."""
    open_intervals = _intervals(points)
    for _ in range(ROUNDS):
        middles = {_between(a, b, 1 / 2): (a, b) for a, b in open_intervals}
        found = simulate(middles.keys() - points.keys())
        wrong = {size for size in found if _off(points, size, found[size][0]) > WITHIN}
        points.update({size: found[size] for size in wrong})
        open_intervals = [pair for pair in _intervals(points) if wrong.intersection(pair)]


def _off(points: dict[int, Point], size: int, time_us: float) -> float:
    low = max(point for point in points if point <= size) if size >= min(points) else min(points)
    high = min((point for point in points if point >= size), default=low)
    line = points[low][0]
    if high > low:
        line += (points[high][0] - line) * (size - low) / (high - low)
    return abs(line - time_us) / time_us if time_us else float(line > 0)


def _intervals(points: dict[int, Point]) -> list[tuple[int, int]]:
    ordered = sorted(points)
    return list(itertools.pairwise(ordered))


def _between(low: int, high: int, share: float) -> int:
    """A size between two, by factor, a whole number of the largest element."""
    step = max(DTYPES.values())
    size = low * (high / low) ** share if low else high * share
    return max(step, round(size / step) * step)
