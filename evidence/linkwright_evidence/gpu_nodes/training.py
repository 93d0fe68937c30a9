"""Training steps of the paper's networks on both machines, and its claims 13 to 17 and 19 to 21.

The paper prints no compute times, so every step is `uncalibrated`: the operations of the network over an assumed share
of the peak, the same on both machines; low and high are the ends of the assumptions. Nothing is fitted to a rate. A
claim is judged at both ends and in the middle: it is open if these differ.

    gaps    networks that did not run: a fact of the paper that no threshold on memory reproduces (claim 17)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from linkwright.advise.predict.training import compute as rates
from linkwright.advise.predict.training.lead import Lead, leads
from linkwright.advise.predict.training.step import Choices, Step, Trainer
from linkwright.advise.predict.training.workload import Workload
from linkwright_evidence.outcome import Claim
from linkwright_evidence.published import reference_rows

from .machine_pair import DGX1, Machines
from .networks import DEPTHS, network, networks

GPUS = (1, 2, 4, 8)
GAPS = "gaps.csv"
EQUAL = 0.005  # rates that differ by less are equal
BEND = 0.02  # a curve that gains that much less is seen to bend
RARE = 0.1  # of all runs
CLOSE = 0.10  # a lead below this is a little one
FAR_LESS = 0.1  # of the lead of AlexNet
CALM = Choices()  # by the plan of the machine's library for training


@dataclass(frozen=True)
class Scaling:
    """One network with one batch: steps on both machines by number of GPUs, and the leads of the DGX-1."""

    network: str
    batch: int
    workload: Workload
    steps: dict[str, list[Step]]
    leads: list[Lead]

    def lead(self, gpus: int) -> Lead:
        """The lead on this number of GPUs."""
        return next(lead for lead in self.leads if lead.gpus == gpus)


@lru_cache(maxsize=4)
def scalings(machines: Machines, choices: Choices = CALM) -> tuple[Scaling, ...]:
    """Every network with every batch of the paper."""
    found = []
    for name, workload in networks().items():
        trainers = [_trainer(workload, machine, choices) for _, machine in machines.items()]
        for batch in workload.batches:
            steps = {t.machine.name: [t.step(batch, gpus) for gpus in GPUS] for t in trainers}
            found.append(Scaling(name, batch, workload, steps, leads(*trainers, [(batch, gpus) for gpus in GPUS])))
    return tuple(found)


def _scaling(machines: Machines, name: str, batch: int) -> Scaling:
    return next(found for found in scalings(machines) if (found.network, found.batch) == (name, batch))


def lead(machines: Machines, name: str, batch: int, gpus: int) -> Lead:
    """The lead of the DGX-1 for one network and batch."""
    return _scaling(machines, name, batch).lead(gpus)


def rate(machines: Machines, name: str, batch: int, gpus: int, node: str) -> float:
    """Steps per second of one network and batch."""
    return 1e9 / next(s for s in _scaling(machines, name, batch).steps[node] if s.gpus == gpus).time_ns


def knee(machines: Machines) -> str:
    """The batches at which the DGX-1's curves of ResNet/x bend at 8 GPUs."""
    bends = _bends(scalings(machines))
    return ";".join(str(batch) for batch, bend in bends.items() if bend > BEND)


def _bends(found: Sequence[Scaling]) -> dict[int, float]:
    """By batch: how much less ResNet/x gains from 4 to 8 GPUs than from 2 to 4, on average over x, on the DGX-1."""
    by_batch: dict[int, list[float]] = {}
    for scaling in (each for each in found if each.network.startswith("ResNet")):
        two, four, eight = (step.time_ns for step in scaling.steps[DGX1] if step.gpus in (2, 4, 8))
        by_batch.setdefault(scaling.batch, []).append((two / four) / (four / eight) - 1)
    return {batch: sum(values) / len(values) for batch, values in sorted(by_batch.items())}


def won(machines: Machines) -> str:
    """The batches at which the DGX-1 leads for every ResNet/x on 8 GPUs."""
    own = _own(scalings(machines), "ResNet", [8])
    batches = sorted({each.batch for each in own})
    return ";".join(str(batch) for batch in batches if all(each.lead > 0 for each in own if each.batch == batch))


