"""Schedules drawn at random: what is verified runs right on the cores, and what is refused never reaches them.

A schedule is drawn by algorithm, ranks, elements, type, operator, lanes and cores. A mutant changes one or two lines of
its text: a wait gone or added, another rank, chunk, lane or kind, an operation gone or doubled, two swapped.
"""

from __future__ import annotations

import itertools
import random
import re

import cases
import pytest
from walks import L1_BYTES, Case, needs_compiler

from linkwright import _native
from linkwright.ask.question import Own, Program
from linkwright.base.errors import LinkwrightError, VerifyError, WaivedError
from linkwright.executors.metalium import launch
from linkwright.executors.process import Sampling
from linkwright.executors.protocol import Options

TYPES = tuple(itertools.product(("f32", "f64", "i32", "i64", "u8", "bf16"), ("sum", "max", "min", "prod")))
# Definitions that the quick test compiles the kernel with; each takes seconds.
FEW = (("f32", "sum"), ("bf16", "sum"), ("i32", "max"))
GRID = [(x, y) for y in range(4) for x in range(4)]


def drawn(rng: random.Random, types=FEW) -> cases.Case:
    """A schedule of any algorithm that can be built with what is drawn."""
    algorithms = [about["key"] for about in _native.algorithms()]
    while True:
        ranks, elements = rng.randint(1, 16), rng.randint(1, 200)
        dtype, op = rng.choice(types)
        for found in cases.buildable(rng.choice(algorithms), (ranks,), elements, dtype, op):
            if not found.schedule.memories:  # waived: only the L1 of cores is used
                return found


def mutant(rng: random.Random, text: str) -> str:
    """The schedule with one or two lines changed."""
    lines = text.splitlines()
    for _ in range(rng.choice((1, 1, 2))):
        operations = [number for number, line in enumerate(lines) if re.match(r"t\d+ ", line)]
        if operations:  # one rank alone may have none
            lines = _changed(rng, lines, rng.choice(operations), rng.choice(operations))
    return "\n".join(lines) + "\n"


def _changed(rng: random.Random, lines: list[str], at: int, other: int) -> list[str]:
    line, how = lines[at], rng.randrange(8)
    if how == 0:
        return lines[:at] + lines[at + 1 :]
    if how == 1:
        lines[at], lines[other] = lines[other], line
        return lines
    number = str(rng.randint(0, 16))
    changes = {
        2: (r"(src|dst)_after=\S+", r"\1_after=-"),
        3: (r"src_after=\S+", f"src_after=t{number}"),
        4: (r"\[\d+", f"[{number}"),
        5: (r"-> \d+", f"-> {number}"),
        6: (r"\breplace\b", "reduce") if " replace " in line else (r"\breduce\b", "replace"),
        7: (r"lane=\d+", f"lane={rng.randint(0, 3)}"),
    }
    return [*lines[:at], re.sub(*changes[how], line, count=1), *lines[at + 1 :]]


@needs_compiler
@pytest.mark.parametrize(
    ("count", "types"), [(40, FEW), pytest.param(200, TYPES, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_drawn_schedules_run_right(count, types):
    rng = random.Random(35)
    checked = 0
    for number in range(count):
        case = drawn(rng, types)
        own = Case(case, rng.sample(GRID, case.schedule.ranks), rng.choice((None, 1, 3)))
        checked += own.check(own.rows(seed=number + 1)) > 0
    assert checked > 0.9 * count  # all but barriers


class Untouched:
    """A chip that no kernel may reach."""

    l1_bytes, simulator, has_times, simulates_cycles = L1_BYTES, None, True, False

    def launch(self, *asked):
        pytest.fail("a kernel was launched")


@needs_compiler
@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_mutants_that_are_refused_never_reach_a_kernel(count):
    rng = random.Random(2035)
    refused, verified = 0, 0
    measurer = launch.CoreMeasurer(Untouched(), GRID)
    sampling = Sampling.of(Options(samples=1), 0, 1.0)
    while refused < count:
        case = drawn(rng)
        try:
            schedule = _native.Schedule.parse(mutant(rng, case.schedule.text()))
        except LinkwrightError:
            continue  # not a schedule at all
        own = Own(schedule)
        try:
            schedule.verify()
        except VerifyError:
            refused += 1
            question = Program("run", "mutant", schedule.ranks, schedule.size_bytes, case.dtype, op=case.op, own=own)
            with pytest.raises(VerifyError):
                measurer.measure(question, sampling)
            continue
        verified += 1
        if verified <= count / 5:
            try:
                still = Case(cases.Case("mutant", schedule, case.dtype, case.op), at=GRID[: schedule.ranks])
            except WaivedError:
                continue
            still.check(still.rows(seed=verified))
    assert verified
