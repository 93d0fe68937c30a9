"""Numbers that people found bad: what a healthy machine would give, and what must be missing to give theirs.

    healthy machine          expected X GB/s, you have Y
    --without, --fabric      the posted number again, within a quarter, where the cause is in the links

Where the cause is elsewhere (a container, a library), nobody knows it, or the number is a good one that only looks
wrong, there is no fault to simulate, and the case only says what to expect.

Source: `references/modern/cases.toml`, each case with its address. No number of a machine is fitted to a case.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from linkwright import machines
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import parse_size
from linkwright.libraries.settings import Setup
from linkwright.libraries.times import predicted
from linkwright.machines import Variant

from .cells import bus_rate

WITHIN = 0.25
NOTE = (
    "What people posted, and what was wrong. `expected` is the model of the healthy machine, `modelled` that of the "
    f"faulty one; a case is reproduced if that is within {WITHIN:.0%} of the posted number. Cases without a fault have "
    "their cause elsewhere. Bus rates in GB/s."
)


@dataclass(frozen=True)
class Fault:
    """What a machine lacks: links, nodes or classes of links, or its network."""

    without: Sequence[str] = ()
    fabric: str | None = None

    def options(self) -> Iterator[str]:
        """The same as options of the command line."""
        if self.fabric:
            yield f"--fabric {self.fabric}"
        for name in self.without:
            yield f'--without "{name}"' if " " in name else f"--without {name}"


@dataclass(frozen=True)
class Case:
    """A posted bus rate in GB/s, the machine that it should have been, and the fault."""

    number: int
    what: str
    machine: str
    nodes: int
    fabric: str | None
    algorithm: str
    collective: str
    size: str
    healthy: float | None  # what the same system gives without the fault, where that was posted
    posted: float
    fault: Fault | None  # None: the cause is not in what a machine file describes
    source: str
    base: Fault
    given: bool = False  # a number of the machine comes from the same thread, so that the case proves nothing

    @classmethod
    def of(cls, row: Mapping) -> Case:
        """The case of a row of the reference."""
        fault = Fault(**row["fault"]) if "fault" in row else None
        about = {"fabric": None, "healthy": None, **row, "fault": fault, "base": Fault(**row.get("base", {}))}
        return cls(**about)

    def variant(self, *, faulty: bool) -> Variant:
        """The machine as it should be, or as it was."""
        fault = (self.fault if faulty else None) or Fault()
        count = self.nodes if self.fabric else None
        return Variant.of(count, fault.fabric or self.fabric, [*self.base.without, *fault.without], {})


@functools.cache
def known() -> tuple[Case, ...]:
    """All cases of the reference."""
    path = resources.files("linkwright_evidence") / "references" / "modern" / "cases.toml"
    return tuple(map(Case.of, tomllib.loads(path.read_text(encoding="utf-8"))["case"]))


def rows() -> list[dict[str, object]]:
    """One row for each case."""
    return [_row(case) for case in known()]


def _row(case: Case) -> dict[str, object]:
    row: dict[str, object] = {"case": case.number, "what": case.what, "machine": f"{case.nodes} x {case.machine}"}
    row["fault"] = " ".join(case.fault.options()) if case.fault else None
    try:
        expected = _rate(case, faulty=False)
        modelled = _rate(case, faulty=True) if case.fault else None
    except LinkwrightError as error:
        return {**row, "posted": case.posted, "reproduced": False, "says": str(error)}
    off = modelled / case.posted - 1 if modelled is not None else None
    return {
        **row,
        "healthy": case.healthy,
        "expected": round(expected, 2),
        "posted": case.posted,
        "modelled": round(modelled, 2) if modelled is not None else None,
        "error": round(off, 4) if off is not None else None,
        "reproduced": abs(off) <= WITHIN if off is not None and not case.given else None,
        "says": f"expected {expected:.3g} GB/s, you have {case.posted:g}: {case.posted / expected:.0%}",
        "source": case.source,
    }


def _rate(case: Case, *, faulty: bool) -> float:
    """The bus rate of the model, in GB/s."""
    variant = case.variant(faulty=faulty)
    machine = machines.load(case.machine, variant)
    gpus = machine.ranks // case.nodes
    shape = Setup(case.machine, case.nodes, gpus, variant.fabric, case.algorithm, case.collective, False)
    size = parse_size(case.size)
    return bus_rate(shape, size, predicted(machine, shape, size).time_us)


def claim(found: Sequence[Mapping[str, object]]) -> tuple[str, bool, str]:
    """Whether the posted numbers come out: statement, verdict, evidence."""
    verdicts = [row["reproduced"] for row in found if row["reproduced"] is not None]
    right = sum(map(bool, verdicts))
    evidence = f"{right} of {len(verdicts)} cases"
    return "faults in links give the posted numbers within 25 %", right == len(verdicts), evidence
