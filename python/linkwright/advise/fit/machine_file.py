"""What every fitted model writes alike: the head of a machine file, and numbers with the evidence for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwright import _native
from linkwright.machines import writer

from .regimes import Fit

# Times below this, in ns, are written as 0.
_NO_TIME_NS = 1e-6
# Of the path of ranks that move their data themselves.
OWN_MOVES = {"completion": "source_free", "fused_combine": True, "engine": "rank"}


class MachineFile:
    """A model that can be written as a machine file."""

    name: str
    run: str  # that it is fitted to
    kind: str  # of fabric, as `Protocol` tells models apart
    document: Callable[
        [bool], dict[str, Any]
    ]  # the tables of the file, for any number of ranks or for those of the run

    def about(self, summary: str, description: str) -> dict[str, Any]:
        """The head of the file."""
        return {
            "name": self.name, "summary": summary, "description": description, "format": 1,
            "sources": [f"linkwright run {self.run}"],
        }  # fmt: skip

    def text(self, open_size: bool = True) -> str:
        """The machine file, for any number of ranks or for those of the run."""
        head = (
            f"# Fitted by `linkwright fit` to run {self.run}; the sources say which experiments each number comes from."
        )
        return f"{head}\n\n{writer.text(self.document(open_size))}"

    @property
    def release_ns(self) -> float:
        """How much later than the last rank to arrive the others leave a barrier."""
        return 0.0

    def machine(self) -> _native.Machine:
        """The machine of the run, as the simulator reads it."""
        return _native.Machine.parse(self.text(open_size=False), f"{self.name}.toml")


def number(fit: Fit, evidence: str, run: str, *, rate: bool) -> dict[str, Any]:
    """A fitted number as a value of the file: a time in ns, or ns per byte as a rate in GB/s."""
    if rate:
        value, low, high, unit = 1 / fit.value, 1 / fit.high, 1 / fit.low, "GB/s"
    else:
        value, low, high, unit = fit.value if fit.value > _NO_TIME_NS else 0.0, fit.low, fit.high, "ns"
    source = f"{evidence}, run {run}; 95 % interval {low:.4g} to {high:.4g} {unit}"
    return writer.fitted(value, unit, source)