def equal_batch(machines: Machines) -> str:
    """The batches at which one GPU of either machine is as fast for ResNet/x, with input that nothing hides."""
    own = _own(scalings(machines, replace(CALM, input="serial")), "ResNet", [1])
    batches = sorted({each.batch for each in own})
    equal = [batch for batch in batches if all(abs(e.lead) < EQUAL for e in own if e.batch == batch)]
    return ";".join(map(str, equal))


def _trainer(workload: Workload, machine, choices: Choices) -> Trainer:
    return Trainer(workload, machine, rates.from_flops(workload, machine, None, None), choices)


def check(machines: Machines) -> list[Claim]:
    """Claims 13 to 17, 19, 20 and 21."""
    found = scalings(machines)
    return [
        _one_gpu(machines), _host_gap(machines), _batches(found), _googlenet(found), _resnets(found),
        _always_close(found), _intensities(), _gaps(found), _alexnet(found), _eight(found), _knee(found), _rare(found),
    ]  # fmt: skip


def _claim(key: str, statement: str, verdicts: Iterable[bool], why: str) -> Claim:
    """Judged at the ends and in the middle of the assumptions; open if these differ."""
    verdicts = [bool(verdict) for verdict in verdicts]
    holds = verdicts[0] if len(set(verdicts)) == 1 else None
    return Claim(f"GN-{key}", statement, holds, why)


def _ends(judge: Callable[[Callable[[Lead], float]], bool]) -> list[bool]:
    """A judgement with the least, the assumed and the largest lead."""
    return [judge(take) for take in (lambda lead: lead.low, lambda lead: lead.lead, lambda lead: lead.high)]


def _own(found: Sequence[Scaling], networks: str, gpus: Iterable[int]) -> list[Lead]:
    """Leads of the networks whose name begins so, where they fit."""
    own = [scaling.lead(count) for scaling in found if scaling.network.startswith(networks) for count in gpus]
    return [lead for lead in own if lead.lead is not None]


def _span(found: Sequence[Lead]) -> str:
    values = [lead.lead for lead in found]
    low, high = min(lead.low for lead in found), max(lead.high for lead in found)
    return f"{min(values):+.1%} to {max(values):+.1%} (uncalibrated, {low:+.1%} to {high:+.1%})"


def _one_gpu(machines: Machines) -> Claim:
    """Claim 13: compute is equal by assumption, so input is judged, hidden by nothing."""
    found = scalings(machines, replace(CALM, input="serial"))
    own = [each for each in _own(found, "AlexNet", [1]) + _own(found, "ResNet", [1]) if each.batch >= 64]
    verdicts = _ends(lambda take: all(abs(take(each)) < EQUAL for each in own))
    why = f"leads {_span(own)} with input that nothing hides; equal is within {EQUAL:.1%}"
    return _claim("13", "one GPU: equal rates for AlexNet, and for ResNet/x at batch 64", verdicts, why)


def _host_gap(machines: Machines) -> Claim:
    """Claim 13, second half: with input that nothing hides, which is the most that the host links can do."""
    found = scalings(machines, replace(CALM, input="serial"))
    own = [[scaling.lead(1) for scaling in found if scaling.network == f"ResNet/{depth}"] for depth in DEPTHS]

    def shrinks(take: Callable[[Lead], float]) -> bool:
        return all(take(a) > take(b) > take(c) for a, b, c in own)

    shown = ", ".join(f"{lead.lead:+.2%}" for lead in own[0])
    why = (
        f"even with input that nothing hides, ResNet/1 leads by {shown} at batches 16, 32, 64: host copies grow with "
        "the batch as compute does, so their share stays; what shrinks is fixed per step, and the text has no such cost"
    )
    return _claim("13b", "one GPU: a small gap at batches 16 and 32 shrinks with the batch", _ends(shrinks), why)


def _batches(found: Sequence[Scaling]) -> Claim:
    groups = {}
    for scaling in found:
        for gpus in (2, 4, 8):
            if scaling.lead(gpus).lead is not None:
                groups.setdefault((scaling.network, gpus), []).append(scaling.lead(gpus))

    def falls(take: Callable[[Lead], float]) -> bool:
        return all(abs(take(a)) >= abs(take(b)) for own in groups.values() for a, b in pairwise(own))

    first = groups["AlexNet", 4]
    why = f"AlexNet on 4 GPUs {first[0].lead:+.1%} at 256 and {first[1].lead:+.1%} at 512; {len(groups)} rows like this"
    return _claim("14", "the interconnect matters less as the batch grows", _ends(falls), why)


