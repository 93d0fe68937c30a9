"""Collectives on the two nodes: the paper's one ring, and the rings that NCCL would build.

    T = 2 (N - 1) x [ start + (S / N) / (e x B_slow) ]        alg_bw = S / T        bus_bw = alg_bw x 2 (N - 1) / N

We assume that the paper's library ran one ring in index order, step after step. Its start-up is not published: path
`ring` pays that of a copy at each step (nominal), path `flags` an exchange of flags; every table shows both.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwright import _native, library, nccl
from linkwright.studies.outcome import Cell
from linkwright.studies.references import reference_rows
from linkwright.suite.expand import collective_experiment

from .machine_pair import GPUS, PAYLOAD_BYTES, Machines, gib_per_s, paper_cell

PATHS = ("ring", "flags")
COUNTS = (2, 4, 8)
SIZES = (*(1024 << (2 * i) for i in range(9)), PAYLOAD_BYTES)
KINDS = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")
BROADCAST_SLICES = 64
ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Simulated:
    """One collective and its simulated time."""

    size_bytes: int
    seconds: float

    @property
    def alg_bw(self) -> float:
        """GiB/s, payload over time: what the paper calls effective bandwidth."""
        return gib_per_s(self.size_bytes, self.seconds)


def allreduce(machine: _native.Machine, size_bytes: int, ranks: int, path: str = "ring") -> Simulated:
    """The one ring of the paper."""
    schedule = _native.Schedule.build("allreduce/ring", ranks, size_bytes // ELEMENT_BYTES)
    return Simulated(size_bytes, _seconds(schedule, machine, path, "blocking"))


def broadcast(machine: _native.Machine, size_bytes: int, ranks: int = GPUS, path: str = "ring") -> Simulated:
    """A pipeline round the same ring."""
    elements = size_bytes // ELEMENT_BYTES
    slices = max(1, min(BROADCAST_SLICES, size_bytes // nccl.plan("1.3.4", "broadcast", size_bytes, ranks).chunk_bytes))
    schedule = _native.Schedule.build("broadcast/ring", ranks, elements).pipeline(slices)
    return Simulated(size_bytes, _seconds(schedule, machine, path, "window(2)"))


def by_version(machine: _native.Machine, version: str, kind: str, size_bytes: int, ranks: int = GPUS) -> dict:
    """A collective as NCCL `version` does it."""
    plan = library.plan(machine, collective_experiment("", kind, f"nccl-{version}", ranks, size_bytes, "f32", "sum"))
    seconds = _seconds(plan.schedule, machine, plan.path, plan.issue)
    rate = gib_per_s(size_bytes, seconds)
    return {
        "machine": machine.name, "version": version, "collective": kind, "gpus": ranks, "size_bytes": size_bytes,
        "alg_bw_gib_per_s": rate, "bus_bw_gib_per_s": rate * _native.bus_factor(kind, ranks),
        "time_us": 1e6 * seconds, "rings": str(plan.rings), "mode": plan.path,
    }  # fmt: skip


def _seconds(schedule: _native.Schedule, machine: _native.Machine, path: str, issue: str) -> float:
    return _native.simulate(schedule, machine, {"path": path, "issue": issue})["makespan_ps"] / 1e12


def cells(machines: Machines) -> list[Cell]:
    """The four stated allreduces."""
    found = []
    for row in reference_rows("gpu-nodes", "interconnect.csv"):
        if not row["quantity"].startswith("allreduce"):
            continue
        machine = dict(machines.items())[row["machine"]]
        rate = allreduce(machine, PAYLOAD_BYTES, int(row["quantity"].split()[1])).alg_bw
        found.append(paper_cell(row, "allreduce", rate))
    return found
