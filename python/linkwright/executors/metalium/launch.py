"""One experiment on the cores of a chip.

    clocks     every core answers the first one, which gives its offset and how far it may be wrong
    check      fresh data, one repetition, every element compared with the exact answer
    sample     launches of many repetitions; each begins at a time that the first rank chooses

A simulator is deterministic and slow, so the checked repetition is the sample. One that is functional gives no times.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwright import _native, machines
from linkwright.ask import schedules
from linkwright.ask.question import Probe, Question, Scheduled
from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.base.units import NS_PER_S
from linkwright.store.record import NO_ARITHMETIC, UNCHECKED, UNTIMED, UNWARMED, Note, Record, remarks

from ..process import Sampling
from ..program import Program
from ..sampling import take_samples
from .image import Image, Timing
from .lower import Place, exchange, lower
from .runtime import VendorRuntime

# Cycles from choosing a start until it, for each rank that is told; after which a processor gives up a wait.
MARGIN, _PATIENCE = 200, 1 << 30
# The same where every cycle is simulated, and more for each byte of a core: combining floats takes 80.
_SIMULATED_PATIENCE, _PER_BYTE = 1 << 17, 100
# Exchanges of stamps with each core, and seconds between the launches that give the rate of a clock.
_EXCHANGES, _APART_S = 8, 0.5
# Chip, as the runtime names it -> the machine file that has its clock.
_MACHINES = {"wormhole_b0": "wormhole-n150", "blackhole": "blackhole-p150"}
# Paths: the network of even lanes; odd ones take the other.
PATHS = ("noc0", "noc1")
SOFTWARE = "data are combined in software by the data-movement processors, not by the matrix unit"


class CoreClocks(NamedTuple):
    """Clocks of cores: by rank the offset from the first, in cycles, by how much it may be wrong; cycles in a ns."""

    offsets: list[int]
    wrong: float
    rate: float


class CoreMeasurer:
    """The chip that a process of the runtime holds."""

    def __init__(self, runtime: VendorRuntime, places: Sequence[Place]):
        self._runtime, self._places = runtime, places
        self._clocks: dict[tuple[Place, ...], CoreClocks] = {}

    def canary_ns(self, budget_s: float) -> float | None:
        """Nothing watches the clock of a board yet."""
        return None

    def disturbances(self) -> dict[str, float | None]:
        """None: nothing else runs on the cores."""
        return {}

    def measure(self, question: Question, sampling: Sampling) -> Record:
        """One experiment; a functional simulator checks it and gives no times."""
        if isinstance(question, Probe):
            raise WaivedError(f"probe {question.algorithm}: waived: `--on metalium` runs schedules only")
        chosen = question.placement or range(question.ranks)
        places = tuple(self._places[endpoint] for endpoint in chosen)
        schedule = _native.without_aggregations(schedules.of(question))
        program = Program(schedule, dtype=question.dtype, op=question.op, seed=sampling.seed)
        assert isinstance(question, Scheduled)
        launches = _Launches(self._runtime, program, places, question)
        if launches.is_wrong:
            sampling = replace(sampling, check=False)
        if not self._runtime.has_times:
            checked, _ = launches.checked([0] * len(places), sampling.check)
            raise WaivedError(
                f"{checked} elements compared, all correct; {self._runtime.simulator} is functional and has no times",
                code=UNTIMED,
            )
        clocks = self._clocks.get(places) or self._measured(places)
        self._clocks[places] = clocks
        found = _sampled(launches, clocks, self._runtime, sampling)
        return found.noted(*schedules.of_issue(question.issue, "a barrier of the network"))

    def _measured(self, places: tuple[Place, ...]) -> CoreClocks:
        """Offsets of the clocks, from the fastest of some exchanges; on a board also their rate."""
        if len(places) == 1:
            return CoreClocks([0], 0.0, self._rate(places))
        image = Image.of(exchange(places), places, self._runtime.l1_bytes)
        repetitions = 2 if self._runtime.simulator else _EXCHANGES
        timing = Timing(repetitions, 0, patience(self._runtime.simulates_cycles, image), [0] * len(places))
        rows, _ = self._runtime.launch(image, [np.zeros(0, np.uint8)] * len(places), timing)
        stamps = image.times(rows, repetitions)[0]
        before, after = stamps[0, :, 0 : 2 * (len(places) - 1) : 2], stamps[0, :, 1 : 2 * (len(places) - 1) : 2]
        best = (after - before).argmin(axis=0), np.arange(len(places) - 1)
        answered = stamps[1:, :, 0].T
        offsets = answered[best] - (before[best] + after[best]) // 2
        return CoreClocks([0, *offsets.tolist()], float((after - before)[best].max()) / 2, self._rate(places))

    def _rate(self, places: tuple[Place, ...]) -> float:
        """Cycles in a ns: as the described machine has it for a simulator, from two launches on a board."""
        if self._runtime.simulator:
            return described_rate(self._runtime.chip)
        alone = places[:1]
        image = Image.of(lower(Program(_nothing()), alone), alone, self._runtime.l1_bytes)
        found = []
        for _ in range(2):
            rows, ended_s = self._runtime.launch(image, [np.zeros(0, np.uint8)], Timing(1, 0, _PATIENCE, [0]))
            found.append((int(image.times(rows, 1)[0, 0, 0, 1]), ended_s))
            time.sleep(_APART_S)
        (first, began_s), (last, ended_s) = found
        return (last - first) / ((ended_s - began_s) * NS_PER_S)


class _Launches:
    """One schedule on its cores."""

    def __init__(self, runtime: VendorRuntime, program: Program, places: tuple[Place, ...], question: Scheduled):
        self._runtime, self._program = runtime, program
        self._kind = question.dtype, question.op, network(question)
        lowered = lower(program, places, batch(question.issue))
        self.arithmetic = question.arithmetic
        self.is_wrong = lowered.combines and not question.arithmetic
        self.combines = lowered.combines and question.arithmetic
        lowered = lowered if question.arithmetic else lowered.without_arithmetic()
        self.image = Image.of(lowered, places, runtime.l1_bytes)
        self._initial = [program.initial(rank) for rank in range(program.ranks)]

    def checked(self, offsets: Sequence[int], check: bool = True) -> tuple[int, NDArray[np.int64]]:
        """One repetition on fresh data: how many elements were compared, and the stamps by (repetition, rank)."""
        rows = self._launch(1, offsets)
        checked = 0
        for rank, nbytes in enumerate(self._program.memory_bytes if check else ()):
            checked += self._program.check(rank, self.image.memory(rows, rank, nbytes))
        return checked, self._times(rows, 1)

    def repeated(self, count: int, offsets: Sequence[int]) -> NDArray[np.int64]:
        """The stamps of some repetitions."""
        count = min(count, self.image.most)
        return self._times(self._launch(count, offsets), count)

    def _launch(self, count: int, offsets: Sequence[int]) -> NDArray[np.uint32]:
        timing = Timing(
            count, MARGIN * self._program.ranks, patience(self._runtime.simulates_cycles, self.image), offsets
        )
        return self._runtime.launch(self.image, self._initial, timing, *self._kind)[0]

    def _times(self, rows: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
        """Start and end by (repetition, rank, 2): from the first start of its processors to their last end."""
        stamps = self.image.times(rows, count)
        times = np.stack([stamps[..., 0].min(axis=0), stamps[..., 1].max(axis=0)], axis=-1).transpose(1, 0, 2)
        if (times[..., 1] <= times[..., 0]).any():
            raise WrongResultError(
                "metalium: a rank finished before it started; no value is reported", code="exec.implausible"
            )
        return times


def _sampled(launches: _Launches, clocks: CoreClocks, runtime: VendorRuntime, sampling: Sampling) -> Record:
    end_s = time.monotonic() + sampling.budget_s
    _, first = launches.checked(clocks.offsets, sampling.check)
    found = [first]
    warmed_up = True
    if not runtime.simulator:
        found = []

        def repeat(count: int) -> NDArray[np.float64]:
            found.append(launches.repeated(count, clocks.offsets))
            return np.diff(found[-1], axis=-1)[..., 0] / clocks.rate

        taken, warmed_up = take_samples(repeat, sampling, end_s)
        launches.checked(clocks.offsets, sampling.check)
        found = [np.concatenate(found)[-len(taken) :]]
    times = found[0]
    durations = np.diff(times, axis=-1)[..., 0] / clocks.rate
    aligned = times[..., 0] - np.array(clocks.offsets)
    starts = (aligned - aligned.min(axis=1, keepdims=True)) / clocks.rate
    notes = remarks(SOFTWARE if launches.combines else None)
    notes += [] if launches.arithmetic else [NO_ARITHMETIC]
    if runtime.simulator:
        notes.append(Note("simulated", f"cycles of {runtime.simulator}, a simulator of the chip; not measured"))
    notes += [] if warmed_up else [UNWARMED]
    notes += [] if sampling.check else [UNCHECKED]
    return Record(
        values_ns=schedules.rounded(durations.max(axis=1)),
        ranks_ns=[[schedules.rounded(s), schedules.rounded(d)] for s, d in zip(starts.T, durations.T, strict=True)],
        first_ns=round(float(np.diff(first, axis=-1).max()) / clocks.rate, 2),
        notes=tuple(notes),
        start="timer",
        residual_ns=round((float(np.ptp(aligned, axis=1).max()) + clocks.wrong) / clocks.rate, 2),
    )


def network(question: Scheduled) -> int:
    """Return the number of the network of even lanes; raise WaivedError for a path that is not in `PATHS`."""
    if question.path not in (None, *PATHS):
        raise WaivedError(f"metalium: waived: there is no path `{question.path}`; use {' or '.join(PATHS)}")
    return PATHS.index(question.path or PATHS[0])


def batch(issue: str | None) -> int | None:
    """Puts that an issue policy acknowledges together; None: as many as no wait separates."""
    if issue == "blocking":
        return 1
    number = re.fullmatch(r"(?:batch|window)\((\d+)\)", issue or "")
    return int(number[1]) if number else None


def patience(simulated: bool, image: Image) -> int:
    """Cycles after which a processor gives up a wait; fewer where every cycle is simulated."""
    if simulated:
        return _SIMULATED_PATIENCE + _PER_BYTE * image.lowered.data_bytes
    return _PATIENCE


def described_rate(chip: str) -> float:
    """The clock of the described machine with this chip, in cycles per ns."""
    if (name := _MACHINES.get(chip)) is None:
        raise WaivedError(f"cycles of a simulated {chip}: no machine file has its clock", code=UNTIMED)
    numbers = _native.Machine.parse(*machines.source(name, machines.AS_DESCRIBED)).numbers()
    clock = next(number for number in numbers if number["key"] == "machine.clock")
    return float(clock["value"])


def _nothing() -> _native.Schedule:
    """A schedule of one rank that does nothing."""
    return _native.Schedule.build("barrier/dissemination", 1, 0)