def _googlenet(found: Sequence[Scaling]) -> Claim:
    one, other = (_own(found, name, (2, 4)) for name in ("AlexNet", "GoogLeNet"))

    def less(take: Callable[[Lead], float]) -> bool:
        alexnet = {(lead.batch, lead.gpus): take(lead) for lead in one}
        return all(take(lead) < FAR_LESS * alexnet[lead.batch, lead.gpus] for lead in other)

    ratio = network("googlenet").intensity(256) / network("alexnet").intensity(256)
    why = f"AlexNet {_span(one)}, GoogLeNet {_span(other)} on 2 and 4 GPUs; intensity ratio {ratio:.1f}"
    return _claim("14b", "the interconnect matters far less for GoogLeNet than for AlexNet", _ends(less), why)


def _resnets(found: Sequence[Scaling]) -> Claim:
    own = _own(found, "ResNet", (2, 4))
    verdicts = _ends(lambda take: all(0 < take(lead) < CLOSE for lead in own))
    why = f"leads {_span(own)}; a little is below {CLOSE:.0%}"
    return _claim("15", "ResNet/x on 2 and 4 GPUs: DGX-1 a little ahead", verdicts, why)


def _always_close(found: Sequence[Scaling]) -> Claim:
    """Claim 15, second half: the GX8 is never far behind."""
    own = _own(found, "ResNet", GPUS)
    verdicts = _ends(lambda take: max(map(take, own)) < CLOSE)
    why = f"leads of the DGX-1 {_span(own)}"
    return _claim("15b", "over all ResNet/x runs the GX8 is never far behind", verdicts, why)


def _intensities() -> Claim:
    found = networks()
    order = sorted(
        (load.intensity(batch), name, batch)
        for name, load in found.items()
        if name.startswith("ResNet")
        for batch in load.batches
    )
    alexnet = [found["AlexNet"].intensity(batch) for batch in found["AlexNet"].batches]
    inside = [found["GoogLeNet"].intensity(batch) for batch in found["GoogLeNet"].batches]
    low, high = order[0], order[-1]
    holds = (
        max(alexnet) < low[0] / 10
        and low[1:] == ("ResNet/1", 16)
        and high[1:] == ("ResNet/32", 64)
        and all(low[0] < value < high[0] for value in inside)
    )
    between = " and ".join(f"{value:.1f}" for value in inside)
    why = f"AlexNet to {max(alexnet):.1f}, ResNet/x {low[0]:.1f} to {high[0]:.1f}, GoogLeNet {between}"
    statement = "intensity: AlexNet far below ResNet/1 at 16 < ... < ResNet/32 at 64, GoogLeNet inside"
    return _claim("16", statement, [holds], why)


def published_gaps() -> set[tuple[str, int, int]]:
    """(network, batch, GPUs) that did not run."""
    return {(row["network"], int(row["batch"]), int(row["gpus"])) for row in reference_rows("gpu-nodes", GAPS)}


def predicted_gaps(found: Sequence[Scaling]) -> set[tuple[str, int, int]]:
    """Those whose activations alone exceed the memory of a GPU."""
    steps = ((scaling, step) for scaling in found for step in scaling.steps[DGX1])
    return {(scaling.network, scaling.batch, step.gpus) for scaling, step in steps if step.fits is False}


def contradictions(found: Sequence[Scaling]) -> list[tuple[str, int, tuple[int, int], tuple[int, int]]]:
    """(network, images per GPU, (batch, GPUs) that did not run, and that ran): no threshold on images divides them."""
    missing = published_gaps()
    cases = [
        (scaling.network, step.images, (scaling.batch, step.gpus)) for scaling in found for step in scaling.steps[DGX1]
    ]
    lost = [case for case in cases if (case[0], *case[2]) in missing]
    ran = [case for case in cases if (case[0], *case[2]) not in missing]
    return [
        (name, images, a, b) for name, images, a in lost for other, more, b in ran if (name, images) == (other, more)
    ]


