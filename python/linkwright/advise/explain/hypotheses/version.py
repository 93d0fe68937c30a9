"""Another version of the library runs than was thought."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts
from linkwright.libraries import library

from .kind import UNUSUAL, Case, Hypothesis


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if facts.version:
        return
    stem = system.algorithm.split("/")[0]
    for name in library.algorithms(system.described, system.collective):
        if name != stem and "/" not in name and name.partition("-")[0] == stem.partition("-")[0]:
            yield Case(
                f"the library is {name}", system.having(algorithm=name), "version",
                "the program loads a different version of the library than expected",
                "NCCL_DEBUG=VERSION; ldd on the program; LD_LIBRARY_PATH", "load the newer library", common=UNUSUAL,
            )  # fmt: skip


HYPOTHESIS = Hypothesis("version", "a different version of the library runs than expected", _cases)
