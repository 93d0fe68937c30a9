"""Did the machine move? A ping-pong of 20 ms before and after each experiment.

Results depend on where memory and threads lie, and on what else the machine does. The canary is always the same: the
median time of 8 bytes between two processors. If it differs by more than a quarter before and after, something changed
meanwhile (a clock, a neighbour, a migration), and the row says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwright import _native
from linkwright.base.errors import LinkwrightError
from linkwright.base.lazy import np

CANARY_S = 0.02
# A probe takes at most this share of an experiment's time.
MOST_OF_BUDGET = 0.25
# The machine counts as moved from this relative change on.
MOVED = _native.measurement.CANARY_MOVED


class Canary:
    """A ping-pong between two processors; gives None on a machine with one."""

    def __init__(self) -> None:
        self._schedule = None
        if len(_native.cpus()) > 1:
            builder = _native.Builder("pattern", 2, 2, element_bytes=4)
            builder.buffer("output", 2)
            builder.step()
            builder.put(0, 1, "output", 0)
            builder.step()
            builder.put(1, 0, "output", 0, at=1)
            self._schedule = builder.finish()
            self._schedule.verify()

    def median_ns(self, budget_s: float) -> float | None:
        """Median time of one round trip."""
        if self._schedule is None:
            return None
        options = {"budget_s": min(CANARY_S, MOST_OF_BUDGET * budget_s), "warmup_at_most": 1, "check": False}
        try:
            found = _native.run_threads(self._schedule, options)
        except LinkwrightError:
            return None
        values = found["slowest_ns"]
        return round(float(np.median(values)), 2) if len(values) else None


def moved(probes: Sequence[Sequence[float | None]]) -> str | None:
    """A remark if the canaries of some launch, each (before, after), differ too much."""
    known = [(before, after) for before, after in probes if before and after]
    far = [(before, after) for before, after in known if abs(after / before - 1) > MOVED]
    if not far:
        return None
    before, after = max(far, key=lambda pair: abs(np.log(pair[1] / pair[0])))
    return (
        f"the machine's speed changed during {len(far)} of {len(known)} "
        f"launches: a round trip took {before:.4g} ns before and {after:.4g} ns after"
    )
