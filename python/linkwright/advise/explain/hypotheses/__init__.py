"""What may be wrong with a machine: each is simulated, and compared with what was measured.

A hypothesis is one file with a `HYPOTHESIS` and one line in `HYPOTHESES`. It says what the machine would be like, never
what its numbers would be: those come from the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from . import (
    access_control,
    algorithm_forced,
    few_channels,
    gpudirect_off,
    host_path,
    link_down,
    low_clock,
    missing_link,
    missing_ports,
    neighbour,
    network_slow,
    no_peer,
    one_network,
    one_process,
    pcie_only,
    protocol_forced,
    sharp_off,
    slow_rank,
    sockets,
    version,
)
from .kind import Case, Hypothesis

__all__ = ["HYPOTHESES", "Case", "Hypothesis", "cases"]

HYPOTHESES: tuple[Hypothesis, ...] = (
    algorithm_forced.HYPOTHESIS, protocol_forced.HYPOTHESIS, few_channels.HYPOTHESIS,
    version.HYPOTHESIS, one_process.HYPOTHESIS,
    pcie_only.HYPOTHESIS, link_down.HYPOTHESIS, missing_ports.HYPOTHESIS, gpudirect_off.HYPOTHESIS,
    host_path.HYPOTHESIS, sockets.HYPOTHESIS, sharp_off.HYPOTHESIS, network_slow.HYPOTHESIS,
    slow_rank.HYPOTHESIS, low_clock.HYPOTHESIS, neighbour.HYPOTHESIS, missing_link.HYPOTHESIS, no_peer.HYPOTHESIS,
    one_network.HYPOTHESIS, access_control.HYPOTHESIS,
)  # fmt: skip


def cases(system: System, facts: Facts | None = None) -> Iterator[Case]:
    """All that may be wrong with a system, as far as the facts of its log admit it."""
    for hypothesis in HYPOTHESES:
        yield from hypothesis.cases(system, facts or Facts())
