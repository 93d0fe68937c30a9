"""What every fitted model writes alike: the head of a machine file, and numbers with the evidence for them."""

from __future__ import annotations

from collections.abc import Callable

from linkwright import _native

from .regimes import Fit

# Times below this, in ns, are written as 0.
_NO_TIME_NS = 1e-6
HEAD = """\
# Fitted by `linkwright fit` to run {run}; the sources say which experiments each number comes from.

[machine]
name = "{name}"
"""


class MachineFile:
    """A model that can be written as a machine file."""

    name: str
    kind: str  # of fabric, as `Protocol` tells models apart
    text: Callable[..., str]

    @property
    def release_ns(self) -> float:
        """How much later than the last rank to arrive the others leave a barrier."""
        return 0.0

    def machine(self) -> _native.Machine:
        """The machine of the run, as the simulator reads it."""
        return _native.Machine.parse(self.text(open_size=False), f"{self.name}.toml")


def number(fit: Fit, evidence: str, run: str, *, rate: bool) -> str:
    """A fitted number as a value of the file: a time in ns, or ns per byte as a rate in GB/s."""
    if rate:
        value, low, high, unit = 1 / fit.value, 1 / fit.high, 1 / fit.low, "GB/s"
    else:
        value, low, high, unit = fit.value if fit.value > _NO_TIME_NS else 0.0, fit.low, fit.high, "ns"
    source = f"{evidence}, run {run}; 95 % interval {low:.4g} to {high:.4g} {unit}"
    return f'{{ value = {value:.6g}, unit = "{unit}", status = "fitted", source = "{source}" }}'
