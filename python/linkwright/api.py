"""linkwright from Python: machines, schedules, verification, simulation and runs in a few names.

    import linkwright as lw

    schedule = lw.schedule("allreduce", "ring", ranks=64, size="128K")
    print(lw.simulate(schedule, "wormhole-n150").time_us)

A name of a machine may stand for the machine, a text such as `128K` for a size. A schedule may come from
a registered algorithm, from `Builder`, or from a transform; whatever runs it verifies it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from linkwright import _native, executors, machines, schedules
from linkwright.errors import LinkwrightError, ShapeError, UsageError, unknown
from linkwright.executors.measured import Measured
from linkwright.executors.protocol import Launch, Options
from linkwright.experiment import DTYPES, MAX_RANKS, Experiment
from linkwright.store.record import Ended, Outcome
from linkwright.suite import rows
from linkwright.suite.expand import collective_experiment
from linkwright.units import parse_size
from linkwright.verification import describe

if TYPE_CHECKING:
    import pandas as pd

# Launches of `run`: enough for an interval, with some to spare.
LAUNCHES = 8


def machine(name: str | Path, *, ranks: int | None = None, grid: tuple[int, int] | None = None) -> _native.Machine:
    """The machine called `name`, or described by the file at that path; sized where its file leaves that open."""
    if ranks is not None and not 1 <= ranks <= MAX_RANKS:
        raise ShapeError(f"machine {name}: {ranks} ranks; 1 to {MAX_RANKS} are possible")
    found = machines.load(name)
    if grid is not None:
        return found.with_grid(*grid)
    return found.with_endpoints(ranks) if ranks is not None else found


def schedule(
    collective: str,
    algorithm: str,
    *,
    ranks: int,
    size: int | str,
    dtype: str = "f32",
    root: int = 0,
    grid: tuple[int, int] | None = None,
    rings: Sequence[Sequence[int]] | None = None,
) -> _native.Schedule:
    """The schedule of a registered algorithm for messages of `size` bytes; ring algorithms go round `rings`."""
    if not 1 <= ranks <= MAX_RANKS:
        raise ShapeError(f"schedule: {ranks} ranks; 1 to {MAX_RANKS} are possible")
    made = collective_experiment(
        "", collective, algorithm, ranks, _bytes(size, dtype), dtype, "sum", root=root, grid=grid
    )
    return schedules.of(made, rings)


def Builder(  # noqa: N802 (makes a Builder)
    collective: str,
    ranks: int,
    size: int | str,
    *,
    dtype: str = "f32",
    root: int = 0,
    grid: tuple[int, int] | None = None,
) -> _native.Builder:
    """Writes a schedule of one's own: at this step, who sends which chunks to whom."""
    elements = _bytes(size, dtype) // DTYPES[dtype]
    return _native.Builder(collective, ranks, elements, element_bytes=DTYPES[dtype], root=root, grid=grid)


@dataclass(frozen=True)
class Proof:
    """What verification proved, in numbers; prints as one line."""

    operations: int
    messages: int
    notices: int
    edges: int
    chunk_moves: int
    hazards: int
    long_searches: int
    exact: bool

    def __str__(self) -> str:
        return describe(vars(self))


def verify(schedule: _native.Schedule) -> Proof:
    """Prove that `schedule` is right in every execution; raises a `VerifyError` if it is not."""
    return Proof(**schedule.verify())


