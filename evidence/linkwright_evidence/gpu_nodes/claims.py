"""The claims of the paper about copies and collectives, each checked on the model.

Numbers as in the machine document; 13 to 17 are about training and belong to the prediction of a training step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.base.stats.clusters import Cluster
from linkwright.libraries import nccl
from linkwright.libraries.questions import collective_question
from linkwright.session.suite.expand import algorithms_of
from linkwright_evidence.numbers import values
from linkwright_evidence.outcome import Claim, numbered

from . import collectives, copies
from .machine_pair import GPUS, PAYLOAD_BYTES, Machines

SMALL_BYTES = (4, 1024, 65_536, 1_000_000)
MEDIUM_BYTES = (65_536, 262_144, 1 << 20, 4 << 20)
ANOMALY = (0, 5)
TIE = 0.05
_claim = partial(numbered, "GN")


def check(machines: Machines) -> list[Claim]:
    """Claims 1 to 12, 10b and 18."""
    return [
        _two_levels(machines), _three_levels(machines), _inside_a_group(machines), _two_latencies(machines),
        _same_end(machines), _across_latency(machines), _dma(machines), _latency_clusters(machines), _anomaly(machines),
        _four_and_eight(machines), _medium(machines), _start_up(machines), _broadcast(machines), _limits(machines),
    ]  # fmt: skip


def _levels(groups: list[Cluster]) -> str:
    return ", ".join(f"{group.median:.2f} ({len(group.members)} pairs)" for group in groups)


def _two_levels(machines: Machines) -> Claim:
    groups = copies.bandwidth_groups(machines.dgx1)
    links = nccl.nvlinks(machines.dgx1)
    by_hops = [all(links[a][b] for a, b in groups[0].members), not any(links[a][b] for a, b in groups[-1].members)]
    why = f"groups found: {_levels(groups)} GiB/s"
    return _claim(1, "large DGX-1 copies have two levels, by hops alone", len(groups) == 2 and all(by_hops), why)


def _three_levels(machines: Machines) -> Claim:
    groups = copies.bandwidth_groups(machines.gx8)
    same = {(a, b) for a, b in copies.all_pairs() if a // 4 == b // 4}
    holds = len(groups) == 3 and set(groups[0].members) == same and groups[2].members == (ANOMALY,)
    why = f"groups found: {_levels(groups)} GiB/s; the rate of the last is assumed"
    return _claim(2, "large GX8 copies have three levels: same riser, other riser, the pair 0 -> 5", holds, why)


def _inside_a_group(machines: Machines) -> Claim:
    ratios = [
        copies.time_s(machines.gx8, (0, 1), size) / copies.time_s(machines.dgx1, (0, 1), size) for size in copies.SIZES
    ]
    why = f"PCIe takes {min(ratios):.3f} to {max(ratios):.3f} times as long; at 4 B by an assumed switch latency"
    return _claim(3, "within a group of four NVLink beats PCIe in bandwidth and latency", min(ratios) > 1, why)


def _two_latencies(machines: Machines) -> Claim:
    counts = {size: len(copies.latency_groups(machines.dgx1, size)) for size in copies.SIZES}
    why = f"groups by size: {sorted(set(counts.values()))}"
    return _claim(4, "DGX-1 latency has two clusters at every size", set(counts.values()) == {2}, why)


def _across(machines: Machines, sizes: Sequence[int]) -> list[float]:
    """Time of a copy across groups on the DGX-1 over that on the GX8."""
    return [copies.time_s(machines.dgx1, (0, 6), size) / copies.time_s(machines.gx8, (0, 6), size) for size in sizes]


def _reaches(machine: _native.Machine, pair: tuple[int, int]) -> int:
    """Smallest size with 90 % of the rate of the largest."""
    rates = {size: size / copies.time_s(machine, pair, size) for size in copies.SIZES}
    return min(size for size, rate in rates.items() if rate >= 0.9 * rates[copies.SIZES[-1]])


def _same_end(machines: Machines) -> Claim:
    (end,) = _across(machines, copies.SIZES[-1:])
    there = {name: _reaches(machine, (0, 6)) for name, machine in machines.items()}
    (_, dgx1), (_, gx8) = there.items()
    leads = _across(machines, MEDIUM_BYTES)
    why = (
        f"time on the DGX-1 over that on the GX8: {end:.3f} at the end, {min(leads):.2f} to {max(leads):.2f} between; "
        f"90 % of the rate from {gx8:,} B on the GX8 and from {dgx1:,} B on the DGX-1"
    )
    holds = abs(end - 1) < TIE and gx8 < dgx1 and min(leads) > 1
    return _claim(5, "across groups both end at the same rate; the GX8 is there earlier and leads between", holds, why)


def _across_latency(machines: Machines) -> Claim:
    ratios = _across(machines, SMALL_BYTES)
    why = f"DGX-1 takes {min(ratios):.2f} to {max(ratios):.2f} times as long from 4 B to 1 MB"
    return _claim(6, "across groups, up to 1 MB, GX8 latency is below that of two hops", min(ratios) > 1, why)


def _dma(machines: Machines) -> Claim:
    there = {name: copies.matrix(machine, network=copies.DMA) for name, machine in machines.items()}
    links = nccl.nvlinks(machines.dgx1)
    one_hop = {pair for pair in copies.all_pairs() if links[pair[0]][pair[1]]}
    same = all(
        rate == copies.matrix(machine)[pair] for name, machine in machines.items() for pair, rate in there[name].items()
    )
    dgx1, gx8 = there.values()
    why = f"DMA leads to {len(dgx1)} pairs of the DGX-1 and {len(gx8)} of the GX8, at the rate of copies"
    return _claim(7, "DMA follows copy; none over two hops", same and set(dgx1) == one_hop and len(gx8) == 56, why)


def _latency_clusters(machines: Machines) -> Claim:
    counts = [len(copies.latency_groups(machines.gx8, size)) for size in copies.LATENCY_SIZES]
    gap = f"{copies.LATENCY_GAP:.0%}"
    why = f"{counts} clusters at 4 B, 100 KB, 1 MB, where a cluster ends at a gap of {gap}; start-up and 0 -> 5 assumed"
    return _claim(8, "GX8 latency: one cluster at 4 B, nearly one at 100 KB, three at 1 MB", counts == [1, 1, 3], why)


def _anomaly(machines: Machines) -> Claim:
    """Claim 9, with 0 -> 5 a tenth as fast: other orders of messages than the library's rings show it."""
    both = machines.gx8, machines.gx8.with_value("fabric.pair.GPU 0 -> GPU 5.rate", "0.8")
    plans = [(version, kind, gpus) for version in nccl.EARLY for kind in collectives.KINDS for gpus in range(2, 9)]
    off = [p for p in plans if len({collectives.planned(m, p[0], p[1], 1 << 20, p[2])[0] for m in both}) > 1]
    others = algorithms_of("allreduce")
    shown = [a for a in others if len({_alone_ps(m, a) for m in both}) > 1]
    why = f"{len(off)} of {len(plans)} plans change with it; of {len(others)} registered allreduces, {len(shown)} do"
    return _claim(9, "the anomaly 0 -> 5 leaves every collective of the library unchanged", not off, why)


