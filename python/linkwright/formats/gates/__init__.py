"""Files that make operators' tools accept or refuse a machine, from what the model expects of a healthy one.

    machine, collectives, sizes -> expected times, tolerances, floors (advise/expect.py) -> a tool's file

A format is one file and one line in `GATES`. Some tools apply a margin of their own; the number that is written is
chosen so that they fail where the floor is. `docs/expect.md` explains the use.
"""

from __future__ import annotations

from linkwright.base.errors import UsageError, check_known

from . import aicr, cvs, document, junit, nccl_tests, nhc, nvsentinel, prometheus, reframe, superbench, text
from .gate import Expectation, Expected, GateFormat, Judged, Standing, printable

__all__ = [
    "GATES", "JSON", "Expectation", "Expected", "GateFormat", "Judged", "Standing", "entries", "find", "printable",
    "written",
]  # fmt: skip

JSON = document.JSON  # what `--json` prints, for programs of one's own
GATES = {
    gate.key: gate
    for gate in (
        text.TEXT, junit.JUNIT, nccl_tests.NCCL_TESTS, aicr.AICR, nvsentinel.NVSENTINEL, cvs.CVS,
        nhc.NHC, superbench.SUPERBENCH, reframe.REFRAME, prometheus.PROMETHEUS,
    )
}  # fmt: skip


def find(key: str) -> GateFormat:
    """The format of a key."""
    check_known("gate", key, GATES, lists="linkwright list gates")
    return GATES[key]


def entries() -> list[dict[str, object]]:
    """The formats, as `list` and `describe` print them."""
    return [gate.described() for gate in GATES.values()]


def written(gate: GateFormat, expected: Expected) -> str:
    """The file of a gate; refuses a machine whose library the tool does not test."""
    for name in dict.fromkeys(name.partition("-")[0] for name in expected.library.values()):
        if gate.libraries and name not in gate.libraries:
            raise UsageError(
                f"--format {gate.key}: is for {' and '.join(gate.libraries)}, not for {name}; choose another"
            )
    return gate.render(expected)