@dataclass(frozen=True)
class Result:
    """The result of one experiment: the time of the slowest rank, and everything else as tidy rows."""

    rows: list[rows.Row]

    def row(self, metric: str) -> rows.Row:
        """The row of one metric."""
        for row in self.rows:
            if row["metric"] == metric:
                return row
        raise unknown("metric", metric, [str(row["metric"]) for row in self.rows])

    @property
    def time_us(self) -> float:
        """Time of the slowest rank in microseconds; of a measurement, the median over launches."""
        return self.row("time")["value"] / 1e3

    @property
    def limit_us(self) -> float | None:
        """The largest physical lower bound on the time, where one is known."""
        limit = self.row("time")["limit"]
        return None if limit is None else limit / 1e3

    @property
    def limit_name(self) -> str | None:
        """Which bound it is."""
        return self.row("time")["limit_name"]

    def frame(self) -> pd.DataFrame:
        """The tidy rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.rows)


def simulate(
    schedule: _native.Schedule,
    on: _native.Machine | str | Path,
    *,
    path: str | None = None,
    issue: str | None = None,
    skew: str | None = None,
    placement: Sequence[int] | None = None,
    arithmetic: bool = True,
    seed: int = 0,
) -> Result:
    """The modelled times of `schedule` on a described machine.

    A machine of open size gets as many ranks as the schedule has. Where the path or the fabric needs
    it, combinations follow copies and barriers become notices, as `linkwright simulate` does.
    """
    described = on if isinstance(on, _native.Machine) else machines.load(on)
    if described.open_size:
        described = described.with_endpoints(schedule.ranks)
    experiment = _experiment(
        schedule, path=path, issue=issue, skew=skew, arithmetic=arithmetic,
        placement=tuple(placement) if placement else None,
    )  # fmt: skip
    # Only a placement names endpoints, and a large machine has many.
    names = tuple(endpoint["name"] for endpoint in described.endpoints()) if placement else ()
    found = schedules.simulate(schedules.lowered(schedule, described, path), described, experiment, seed=seed)
    context = rows.Context("", "", described.name, "sim", names)
    return Result(rows.of_simulation(context, experiment, _METRICS, found))


def run(
    schedule: _native.Schedule,
    on: str = "threads",
    *,
    dtype: str | None = None,
    op: str = "sum",
    launches: int = LAUNCHES,
    samples: int = 50,
    budget_s: float = 0.25,
    skew: str | None = None,
    seed: int = 0,
) -> Result:
    """The measured times of `schedule` on an executor, checked against the exact answer.

    `on` is a key of `linkwright list executors`; a described machine is simulated, as by `simulate`. On `mpi` every
    rank of the job calls this with the same schedule, and each gets the result; `reference` only checks the data and
    takes no time. Each launch has fresh memory, in this process, and at most `budget_s` seconds. For launches as
    processes of their own, and a stopping rule, use `linkwright run`.
    """
    schedule.verify()
    dtype = dtype or _dtype_of(schedule)
    target = executors.EXECUTORS["reference"].of(schedule.ranks) if on == "reference" else None
    target = target or executors.resolve_one(on, schedule.ranks)
    if target.modelled:
        return simulate(schedule, target.machine, skew=skew, seed=seed)
    experiment = _experiment(schedule, dtype=dtype, op=op, skew=skew, text=schedule.text())
    options = Options(samples=samples, seed=seed)
    executor = target.executor

    def measure() -> list[Outcome]:
        asked = (Launch(number, [experiment], budget_s, options) for number in range(launches))
        return [outcome for launch in asked for outcome in executor.launch(target, launch, isolated=False)]

    outcomes = executor.share(target, measure)
    context = rows.Context.of(target, "", "")
    ended = next((outcome for outcome in outcomes if isinstance(outcome, Ended)), None)
    if ended:
        if ended.status == "failed":
            raise LinkwrightError(ended.reason)
        return Result(rows.without_value(context, experiment, ended.status, ended.reason, ended.code))
    measured = Measured.of(outcomes)
    if measured is None:
        raise UsageError(
            "run: every sample was disturbed by something else; stop what runs on this machine, or give more `budget_s`"
        )
    return Result(rows.of_samples(context, experiment, _METRICS, measured))


def results(run: str = "latest", folder: str | Path = "runs") -> pd.DataFrame:
    """The tidy rows of a stored run as a pandas frame."""
    from linkwright.store import run as runs

    return runs.find(Path(folder), run).results().to_pandas()


_METRICS = ("time", "alg_bw", "bus_bw")
_DTYPE_OF_BYTES = {1: "u8", 2: "bf16", 4: "f32", 8: "f64"}


def _bytes(size: int | str, dtype: str) -> int:
    if dtype not in DTYPES:
        raise unknown("data type", dtype, DTYPES)
    size_bytes = size if isinstance(size, int) else parse_size(size)
    if size_bytes < 0 or size_bytes % DTYPES[dtype]:
        raise UsageError(f"size {size}: no whole number of {dtype} elements of {DTYPES[dtype]} bytes")
    return size_bytes


def _dtype_of(schedule: _native.Schedule) -> str:
    return _DTYPE_OF_BYTES[schedule.element_bytes]


def _experiment(schedule: _native.Schedule, **how: object) -> Experiment:
    """What is known of a schedule that may be of one's own."""
    traffic = schedule.collective == "pattern"
    how.setdefault("dtype", _dtype_of(schedule))
    return Experiment(
        "api", None if traffic else schedule.collective, "schedule", schedule.ranks, schedule.size_bytes, **how
    )
