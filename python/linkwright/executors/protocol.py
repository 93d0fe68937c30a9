"""The interface of all executors: `sim`, `threads`, `mpi`, `cuda`, `gpus` and `reference`.

    resolve          what --on names -> a Target: its endpoints, their extent, its name in rows
    launch           one launch of a list of experiments -> a Record (samples) or an Ended (why not) for each
    best_seen        the time of an experiment, from the best that the host gave in any run
    merge, discard   samples that ranks keep in their own files

Everything else that differs between executors is a field with one meaning, so no other code compares names. Subclass
`Executor`, override what differs, and add the object to `EXECUTORS` in `executors/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeVar

from linkwright._native import Schedule
from linkwright.ask.question import Question
from linkwright.base.errors import UsageError
from linkwright.store.record import Outcome, Record

from .measured import Measured

# Assumed for a machine that does not describe its caches, so that sweeps end early rather than late.
LAST_CACHE = 1 << 20
# Most ranks by default, because every pair of them is an experiment.
MOST_RANKS = 64
ANY = "any collective"
# Conditions that no schedule holds, so that an executor must see to them: field of a question -> usual value.
CONDITIONS: Mapping[str, object] = {
    "issue": None, "path": None, "skew": None, "arithmetic": True, "placement": None,
}  # fmt: skip

Shared = TypeVar("Shared")
# The time of an experiment in ns that follows from the best seen, and the name of what was seen.
BestOf = Callable[[Question, Measured], tuple[float, str] | None]


@dataclass(frozen=True)
class Extent:
    """What the expansion of a suite needs to know about a machine.

    Attributes:
        kind: `measured`; described machines are `modelled`.
        ranks: how many ranks there are.
        grid: sides, (columns, rows, ...) of the ranks, if they are arranged so.
        own_algorithms: the algorithms of its library or device, by collective.
        last_cache: bytes of the last cache; sizes of probes may be multiples of it.
        default: the own algorithm that a collective takes where none is named; None means all algorithms.
        alternatives: an own algorithm and what its library could have chosen instead, by collective and algorithm.
        planned: a collective by a described machine's library with its schedule; any other question as it is.
        traffic: path and issue policy of patterns that name neither; None: those of the machine.
    """

    kind: Literal["modelled", "measured"]
    ranks: int
    grid: tuple[int, ...] | None = None
    own_algorithms: Callable[[str], list[str]] = lambda collective: []
    last_cache: int = LAST_CACHE
    default: Callable[[str], str | None] = lambda collective: None
    alternatives: Callable[[str, str], list[str]] = lambda collective, algorithm: [algorithm]
    planned: Callable[[Question], Question] = lambda question: question
    traffic: tuple[str, str] | None = None


@dataclass(frozen=True)
class Target:
    """An executor with the machine that it found.

    Attributes:
        name: as typed after `--on`.
        executor: the executor.
        machine_name: the machine in rows and reports.
        extent: what suites need to know about it.
        endpoint_names: the name of each endpoint; rank r runs on endpoint r, or where a placement says.
        about: plain values about the machine, for `environment.json`.
        handle: private to the executor.
        partial: if the machine has more endpoints than take part: how many, and how to take all.
        simulator: what stands for the hardware, where the executor runs on a simulator of it.
    """

    name: str
    executor: Executor
    machine_name: str
    extent: Extent
    endpoint_names: tuple[str, ...]
    about: Mapping[str, object] | None = None
    handle: object = None
    partial: str | None = None
    simulator: str | None = None

    @property
    def modelled(self) -> bool:
        """Whether its times come from a model, which makes them exact."""
        return self.executor.modelled


@dataclass(frozen=True)
class Options:
    """How a run measures.

    Attributes:
        samples: samples of a launch; None: until they agree.
        warmup: the most rounds of a warm-up; None: until they agree.
        check: whether data are compared with the exact answer.
        seed: the seed of the data.
    """

    samples: int | None = None
    warmup: int | None = None
    check: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Launch:
    """One launch: a list of experiments, in this order, within a time.

    Attributes:
        number: of the launch, from 0.
        work: the experiments.
        deadline_s: seconds for all of them; what there is no time for has no outcome.
        options: how to measure.
        folder: the folder of the run, for files of ranks.
        shares: seconds that an experiment samples, by its key; an equal part of the time where it is not named.
        stop_s: seconds after which a process of its own is stopped, whatever it does; None: never.
    """

    number: int
    work: Sequence[Question]
    deadline_s: float
    options: Options = field(default_factory=Options)
    folder: Path | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    stop_s: float | None = None

    def share_s(self, left_s: float, rest: Sequence[Question]) -> float:
        """Seconds for the first of the experiments that are left; time that it saves goes to the others."""
        return min(left_s, self.shares.get(rest[0].key, left_s / len(rest)))


@dataclass(frozen=True)
class OwnAlgorithm:
    """A collective of an executor's library or device, for comparison with our schedules (`-a own`)."""

    key: str
    summary: str
    collectives: tuple[str, ...]
    needs: str | None = None


