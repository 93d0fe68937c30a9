"""Figure 1: two networks on devices that compute alike, eight in a node or one per node on Omni-Path.

The paper names CifarNet and Omni-Path but prints no numbers, so only the order of four speed-ups is checked.

    speed-up    step on 1 device / step on 8, the batch split; the same peak and share of it on all devices

AlexNet has large messages; CifarNet has small ones after little computing. Staged copies of the DGX-1 start slowly and
go through host memory; a dedicated port per node starts quickly. The more slowly devices compute, the less this
matters, so the claim holds for a range of that share, which is searched here.
"""

from __future__ import annotations

from linkwright.advise.predict.training import compute as rates
from linkwright.advise.predict.training.step import Choices, Trainer
from linkwright.advise.predict.training.workload import Workload
from linkwright.machines import load
from linkwright_evidence.outcome import Claim

from .machine_pair import DGX1, GPUS, Machines
from .networks import network

OMNIPATH = "knl-omnipath"
NETWORKS = ("alexnet", "cifarnet")
SHARES = tuple(percent / 100 for percent in range(5, 101, 5))  # of the peak


def check(machines: Machines) -> list[Claim]:
    """The claim of the figure, which must hold for every assumed share of the peak."""
    peak = rates.peak_flops(machines.dgx1)
    nodes = {DGX1: machines.dgx1, OMNIPATH: load(OMNIPATH)}
    found = {(name, key): speed_ups(network(key), node, peak) for name, node in nodes.items() for key in NETWORKS}
    right = {share: _inverted({where: values[share] for where, values in found.items()}) for share in SHARES}
    assumed = [holds for share, holds in right.items() if rates.EFFICIENCY[0] <= share <= rates.EFFICIENCY[-1]]
    usual = rates.EFFICIENCY[1]
    words = [
        f"{name}: AlexNet {found[name, 'alexnet'][usual]:.2f}, CifarNet {found[name, 'cifarnet'][usual]:.2f}"
        for name in nodes
    ]
    where = [share for share, holds in right.items() if holds]
    span = f"from {min(where):.0%} to {max(where):.0%}" if where else "nowhere from 5% to 100%"
    why = (
        f"speed-up on {GPUS} devices at {usual:.0%} of the peak, uncalibrated: {'; '.join(words)}; both orders are "
        f"right {span} of the peak"
    )
    statement = "Figure 1: AlexNet scales better than CifarNet on the DGX-1, and worse on Omni-Path"
    return [Claim("GN-F1", statement, assumed[0] if len(set(assumed)) == 1 else None, why)]


def _inverted(speed_up: dict[tuple[str, str], float]) -> bool:
    inside, outside = (speed_up[name, "alexnet"] / speed_up[name, "cifarnet"] for name in (DGX1, OMNIPATH))
    return inside > 1 > outside


def speed_ups(workload: Workload, machine, peak: float) -> dict[float, float]:
    """Share of the peak -> speed-up on all devices."""
    trainer = Trainer(workload, machine, rates.from_flops(workload, machine, peak, None), Choices(input="none"))
    found = {}
    for share in SHARES:
        trainer.compute = rates.from_flops(workload, machine, peak, share)
        one, many = (trainer.step(workload.batches[0], count).time_ns for count in (1, GPUS))
        found[share] = one / many
    return found
