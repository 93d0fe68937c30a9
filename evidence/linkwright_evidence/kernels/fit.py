"""Recovers the fitted numbers of `numbers.toml` from a sample of the published rows.

    python -m linkwright_evidence.kernels.fit

All fitted numbers move together, each by its logarithm, until the mean over groups of rows of log(predicted /
published)^2, softened so that wild rows count less, is least. A group is a kind, operation, system, scale and band of
sizes; so many rows of each are drawn with `SEED`, and these alone are marked as fitted to. NCCL's own times are those
of study `modern` and do not move. Deterministic, about two minutes.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterable, Sequence

from linkwright.base import extras
from linkwright.libraries.times import Model

from .condition import Condition, Measured, published
from .numbers import Numbers, rows, shipped
from .predict import Kernels

SEED = 1
ROWS = 8  # of each group
SOFT = 0.1  # |log| from which a row counts less than its square
DIGITS = 4
MIB = 1 << 20
# Rows of machines that were not healthy, by what the publisher or the tables themselves say: never fitted to or scored.
CASES = (
    ("l40s", (4, 8), ("sglang/0.5.10", "sglang/0.5.14", "trtllm/1.0.0", "vllm/0.14.0", "nccl/2.27.3")),
    ("gb200", (2, 4), ("sglang/0.5.9", "vllm/0.19.0", "vllm/0.24.0")),
)


def case(one: Condition) -> bool:
    """Return whether the host of a row was not healthy: a broken path between peers, or NCCL at a third of its rate."""
    return one.kind in ("collective", "framework_allreduce") and any(
        one.system == system and one.gpus in gpus and one.table in tables for system, gpus, tables in CASES
    )


def band(one: Condition) -> str:
    """The band of sizes or tokens of a condition."""
    if one.size_bytes:
        return "< 1 MiB" if one.size_bytes < MIB else "1 to 32 MiB" if one.size_bytes < 32 * MIB else ">= 32 MiB"
    return "< 128 tokens" if one.tokens < 128 else "128 to 1,023 tokens" if one.tokens < 1024 else ">= 1,024 tokens"


def group(one: Condition) -> tuple[object, ...]:
    """What rows are drawn from together."""
    library = one.backend if one.kind in ("framework_allreduce", "moe_alltoall") else ""
    return one.kind, library, one.op, one.mode, one.system, one.gpus, band(one)


def usable(one: Measured) -> bool:
    """Return whether a row may be fitted to: it is healthy, and of a kernel with numbers of its own."""
    condition = one.condition
    return not (one.suspect or case(condition) or condition.kind == "collective" or condition.mode == "eager")


@functools.cache
def sample() -> frozenset[Condition]:
    """The rows that the numbers were fitted to."""
    return frozenset(one.condition for its in _drawn(published()) for one in its)


def _drawn(measured: Iterable[Measured]) -> list[list[Measured]]:
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for one in filter(usable, measured):
        groups.setdefault(group(one.condition), []).append(one)
    chance = random.Random(SEED)
    return [chance.sample(its, min(ROWS, len(its))) for its in groups.values()]


def refit(measured: Sequence[Measured], start: Numbers | None = None) -> dict[str, float]:
    """Key -> value of the fitted numbers, found from a sample of the rows."""
    optimize = extras.load("scipy.optimize", "fit", "this fit")
    start = dict(shipped() if start is None else start)
    keys = [row["key"] for row in rows() if row["status"] == "fitted"]
    drawn = [(one, 1 / math.sqrt(len(its))) for its in _drawn(measured) for one in its]
    model = Model()

    def residuals(logs: Sequence[float]) -> list[float]:
        kernels = Kernels(start | {key: math.exp(log) for key, log in zip(keys, logs, strict=True)}, model)
        return [weight * _soft(math.log(kernels.time_us(one.condition) / one.time_us)) for one, weight in drawn]

    found = optimize.least_squares(residuals, [math.log(start[key]) for key in keys], max_nfev=25, diff_step=1e-3)
    return {key: float(f"{math.exp(log):.{DIGITS}g}") for key, log in zip(keys, found.x, strict=True)}


def _soft(error: float) -> float:
    """The root of SciPy's `soft_l1` loss, with the sign of the error: squares when summed as the loss itself does."""
    return math.copysign(SOFT * math.sqrt(2 * (math.sqrt(1 + (error / SOFT) ** 2) - 1)), error)


def main() -> None:
    """Print the value of each number in the file and in the fit."""
    found, before = refit(published()), shipped()
    for key, value in found.items():
        print(f"{key:36} {before[key]:>10g} fitted {value:g}", flush=True)


if __name__ == "__main__":
    main()