def _alone_ps(machine: _native.Machine, algorithm: str) -> int:
    asked = collective_question("", "allreduce", algorithm, GPUS, 1 << 20, "f32", "sum", grid=(2, 4))
    schedule = schedules.of(asked)
    if schedule.memories > machine.memories:
        return 0
    return ask(machine, schedule, How(path="flags")).time.ps


def _four_and_eight(machines: Machines) -> Claim:
    rate = {(n, g): collectives.allreduce(m, PAYLOAD_BYTES, g).alg_bw for n, m in machines.items() for g in (4, 8)}
    (d4, d8), (g4, g8) = ([rate[name, g] for g in (4, 8)] for name, _ in machines.items())
    holds = 1.35 <= d4 / g4 <= 1.5 and d8 < d4 / 2 and 0.6 <= g8 / g4 <= 0.73 and abs(d8 / g8 - 1) < TIE and g8 >= d8
    why = f"DGX-1 {d4:.2f} and {d8:.2f}, GX8 {g4:.2f} and {g8:.2f} GiB/s on 4 and 8 GPUs"
    return _claim(
        10, "allreduce: DGX-1 40 % ahead on 4 GPUs, on 8 both far lower and equal, GX8 not behind", holds, why
    )


def _medium(machines: Machines) -> Claim:
    """Claim 10b: sign and size of the mean, which the driver's staging alone would make ten times as large."""
    plan, ring = (collectives.medium_lead(machines, way) for way in (collectives.PLAN, "ring"))
    why = f"mean lead {plan:.1%} by the library's plan, {ring:.0%} by a ring of copies that the driver stages"
    holds = 0.05 <= plan <= 0.15
    return Claim("GN-10b", "allreduce of 0.5 to 5 MB on 8 GPUs: the GX8 ahead by 10 % (5 to 15 %)", holds, why)


def _start_up(machines: Machines) -> Claim:
    falls = []
    for name, machine in machines.items():
        for gpus in collectives.COUNTS:
            rates = [collectives.allreduce(machine, size, gpus).alg_bw for size in collectives.SIZES]
            falls += [(name, gpus) for a, b in pairwise(rates) if b < a]
    why = f"the rate falls with size {len(falls)} times, over {len(collectives.SIZES)} sizes on 2, 4 and 8 GPUs"
    return _claim(11, "large payloads hide the ring's start-up: the rate rises with size", not falls, why)


def _broadcast(machines: Machines) -> Claim:
    dgx1, gx8 = (collectives.broadcast(machine, PAYLOAD_BYTES).alg_bw for _, machine in machines.items())
    why = f"DGX-1 {dgx1:.2f}, GX8 {gx8:.2f} GiB/s at 240 MB"
    return _claim(12, "broadcast on 8 GPUs, large: DGX-1 slightly ahead", 1 < dgx1 / gx8 < 1.2, why)


def _limits(machines: Machines) -> Claim:
    worst = 0.0
    for _, machine in machines.items():
        table = copies.matrix(machine)
        for gpus in (4, 8):
            ring = [table[r, (r + 1) % gpus] for r in range(gpus)]
            bound = min(ring) * gpus / (2 * (gpus - 1))
            worst = max(worst, collectives.allreduce(machine, PAYLOAD_BYTES, gpus).alg_bw / bound)
    fastest = max(copies.matrix(machines.dgx1).values()) * 2**30 / 1e9
    share = fastest / values(machines.dgx1)["fabric.links.nvlink.bandwidth"]
    why = f"largest allreduce is {worst:.3f} of its ring at full efficiency, largest copy {share:.3f} of its link"
    return _claim(18, "no allreduce exceeds its own ring, no copy its link", worst <= 1 and share <= 1, why)