def _gaps(found: Sequence[Scaling]) -> Claim:
    """Claim 17: activations decide which networks run."""
    model, paper = predicted_gaps(found), published_gaps()
    twice = contradictions(found)
    why = (
        f"activations of 4 B in the memory of a GPU, a necessary condition, give {len(model)} of the "
        f"{len(paper)} gaps and {len(model - paper)} others"
    )
    if twice:
        name, images, (b0, g0), (b1, g1) = twice[0]
        why += (
            f"; no threshold on images does: {name} with {images} per GPU did not run as {b0} on {g0}, and did as {b1} "
            f"on {g1}; {len(twice)} pairs like this"
        )
    return _claim("17", "gaps are the published ones and no others", [model == paper], why)


def _alexnet(found: Sequence[Scaling]) -> Claim:
    own = _own(found, "AlexNet", [8])
    why = f"leads {_span(own)} at batches 256 and 512; 36 % are stated, without a batch"
    return _claim("19", "AlexNet on 8 GPUs: DGX-1 ahead", _ends(lambda take: all(take(each) > 0 for each in own)), why)


def _eight(found: Sequence[Scaling]) -> Claim:
    own = [each for each in _own(found, "ResNet", [8]) if each.batch in (32, 64)]
    verdicts = _ends(lambda take: all(take(each) > 0 for each in own))
    return _claim("20", "ResNet/x on 8 GPUs, batches 32 and 64: DGX-1 ahead", verdicts, f"leads {_span(own)}")


def _knee(found: Sequence[Scaling]) -> Claim:
    bends = _bends(found)
    verdict = bends[16] > BEND and all(bends[16] > bends[batch] for batch in (32, 64))
    shown = ", ".join(f"{bend:.1%} at {batch}" for batch, bend in bends.items())
    why = f"from 4 to 8 GPUs its rate gains less than from 2 to 4, by {shown}; seen from {BEND:.0%} on"
    return _claim("20b", "ResNet/x at batch 16: the DGX-1's curve bends at 8 GPUs", [verdict], why)


def _rare(found: Sequence[Scaling]) -> Claim:
    own = _own(found, "ResNet", (2, 4, 8))

    def wins(take: Callable[[Lead], float]) -> int:
        return sum(take(each) < 0 for each in own)

    verdicts = _ends(lambda take: 0 < wins(take) <= RARE * len(own))
    why = f"the GX8 leads in {wins(lambda each: each.lead)} of {len(own)} runs"
    return _claim("21", "ResNet/x: the GX8 leads, but rarely", verdicts, why)


# What carries the gradients: one ring step after step, as the paper's benchmark does it, and rings over NVLink.
LIBRARIES = {key: Choices(algorithm=key) for key in ("ring", "nccl-1.3.4", "nccl-2.3.5")}


def by_library(machines: Machines) -> list[tuple[str, dict[str, Lead]]]:
    """(network, library -> lead), for the smallest batch of four networks on 2, 4 and 8 GPUs."""
    rows = []
    for key, depth in (("resnet", 1), ("resnet", 32), ("googlenet", None), ("alexnet", None)):
        workload = network(key, depth)
        cases = [(workload.batches[0], gpus) for gpus in GPUS[1:]]
        columns = []
        for how in LIBRARIES.values():
            columns.append(leads(*(_trainer(workload, machine, how) for _, machine in machines.items()), cases))
        rows += [(workload.name, dict(zip(LIBRARIES, row, strict=True))) for row in zip(*columns, strict=True)]
    return rows


def late_ranks(machines: Machines, imbalance: float = 0.05) -> list[tuple[str, Lead]]:
    """Leads for AlexNet and ResNet/8 with a rank that computes so much longer, on 2, 4 and 8 GPUs."""
    how = replace(CALM, imbalance=imbalance)
    found = []
    for workload in (network("alexnet"), network("resnet", 8)):
        trainers = [_trainer(workload, machine, how) for _, machine in machines.items()]
        found += [(workload.name, lead) for lead in leads(*trainers, [(workload.batches[0], g) for g in GPUS[1:]])]
    return found
