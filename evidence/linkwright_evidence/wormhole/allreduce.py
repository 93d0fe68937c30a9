"""The allreduce experiments: five variants and the proposed rings, by size, with and without arithmetic.

The path `metalium` of the machine file runs the kernels: windows with a signal each, five runs back to back. The fifth
is evaluated. Per rank, start is when its fourth run ended and finish when its fifth has; two run times are reported:

    own-start    t(r) = finish(r) - start(r), which `linkwright simulate` reports too
    first-start  t(r) = finish(r) - min over ranks of start

Every launch polls in phases of its own (`[noise]` of the machine file). Without that all windows of a step take the
same time to the cycle, so that packets that meet once meet in every window, and a run takes 5 % more or less by how its
ranks happen to begin. A time is the median over launches, as in the thesis.

Two readings of the listing exist: 32 windows per step, or a barrier after every two tiles; at 128 kB they are the same.
Windows of 2 blocks beyond that are faster than the roofline of the thesis, so the machine file has the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linkwright import _native
from linkwright.ask.answer import Answer, How, ask
from linkwright.base import units
from linkwright_evidence.numbers import changed, values
from linkwright_evidence.wormhole.theory import KIB, RANKS

PATH = "metalium"
PROTOCOL = f"path.{PATH}.protocol"
ELEMENT_BYTES = 2
GRID = (8, 8)

LO_SIZES_KIB = (2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 640)
BO_SIZES_KIB = (128, 256, 384, 512, 640)

# Variant -> algorithm of the registry.
VARIANTS = {
    "swing_LO": "allreduce/swing_latency",
    "rd_LO": "allreduce/recursive_doubling_latency",
    "swing_BO": "allreduce/swing_bandwidth",
    "rd_BO": "allreduce/recursive_doubling_bandwidth",
    "SM": "allreduce/shared_memory",
}
RINGS = {
    "ring_1": "allreduce/hamiltonian_ring",
    "ring_2": "allreduce/hamiltonian_rings",
    "ring_4": "allreduce/hamiltonian_rings_bidirectional",
}


def sizes_kib(variant: str) -> tuple[int, ...]:
    """Vector sizes of the study for `variant`."""
    return BO_SIZES_KIB if variant == "SM" or variant.endswith("BO") else LO_SIZES_KIB


def schedule(machine, variant: str, size_kib: int):
    """The schedule of one experiment as the machine runs it: shared memory once, everything else several times."""
    elements = size_kib * KIB // ELEMENT_BYTES
    key = (VARIANTS | RINGS)[variant]
    made = _native.Schedule.build(key, RANKS, elements, element_bytes=ELEMENT_BYTES, grid=GRID)
    return _native.lower(made, machine, PATH)


def with_signals(bench: Bench, signals: int, size_kib: int) -> Bench:
    """The machine with this number of progress signals per step, as far as a vector of that size has tiles."""
    known = values(bench.machine)
    tiles = size_kib * KIB / known["path.ideal.combine_tile"]
    if signals == max(tiles / known[f"{PROTOCOL}.window_tiles"], known[f"{PROTOCOL}.windows_at_least"]):
        return bench
    most_tiles = max(LO_SIZES_KIB)  # of any vector, since no tile is smaller than 1 KiB
    return bench.changed(
        {f"{PROTOCOL}.windows_at_least": str(signals), f"{PROTOCOL}.window_tiles": str(most_tiles)},
    )


@dataclass(frozen=True)
class Conditions:
    """What besides variant and size defines an experiment."""

    arithmetic: bool = True
    skew_us: float = 0.0
    seed: int = 1
    noise: bool = False


@dataclass
class Timing:
    """Microseconds of every rank in every run, shape (runs, ranks), in one launch and in `others`."""

    start_us: np.ndarray
    finish_us: np.ndarray
    others: tuple[Timing, ...] = ()

    def own_start(self, run: int = -1) -> np.ndarray:
        """finish(r) - start(r), median over launches."""
        return np.median(self._each("own", run), axis=0)

    def first_start(self, run: int = -1) -> np.ndarray:
        """finish(r) - the earliest start, median over launches."""
        return np.median(self._each("first", run), axis=0)

    def slowest(self, rule: str = "own", run: int = -1) -> float:
        """Time of the slowest rank, median over launches."""
        return float(np.median(self.slowest_of_each(rule, run)))

    def slowest_of_each(self, rule: str = "own", run: int = -1) -> np.ndarray:
        """Time of the slowest rank in each launch."""
        return self._each(rule, run).max(axis=1)

    def _each(self, rule: str, run: int) -> np.ndarray:
        """Times by launch and rank."""
        launches = (self, *self.others)
        begin = [each.start_us[run] if rule == "own" else each.start_us[run].min() for each in launches]
        return np.array([each.finish_us[run] - start for each, start in zip(launches, begin, strict=True)])


def measure(machine, variant: str, size_kib: int, conditions: Conditions) -> Timing:
    """Simulate one experiment."""
    return simulate(machine, schedule(machine, variant, size_kib), conditions)


def simulate(machine, made, conditions: Conditions) -> Timing:
    """Simulate a schedule that `schedule` made for `machine`."""
    skew = f"uniform:{conditions.skew_us}us" if conditions.skew_us else None
    how = How(path=PATH, arithmetic=conditions.arithmetic, seed=conditions.seed, noise=conditions.noise, skew=skew)
    return timing_of(made, ask(machine, made, how))


class Bench:
    """A machine and every experiment that was asked of it: each is simulated once, whichever tables show it."""

    def __init__(self, machine, seed: int = 1, noise: bool = False) -> None:
        self.machine = machine
        self.seed = seed
        self.noise = noise
        self._known: dict[tuple[str, int, Conditions], Timing] = {}
        self._changed: dict[tuple[tuple[str, str], ...], Bench] = {}

    def changed(self, values: Mapping[str, str]) -> Bench:
        """The bench of the machine with other values, which is made once."""
        key = tuple(sorted(values.items()))
        if key not in self._changed:
            self._changed[key] = Bench(changed(self.machine, values), self.seed, self.noise)
        return self._changed[key]

    def timing(self, variant: str, size_kib: int, *, arithmetic: bool = True, launches: int = 1) -> Timing:
        """The experiment without skew; its launches have successive seeds."""
        seeds = range(self.seed, self.seed + launches)
        all_ = [Conditions(arithmetic, seed=seed, noise=self.noise) for seed in seeds]
        first, *others = self.timings(variant, size_kib, all_)
        return replace(first, others=tuple(others)) if others else first

    def slowest(self, variant: str, size_kib: int, *, arithmetic: bool = True) -> float:
        """Its run time from each rank's own start, in us."""
        return self.timing(variant, size_kib, arithmetic=arithmetic).slowest()

    def timings(self, variant: str, size_kib: int, conditions: Sequence[Conditions]) -> list[Timing]:
        """The experiment under several conditions, which share its schedule and the proof that it is right."""
        keys = [(variant, size_kib, each) for each in conditions]
        missing = [key for key in keys if key not in self._known]
        if missing:
            made = schedule(self.machine, variant, size_kib)
            for key in missing:
                self._known[key] = simulate(self.machine, made, key[2])
        return [self._known[key] for key in keys]


def timing_of(made, answer: Answer) -> Timing:
    """Starts and finishes of each run; a rank starts a run when its previous one has ended."""
    ends_us = units.in_us(answer.ranks.runs_ps).reshape(-1, made.ranks)
    return Timing(ends_us[:-1], ends_us[1:])


def deviation_percent(values: np.ndarray) -> np.ndarray:
    """How far each rank's time lies from the median of its run."""
    return 100 * (values / np.median(values) - 1)