class Executor(Protocol):
    """Something that runs schedules.

    A subclass has a `key`, a `summary` and a `description`, and defines `resolve` and `launch`. The defaults of
    everything else suit an executor that measures on processors of one host, in one process that leads.
    """

    key: ClassVar[str]
    summary: ClassVar[str]
    description: ClassVar[str]
    modelled: ClassVar[bool] = False
    # Whether its ranks are processors of this host (or of the job's hosts), which `environment.json` describes.
    is_host: ClassVar[bool] = False
    # Whether ranks share one memory, so that bounds by cache lines and copies hold.
    shares_memory: ClassVar[bool] = False
    # Whether all ranks start at one agreed time, not after a barrier that they leave one by one.
    starts_together: ClassVar[bool] = True
    # What to use instead, if it takes no times by itself.
    untimed: ClassVar[str | None] = None
    fit_model: ClassVar[str] = "messages"  # a key of `models.fitting.MODELS`
    # What a vendor's library works on, if it cannot be confined to some endpoints.
    library_takes: ClassVar[str | None] = None
    own: ClassVar[tuple[OwnAlgorithm, ...]] = ()
    # Which of `CONDITIONS` it obeys; everything else of an experiment is in the schedule or the data.
    obeys: ClassVar[frozenset[str]] = frozenset()

    def resolve(self, ranks: int | None, grid: tuple[int, ...] | None) -> Target:
        """The target that `--on KEY` means.

        Args:
            ranks: how many ranks are asked for; None: as many as there are.
            grid: sides, (columns, rows, ...) in which they are to be arranged; None: no grid.
        Raises:
            ShapeError: the machine has fewer than `ranks` ranks.
        """
        raise UsageError(f"--on {self.key}: this executor does not measure times; {self.untimed}")

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """Measure the experiments of a launch.

        Args:
            target: what `resolve` returned.
            launch: the experiments, in order, and how long they may take.
            isolated: whether to measure in a fresh process, if possible.
        Returns:
            An outcome for each experiment as it ends, with its key and the number of the launch: a `Record` of samples,
            or an `Ended` that says why there are none. `fresh` and `here` make both from what a `Measurer` does.
        """
        ...

    def elsewhere(self, schedule: Schedule, how: Mapping[str, object]) -> list[dict[str, object]] | None:
        """The rows of `lw.run` from processes of its own, where this one cannot take part; None: it can."""
        return None

    def own_algorithms(self, collective: str) -> list[str]:
        """The algorithms of its library or device for a collective."""
        return [own.key for own in self.own if {collective, ANY} & set(own.collectives)]

    def best_seen(self, target: Target, found: Iterable[tuple[Question, Measured | None]], folder: Path) -> BestOf:
        """What the host gave at best, over this run in `folder` and its earlier runs next to it."""
        from . import best

        mine = best.Best.of(found, shares_memory=self.shares_memory)
        host = best.Host.here(self.key, target.machine_name)
        return best.remembered(folder, host, mine).time

    def job(self, asked: bool, resumed: bool) -> AbstractContextManager[bool]:
        """Whether this process leads the session (True), or has served one and is done."""
        return nullcontext(True)

    def begin(self, target: Target, run_id: str, root: Path) -> None:
        """A run begins that this target takes part in."""
        return None

    def share(self, target: Target, work: Callable[[], Shared]) -> Shared:
        """The result of `work`, on every process that takes part; most executors have one process."""
        return work()

    def merge(self, target: Target, folder: Path, records: list[Record]) -> list[Record]:
        """The records of a run, with the samples that ranks kept in their own files."""
        return records

    def discard(self, target: Target, folder: Path) -> None:
        """Delete those files, whose samples are merged and written."""
        return None

    def entry(self) -> dict[str, object]:
        """The entry for `list` and `describe`."""
        return {"key": self.key, "summary": self.summary, "description": self.description}


def partial(used: int, ranks: int, what: str, how: str) -> str | None:
    """The words of `Target.partial`."""
    return f"{used} of {ranks} {what} take part, {how}; --ranks {ranks} takes all" if used < ranks else None


def sampled(ranks: int, most: int = MOST_RANKS) -> tuple[int, ...] | None:
    """Endpoints that represent a machine with more than `most`: evenly spread, so that every level has its share."""
    if ranks <= most:
        return None
    return tuple(rank * ranks // MOST_RANKS for rank in range(MOST_RANKS))
