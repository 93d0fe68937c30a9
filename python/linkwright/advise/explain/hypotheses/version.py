"""Another version of the library runs than was thought."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts
from linkwright.libraries import library

from .kind import FREE, UNUSUAL, Case, Hypothesis, checks, unless

CHUNKED = ("2.19.3", "2.19.4", "2.20")  # versions of NCCL that cut NVLSTree's chunks to 64 KiB from four nodes on
CHUNKED_NODES = 4
CHUNKED_PART = 0.4  # of the ports' rate, post hoc: 104 of 280 GB/s on eight nodes of H100, NVIDIA/nccl#1112


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    stem = system.algorithm.split("/")[0]
    yield from _chunked(system, facts, stem)
    if facts.version:
        return
    for name in library.algorithms(system.described, system.collective):
        if name != stem and "/" not in name and name.partition("-")[0] == stem.partition("-")[0]:
            yield Case(
                f"the library is {name}", system.having(algorithm=name), "version",
                "the program loads a different version of the library than expected",
                "NCCL_DEBUG=VERSION; ldd on the program; LD_LIBRARY_PATH", "load the newer library", common=UNUSUAL,
            )  # fmt: skip


def _chunked(system: System, facts: Facts, stem: str) -> Iterator[Case]:
    """Small chunks of NVLSTree: a round trip is not covered, so the ports idle in between."""
    known = facts.version is None or facts.version.startswith(CHUNKED)
    if system.nodes < CHUNKED_NODES or system.collective != "allreduce" or not known or not stem.startswith("nccl"):
        return
    if any("nvls_tree" in name for name in library.alternatives(system.described, system.collective, stem)):
        yield Case(
            "NVLSTree of NCCL 2.19.3 or 2.20 cuts its chunks to 64 KiB, too small for the network's round trip",
            system.slowed("port", CHUNKED_PART), "version",
            "NCCL 2.19.3 and later cut the chunks of NVLSTree to 64 KiB from four nodes on (NVIDIA/nccl#1112)",
            checks(unless(facts.version, "NCCL_DEBUG=VERSION"), "run once with NCCL_ALGO=Ring"),
            "load a newer library; from 2.20.3 on NCCL_NVLSTREE_MAX_CHUNKSIZE=524288; or NCCL_ALGO=Ring",
            common=UNUSUAL, strength=FREE,
        )  # fmt: skip


HYPOTHESIS = Hypothesis("version", "a different version of the library runs than expected", _cases)
