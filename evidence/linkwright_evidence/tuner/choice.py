"""Which algorithm and protocol a tuner should take on a network: NCCL's cost model with that network's own starts.

    T = base + NVLink hops + crossings x start(network, protocol) + size / bandwidth

NCCL reckons with one start of each protocol for all networks (2.7 to 28 us). On EFA a message starts later: study
`modern` finds 27 us for LL, 39 us for LL128 and 62 us for a long message of Simple. What was as good as LL128 on other
networks, NVLSTree by Simple, is therefore later by 23 us a level; and LL, whose data takes twice the bytes, saves only
12 us a level. Bandwidths, hops and corrections are NCCL's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwright import machines
from linkwright.libraries.nccl import Chooser, Hardware, chooser
from linkwright.libraries.nccl.constants import LL, LL128, SIMPLE
from linkwright.libraries.nccl.hardware import hardware
from linkwright.machines import Variant
from linkwright_evidence.numbers import values

MACHINE, NETWORK = "hgx-h100", "efa-p5"
VERSION = "2.22"  # of NCCL when the decisions were drawn, August 2024
GPUS = 8
NONE = "none"  # one node is left to NCCL
# Pipelined chunks of Simple wait for one another: the start of a long message.
STARTS = {LL: "start", LL128: "start", SIMPLE: "long_start"}
TIE = 1.05  # modelled times so near count as equal


@dataclass(frozen=True)
class Decision:
    """The best choice, and what others would take, as multiples of its time."""

    words: str
    ratios: dict[str, float]

    def near(self, words: str) -> bool:
        """Whether another choice is as good within `TIE`."""
        return self.ratios.get(words, TIE + 1) <= TIE


class Tuner:
    """The choices on a cluster of H100 boxes with EFA; `own` uses the network's starts, else NCCL's."""

    def __init__(self, *, own: bool = True) -> None:
        machine = machines.load(MACHINE, Variant(2, NETWORK))
        self._two: Hardware = hardware(machine, tuple(range(2 * GPUS)))
        numbers = values(machine)
        starts = [numbers[f"fabric.transport.net_{protocol}.{key}"] for protocol, key in STARTS.items()]
        self._starts = tuple(starts) if own else None
        self._choosers: dict[int, Chooser] = {}

    def decide(self, nodes: int, size_bytes: int) -> Decision:
        """The decision for an all-reduce on so many nodes."""
        if nodes == 1:
            return Decision(f"{NONE},{NONE}", {f"{NONE},{NONE}": 1.0})
        times = self._chooser(nodes).predicted("allreduce", size_bytes)
        named = {f"{algorithm.replace('_', '')},{protocol}": time for (algorithm, protocol), time in times.items()}
        best = min(named, key=lambda words: named[words])
        return Decision(best, {words: time / named[best] for words, time in named.items()})

    def _chooser(self, nodes: int) -> Chooser:
        if nodes not in self._choosers:
            found = chooser(VERSION, replace(self._two, nodes=nodes))
            if self._starts is not None:
                network = dict.fromkeys(found.tuner.constants.network, self._starts)
                tuner = replace(found.tuner, constants=replace(found.tuner.constants, network=network))
                found = Chooser(tuner, found.served, found.most_threads)
            self._choosers[nodes] = found
        return self._choosers[nodes]
