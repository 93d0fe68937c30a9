"""How probable a simulated curve makes a log, with all that a model of a machine gets wrong.

    y = ln(measured / simulated), size by size, is a sum of
      level     one factor on every size: rates of equal machines differ between sites
      launch    one factor on the part of a time that is latency: so do launches
      shape     errors of that part which fade from one size to the next
      noise     of every size for itself
      strength  a share of ln(fault / healthy): a fault is stronger or weaker than it was simulated, at all sizes and,
                to another share that fades, at some
      switch    how far the effect of a fault at one size stands out from those at its neighbours: there the model
                of the fault or the healthy machine switches protocols, and a library may do so at another size

Each is normal, so their covariances add up and nothing is searched. A Student t takes the place of the normal
distribution, because a model that is wrong at one size is often wrong at the others. A curve that differs from the
healthy one at small sizes alone cannot explain slow large ones: there only level and noise are left.

`LEVEL`, `SHAPE` and `FADES` are fitted to 60 published tables of healthy systems (benches/answers.py, healthy). The
others, and those of `kind.py`, are set by hand, watching seed 1 of the logs of its second model and posted cases. No
log changes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .hypotheses.kind import STEADY

# Standard deviations of y, and the ln(size / size) over which an error of the shape falls to 1 / e.
LEVEL, LAUNCH, SHAPE, FADES = 0.08, 0.35, 0.30, 2.6
BENT = 0.25  # of ln(fault / healthy): what the strength differs from size to size
SHAPED = 6  # fewest sizes for which one that stands out is distinguished from the shape of the curve
TAIL = 4.0  # degrees of freedom of the Student t
COUNTS = 0.6  # of a ln(likelihood): what is known of errors is not all
UNKNOWN = 1.0  # standard deviation of the level of a fault that nobody thought of

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Observed:
    """What is to be explained, at the sizes that are simulated.

    Attributes:
        measured: size -> us.
        healthy: size -> us of the healthy machine.
        reached: the healthy machine's rate at the largest size, as a share of its rate for large sizes.
    """

    measured: Mapping[int, float]
    healthy: Mapping[int, float]
    reached: float

    def fit(self, times: Mapping[int, float], strength: float = 0.0, noise: float = STEADY) -> tuple[float, float]:
        """Return ln(likelihood over that of an unknown fault), and the factor by which the curves are apart.

        The factor is the root of the mean square of y, weighted by how well the model knows each size, for the
        strength within one standard deviation that makes it least.

        Args:
            times: size -> us of a simulated machine.
            strength: standard deviation of a fault's strength, as a share of ln(fault / healthy).
            noise: standard deviation of a size for itself.
        """
        sizes = sorted(times)
        at = np.array(sizes, float)
        curve, healthy, measured = (
            np.array([its[size] for size in sizes]) for its in (times, self.healthy, self.measured)
        )
        effect = np.log(curve / healthy)
        known = self._errors(at, curve, noise) + np.diag(_peaks(effect) ** 2)
        off = np.log(measured / curve)
        bent = BENT**2 * self._fading(at) if strength else 0.0
        found = _likelihood(off, known + (strength**2 + bent) * np.outer(effect, effect))
        unknown = self._errors(at, healthy, STEADY) + UNKNOWN**2
        sure = 1 / np.diag(known)
        stronger = np.clip(effect @ (sure * off) / max(effect @ (sure * effect), 1e-12), -strength, strength)
        distance = math.exp(math.sqrt(np.average((off - stronger * effect) ** 2, weights=sure)))
        return COUNTS * (found - _likelihood(np.log(measured / healthy), unknown)), distance

    def told_apart(self, times: Mapping[int, float], other: Mapping[int, float], strength: float) -> float:
        """Return ln of how much more probable a fault makes its own log than another fault does, on average.

        Only noise and strength blur them: errors of the level and of launches are the same for both.

        Args:
            times: size -> us of a machine with the fault.
            other: the same with the other one.
            strength: standard deviation of the strength of a fault, as a share of ln(fault / healthy).
        """
        sizes = sorted(times.keys() & other.keys())
        curve, wrong, healthy = (np.array([its[size] for size in sizes]) for its in (times, other, self.healthy))
        effect, off = np.log(curve / healthy), np.log(curve / wrong)
        blur = STEADY**2 * np.eye(len(sizes)) + strength**2 * np.outer(effect, effect)
        return COUNTS / 2 * float(off @ np.linalg.solve(blur, off))

    def _errors(self, sizes: _Array, times: _Array, noise: float) -> _Array:
        """The covariance of y without a fault."""
        rates = sizes / times
        latency = np.clip(1 - min(1.0, self.reached) * rates / rates.max(), 0, 1)  # share of a time
        together = np.outer(latency, latency)
        of_latency = LAUNCH**2 + SHAPE**2 * self._fading(sizes)
        return LEVEL**2 + together * of_latency + noise**2 * np.eye(len(sizes))

    def _fading(self, sizes: _Array) -> _Array:
        """The correlation of errors that fade from one size to the next."""
        return np.exp(-np.abs(np.subtract.outer(np.log(sizes), np.log(sizes))) / FADES)


def _peaks(effect: _Array) -> _Array:
    """How far each effect is from the median of it and its neighbours; nothing at the ends, and of few sizes."""
    found = np.zeros_like(effect)
    if len(effect) >= SHAPED:
        found[1:-1] = effect[1:-1] - np.median([effect[:-2], effect[1:-1], effect[2:]], axis=0)
    return found


def _likelihood(off: _Array, covariance: _Array) -> float:
    """ln of a Student t, but for what is the same for all curves."""
    _, size = np.linalg.slogdet(covariance)
    square = float(off @ np.linalg.solve(covariance, off))
    return -0.5 * float(size) - (TAIL + len(off)) / 2 * math.log1p(square / TAIL)
