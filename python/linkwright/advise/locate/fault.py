"""A fault as a described machine: its `--degrade`, its file, and its check by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from linkwright import _native, machines
from linkwright.advise.plans.traffic import as_goal
from linkwright.ask.answer import How, ask
from linkwright.base.units import PS_PER_S
from linkwright.machines import Variant

from .effects import FaultModel
from .posterior import Observation

_SIZE = 64 << 20  # bytes of a message: start-ups do not matter
MOST_MESSAGES = 20_000


def slowed(model: FaultModel, which: Sequence[int], shares: Sequence[float], variant: Variant) -> Variant:
    """The variant of the machine in which these places have these shares of their rates."""
    factors = dict(variant.degrade)
    for place, share in zip(which, shares, strict=True):
        for name in model.places[place].part.degrade:
            factors[name] = factors.get(name, 1.0) * share
    return replace(variant, degrade=tuple(factors.items()))


def apart(machine: str, variant: Variant, faulty: Variant, seen: Observation) -> float | None:
    """Simulate a test on the machine with and without a fault, and return how far its effect is from the results.

    Args:
        machine: name or path.
        variant: the healthy one.
        faulty: the same with the fault.
        seen: results of a test.
    Returns:
        Median over the cells that the fault slows of |measured / simulated - 1|, both over the median of all cells;
        None if the fault slows none, or the test has too many messages to be simulated here.
    """
    if len(seen.test.flows) > MOST_MESSAGES:
        return None
    ways = [_simulated(machines.load(machine, one), seen) for one in (variant, faulty)]
    slower = ways[1] < 0.95 * ways[0]
    rates = np.array(seen.rates)
    good = ~np.isnan(rates)
    if not (slower & good).any():
        return None
    usual = np.median((rates / ways[1])[good])
    return float(np.median(np.abs((rates / ways[1] / usual)[slower & good] - 1)))


def _simulated(machine: _native.Machine, seen: Observation) -> np.ndarray:
    """Bytes per second of each cell, by the engine."""
    program = as_goal(dict.fromkeys(seen.test.flows, _SIZE), machine.ranks)
    answer = ask(machine, _native.read_schedule(program, "test.goal"), How(messages=True))
    assert answer.schedule is not None
    done = answer.schedule.operations()
    times = {
        (a, b): ps
        for a, b, ps in zip(done["from"].tolist(), done["to"].tolist(), answer.messages.latency_ps, strict=True)
    }
    return np.array([min(_SIZE * PS_PER_S / float(times[flow]) for flow in cell) for cell in seen.test.cells])
