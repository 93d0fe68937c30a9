"""linkwright from Python: machines, schedules, verification, simulation and runs in a few names.

    >>> import linkwright as lw
    >>> schedule = lw.schedule("allreduce", "ring", ranks=64, size="128K")
    >>> lw.simulate(schedule, "wormhole-n150").time_us > 0
    True

A machine may be given by name, a size as text such as `128K`. A schedule comes from a registered algorithm, from
`Builder` or from a transform; it is verified before anything runs it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwright import _native, executors, machines
from linkwright.ask import schedules
from linkwright.ask.answer import How, Limit, ask
from linkwright.ask.answer import limits as problem_limits
from linkwright.ask.question import MAX_RANKS, Collective, Own, Program, dtype_of
from linkwright.ask.writing import size_in_bytes
from linkwright.base import extras
from linkwright.base.errors import ShapeError, UsageError, reported
from linkwright.base.units import parse_size
from linkwright.executors.measured import Measured
from linkwright.executors.protocol import Launch, Options
from linkwright.executors.reference import Reference
from linkwright.executors.sim import ModelledTarget
from linkwright.libraries.questions import collective_question, own_question
from linkwright.result import Result
from linkwright.session.insight import Insight
from linkwright.session.suite import rows
from linkwright.session.suite.context import Context
from linkwright.session.verification import describe
from linkwright.show import shown
from linkwright.store.record import Ended, Outcome, Record, remarks

if TYPE_CHECKING:
    import pandas as pd

# Launches of `run`: somewhat more than an interval needs.
LAUNCHES = 8


def machine(
    name: str | Path,
    *,
    ranks: int | None = None,
    grid: tuple[int, ...] | None = None,
    nodes: int | None = None,
    fabric: str | None = None,
    without: Sequence[str] = (),
    degrade: Mapping[str, float] | None = None,
) -> _native.Machine:
    """Load a described machine.

    Args:
        name: the name of a shipped machine (`linkwright list machines`), or the path of a machine file.
        ranks: the number of endpoints that run ranks, for a machine that leaves it open.
        grid: sides, (columns, rows, ...), for a machine that leaves its grid open.
        nodes: so many of the node that the file describes, as one machine.
        fabric: the network between them, a name (`linkwright list networks`) or a path, with parameters:
            `ndr-fat-tree,taper=2`; by default that of the machine.
        without: links (`NIC 3 - leaf 3`), nodes (`NIC 3`), classes of links (`nvlink`) and transports to take away.
        degrade: the factor of the rates of such things.
    Returns:
        The machine.
    Raises:
        UnknownNameError: no machine has this name, or nothing in it that of a change.
        FileError: the machine file is wrong, or the machine cannot have this size.
        ShapeError: `ranks` is out of range.
    Example:
        >>> import linkwright as lw
        >>> lw.machine("loggp", ranks=8).ranks
        8
        >>> lw.machine("hgx-h100", nodes=4, fabric="ndr-fat-tree,taper=2", degrade={"NIC 3": 0.5}).ranks
        32
        >>> lw.machine("gb200-nvl72", nodes=2).hosts
        36
    """
    if ranks is not None and not 1 <= ranks <= MAX_RANKS:
        raise ShapeError(f"machine {name}: {ranks} ranks; 1 to {MAX_RANKS} are possible")
    found = machines.load(name, machines.Variant.of(nodes, fabric, without, degrade or {}))
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
    grid: tuple[int, ...] | None = None,
    rings: Sequence[Sequence[int]] | None = None,
) -> _native.Schedule:
    """Build the schedule of a registered algorithm.

    Args:
        collective: the name of a collective, such as `allreduce`; an uneven one has as much for every pair of ranks.
        algorithm: the name of one of its algorithms, such as `ring` (`linkwright list algorithms`), or a source such
            as `own.py:bucket` (see `load`).
        ranks: the number of ranks, 1 to 4,194,304.
        size: the message size S, as bytes or as text such as `64K` (see `parse_size`); a whole number of elements.
        dtype: the data type, `f32`, `f64`, `i32`, `i64`, `u8` or `bf16`.
        root: the rank that a rooted collective starts or ends at.
        grid: sides, (columns, rows, ...), for algorithms that need a grid.
        rings: orders of the ranks, for ring algorithms; by default one ring in rank order.
    Returns:
        The schedule.
    Raises:
        WaivedError: the algorithm cannot serve this shape.
        UnknownNameError: there is no such algorithm or data type.
        ShapeError: the shape makes no sense.
        UsageError: `size` is not a size, or not a whole number of elements.
    Example:
        >>> import linkwright as lw
        >>> lw.schedule("allreduce", "ring", ranks=4, size="4K")
        <Schedule allreduce over 4 ranks: 24 operations, 24 messages>
        >>> lw.schedule("broadcast", "multicast", ranks=3, size="4K").sets
        [[1, 2]]
    """
    if not 1 <= ranks <= MAX_RANKS:
        raise ShapeError(f"schedule: {ranks} ranks; 1 to {MAX_RANKS} are possible")
    made = collective_question(
        "", collective, algorithm, ranks, size_in_bytes(size, dtype), dtype, "sum", root=root, grid=grid
    )
    return schedules.of(made, rings)


def load(
    source: str | Path,
    *,
    ranks: int | None = None,
    size: int | str | None = None,
    dtype: str = "f32",
    root: int = 0,
    grid: tuple[int, ...] | None = None,
) -> _native.Schedule:
    """Make the schedule of a source: a file, or a Python function that is named by text.

    Args:
        source: a file (`own.lw`, a plan of another tool), or a function as `own.py:bucket` or `package:bucket`.
        ranks: the number of ranks; by default those of a file.
        size: the message size S, as bytes or as text such as `64K`; by default that of a file.
        dtype: the data type, `f32`, `f64`, `i32`, `i64`, `u8` or `bf16`.
        root: the rank that a rooted collective starts or ends at.
        grid: sides, (columns, rows, ...), for a function that takes it.
    Returns:
        The schedule; a plan of another tool is verified already.
    Raises:
        FileError: the file is not a schedule, or the Python file cannot be loaded; the message names the line.
        WaivedError: the file is for another number of ranks, or the function serves no such shape.
        ScheduleError: the function failed, or returned something else; the message names its line.
    Example:
        >>> import linkwright as lw
        >>> from pathlib import Path
        >>> _ = Path("own.lw").write_text(lw.schedule("allreduce", "ring", ranks=4, size="4K").text())
        >>> lw.load("own.lw", size="1M").size_bytes
        1048576
    """
    size_bytes = None if size is None else size_in_bytes(size, dtype)
    return schedules.of(own_question("", str(source), ranks, size_bytes, dtype, "sum", root=root, grid=grid))


@dataclass(frozen=True)
class Proof:
    """What verification proved, in numbers; prints as one line.

    Attributes:
        operations: operations of the schedule.
        messages: messages, notices included.
        notices: messages without data, which tell a rank what it cannot see.
        edges: waits of one operation for another.
        chunk_moves: chunks moved or combined, one by one.
        hazards: pairs of accesses to one chunk that had to be ordered.
        long_searches: hazards whose order took a search to prove.
        exact: whether contributions were counted exactly; otherwise fingerprints stood for them.
    Example:
        >>> import linkwright as lw
        >>> proof = lw.verify(lw.schedule("allreduce", "ring", ranks=4, size="4K"))
        >>> proof.operations, proof.messages, proof.notices, proof.edges
        (24, 24, 0, 20)
        >>> proof.chunk_moves, proof.hazards, proof.long_searches, proof.exact
        (24, 40, 0, True)
        >>> print(proof)
        24 operations, 24 messages, 0 notices; 40 hazards ordered; exact contributions
    """

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
    """Prove that a schedule is right in every execution: in bounds, ordered, exact and free of races.

    Whatever runs a schedule verifies it first; call this to see the proof.

    Args:
        schedule: the schedule to verify.
    Returns:
        What was proved, in numbers.
    Raises:
        VerifyError: the schedule is wrong; `code` says which property it lacks, the message where.
    Example:
        >>> import linkwright as lw
        >>> lw.verify(lw.schedule("allreduce", "ring", ranks=4, size="4K")).exact
        True
    """
    return Proof(**_is_schedule(schedule).verify())


@contextlib.contextmanager
def _checked() -> Iterator[None]:
    """A value that a field of `How` cannot have is a mistake of the caller."""
    try:
        yield
    except (TypeError, OverflowError) as error:
        raise UsageError(f"{error}, {', '.join(error.__notes__)}") from error


def limits(
    collective: str,
    on: _native.Machine | str | Path,
    *,
    ranks: int,
    size: int | str,
    dtype: str = "f32",
    root: int = 0,
    path: str | None = None,
    placement: Sequence[int] | None = None,
) -> list[Limit]:
    """What no schedule of a collective beats on a described machine.

    Args:
        collective: `allreduce`, `broadcast`, ...
        on: a machine, the name of one, or the path of a machine file.
        ranks: the number of ranks.
        size: the message size, in bytes or as text, such as `64K`.
        dtype: the data type, `f32`, `f64`, `i32`, `i64`, `u8` or `bf16`.
        root: the root of rooted collectives.
        path: the name of a path of the machine; by default its first.
        placement: the endpoint of each rank; by default in the order of endpoints.
    Returns:
        Every lower bound with its arithmetic, the largest first.
    Raises:
        UnknownNameError: there is no such collective, machine or path.
        UnsuitedError: the machine has too few endpoints.
        ShapeError: the root is not one of the ranks.
    Example:
        >>> import linkwright as lw
        >>> port, *_, latency = lw.limits("allreduce", "loggp", ranks=4, size="1M")
        >>> port.name, port.time_us, port.derivation
        ('port', 125.82912, '6291456 B out of all ranks and memories together / 50 GB/s')
        >>> latency.derivation
        'to one rank from 3 others, one message at a time, without data'
    """
    described = on if isinstance(on, _native.Machine) else machines.load(on)
    size_bytes = parse_size(size) if isinstance(size, str) else size
    with _checked():
        how = How(path=path, placement=list(placement) if placement else None)
    return problem_limits(described, collective, ranks, size_bytes, dtype=dtype, root=root, how=how)


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
    links: bool = False,
    trace: bool = False,
    bins: int = 0,
    serial_starts: bool = False,
) -> Result:
    """Simulate a schedule on a described machine.

    A machine of open size gets the ranks of the schedule. If the path or fabric cannot combine while it writes,
    combinations follow copies; if the fabric has no barrier, notices replace it. If the path has a protocol, an
    allreduce runs in its windows and repeats, and the time is that of the evaluated repeat, of each rank from its own
    start; `reason` says where a reduction gets less than that.

    Args:
        schedule: the schedule to simulate; it is verified first.
        on: a machine, the name of one, or the path of a machine file.
        path: the name of a path of the machine (`Machine.paths`); by default its first.
        issue: how many transfers a lane keeps under way: `blocking` (one, the default unless the machine states
            another), `window(k)` (up to k, each completion frees one place), `batch(k)` (k at a time, then wait for
            all) or `unlimited`.
        skew: when ranks start: `none` (together, the default), `uniform:2us` (each at a random time within 2 us),
            `late:RANK:2us` (one rank 2 us after the others) or `list:0us,1us` (the delay of each rank). Times have a
            unit, `ns`, `us`, `ms` or `s`.
        placement: the endpoint of each rank; by default the schedule and the machine decide.
        arithmetic: whether combining takes time.
        seed: the seed of random arrival times and of a fabric's random choices.
        links: whether to keep the load of every link, for `Result.links`.
        trace: whether to keep the times of every operation, for `Result.trace`, `critical_path` and `slack`.
        bins: into how many bins of time at most to cut the busy time of each link, for `Result.timeline`; 0 keeps no
            timeline. Links, operations and timeline are then all kept.
        serial_starts: whether transfers of a rank start one after another, whatever their lanes.
    Returns:
        Times, bandwidths, limits and counts.
    Raises:
        VerifyError: the schedule is wrong.
        UnknownNameError: there is no such machine or path.
        UnsuitedError: the machine has too few endpoints, or too little memory for a message.
        UsageError: an option makes no sense.
        SimError: the simulation cannot go on, for example because two endpoints are not connected.
    Example:
        >>> import linkwright as lw
        >>> schedule = lw.schedule("allreduce", "ring", ranks=4, size="4K")
        >>> lw.simulate(schedule, "loggp").time_us
        9.19824
        >>> lw.simulate(schedule, "loggp", issue="window(2)", skew="late:0:2us", arithmetic=False).time_us > 9
        True
    """
    _is_schedule(schedule)
    described = on if isinstance(on, _native.Machine) else machines.load(on)
    if described.open_size and not described.ranks:
        described = described.with_endpoints(schedule.ranks)
    question = _question(
        schedule, path=path, issue=issue, skew=skew, arithmetic=arithmetic,
        placement=tuple(placement) if placement else None,
    )  # fmt: skip
    # Only a placement names endpoints, and a large machine has many.
    names = tuple(endpoint["name"] for endpoint in described.endpoints()) if placement else ()
    if bins < 0:
        raise UsageError(f"bins: {bins}; at least 1 is needed, or 0 for no timeline")
    with _checked():
        how = schedules.how(
            question, links=links or bins > 0, operations=trace or bins > 0, bins=bins, seed=seed,
            serial_starts=serial_starts, messages=isinstance(question, Program),
        )  # fmt: skip
    answer = ask(described, schedule, how)
    context = Context("", "", described.name, "sim", names)
    found = rows.of_simulation(context, question, _METRICS, answer, remarks(answer.remark))
    return Result(found, Insight(answer))


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
    """Run a schedule and check every element of the result.

    Each launch has fresh memory in this process. `linkwright run` has separate processes and a stopping rule.

    Args:
        schedule: the schedule to run; it is verified first.
        on: a key of `linkwright list executors`, or a described machine, which is simulated once, without data: only
            `skew` and `seed` apply. On `mpi` every rank of a job calls this with the same schedule and gets the
            result; outside a job, as many ranks as the schedule has are started on this host. `reference` only checks
            the data.
        dtype: the data type, `f32`, `f64`, `i32`, `i64`, `u8` or `bf16`; it must have the element size of the
            schedule, and by default follows from it.
        op: the reduction, `sum`, `max`, `min` or `prod`.
        launches: the number of launches; the interval of a metric is over launches.
        samples: the most samples per launch.
        budget_s: the most seconds per launch.
        skew: when ranks start, as for `simulate`.
        seed: the seed of the data and of random arrival times.
    Returns:
        Times, bandwidths and limits, each with its interval; one row without a value if the executor cannot run
        this schedule.
    Raises:
        VerifyError: the schedule is wrong.
        UsageError: an option makes no sense, or every sample was disturbed.
        WrongResultError: the result is not what the collective demands.
        LinkwrightError: the run failed in another way; `code` says how.
    Example:
        >>> import linkwright as lw
        >>> schedule = lw.schedule("allreduce", "ring", ranks=2, size="4K")
        >>> lw.run(schedule, on="threads", launches=2, samples=10).time_us > 0
        True
    """
    _is_schedule(schedule).verify()
    if on in executors.EXECUTORS:
        how = {"dtype": dtype, "op": op, "launches": launches, "samples": samples, "budget_s": budget_s}
        found = executors.EXECUTORS[on].elsewhere(schedule, {**how, "skew": skew, "seed": seed})
        if found is not None:
            return Result(found)
    dtype = dtype or dtype_of(schedule.element_bytes)
    target = Reference().of(schedule.ranks) if on == Reference.key else executors.resolve_one(on, schedule.ranks)
    if isinstance(target, ModelledTarget):
        return simulate(schedule, target.machine, skew=skew, seed=seed)
    question = _question(schedule, op, dtype=dtype, skew=skew)
    options = Options(samples=samples, seed=seed)
    executor = target.executor
    executors.check_obeyed(executor, question)

    def measure() -> list[Outcome]:
        asked = (Launch(number, [question], budget_s, options) for number in range(launches))
        return [outcome for launch in asked for outcome in executor.launch(target, launch, isolated=False)]

    outcomes = executor.share(target, measure)
    context = Context.of(target, "", "")
    ended = next((outcome for outcome in outcomes if isinstance(outcome, Ended)), None)
    if ended:
        if ended.status == "failed":
            raise reported(ended.reason, ended.code)
        return Result(rows.without_value(context, question, ended.status, ended.reason, ended.code))
    measured = Measured.of([outcome for outcome in outcomes if isinstance(outcome, Record)])
    if measured is None:
        raise UsageError(
            "run: every sample was disturbed; stop other programs on this machine, or give more `budget_s`"
        )
    return Result(rows.of_samples(context, question, _METRICS, measured))


def results(run: str = "latest", folder: str | Path = "runs") -> pd.DataFrame:
    """Read the tidy rows of a stored run.

    Args:
        run: the id of a run, or `latest`, or `latest~1` for the one before.
        folder: the folder that holds the runs.
    Returns:
        A frame with one row per metric and experiment, and the columns that docs/formats.md lists, the metric and its
        value first.
    Raises:
        UsageError: there is no such run.
        StoreError: the run cannot be read.
    Example:
        >>> import linkwright as lw
        >>> frame = lw.results("latest")
        >>> frame[frame.metric == "time"].ranks.tolist()
        [2]
    """
    from linkwright.store import run as runs

    pd = extras.load("pandas", "analysis", "a data frame")
    rows = runs.find(Path(folder), run).results()
    frame = pd.DataFrame({name: rows[name] for name in rows.names})
    return frame[shown.columns(list(frame.columns))]


_METRICS = ("time", "alg_bw", "bus_bw")


def _is_schedule(value: object) -> _native.Schedule:
    """The value, if it is a schedule."""
    if not isinstance(value, _native.Schedule):
        raise UsageError(
            f"{value!r:.60} is not a schedule; create one with lw.schedule(...) or lw.Builder(...), for example "
            'lw.schedule("allreduce", "ring", ranks=4, size="4K")'
        )
    return value


def _question(schedule: _native.Schedule, op: str | None = None, **how: Any) -> Collective | Program:
    """The question that a schedule answers, which need not come from the registry."""
    how.setdefault("dtype", dtype_of(schedule.element_bytes))
    about = ("api", "schedule", schedule.ranks, schedule.size_bytes)
    own = Own(schedule)
    if schedule.collective == "pattern":
        return Program(*about, own=own, op=op, **how)
    return Collective(*about, collective=schedule.collective, own=own, op=op, **how)
