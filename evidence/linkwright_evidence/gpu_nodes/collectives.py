"""Collectives on the two nodes: as NCCL would do them, and one ring step after step.

    T = 2 (N - 1) x [ start + (S / N) / (e x B_slow) ]        alg_bw = S / T        bus_bw = alg_bw x 2 (N - 1) / N

We assume that the paper's benchmark ran NCCL 1.3.4: one ring in index order, in its chunks, on path `flags`, started by
a launch. `ring` is the same ring without chunks, whose steps each pay the start-up of a copy and the staging of the
driver.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwright import _native
from linkwright.ask import schedules
from linkwright.ask.answer import How, ask
from linkwright.libraries import library
from linkwright.libraries.questions import collective_question
from linkwright_evidence.outcome import Cell
from linkwright_evidence.published import reference_cell, reference_rows

from .machine_pair import GPUS, LARGE_BYTES, PAYLOAD_BYTES, Machines, gib_per_s, paper_cell

BENCHMARK = "1.3.4"
PLAN = "plan"
WAYS = (PLAN, "ring", "flags")
COUNTS = (2, 4, 8)
SIZES = (*(1024 << (2 * i) for i in range(9)), PAYLOAD_BYTES)
KINDS = ("allreduce", "broadcast", "reduce", "allgather", "reduce_scatter")
# Of the paper's mean over 0.5 to 5 MB.
MEDIUM_SIZES = (500_000, 750_000, 1_000_000, 1_500_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000)
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


def allreduce(machine: _native.Machine, size_bytes: int, ranks: int, way: str = PLAN) -> Simulated:
    """As the library of the paper's benchmark does it, or one ring step after step on a path."""
    if way == PLAN:
        return Simulated(size_bytes, planned(machine, BENCHMARK, "allreduce", size_bytes, ranks)[0])
    schedule = _native.Schedule.build("allreduce/ring", ranks, size_bytes // ELEMENT_BYTES)
    return Simulated(size_bytes, _seconds(schedule, machine, How(path=way, issue="blocking")))


def broadcast(machine: _native.Machine, size_bytes: int, ranks: int = GPUS) -> Simulated:
    """A pipeline round the same ring."""
    return Simulated(size_bytes, planned(machine, BENCHMARK, "broadcast", size_bytes, ranks)[0])


def planned(
    machine: _native.Machine, version: str, kind: str, size_bytes: int, ranks: int
) -> tuple[float, library.Plan]:
    """Seconds of a collective as NCCL `version` does it, and how."""
    plan = library.plan(machine, collective_question("", kind, f"nccl-{version}", ranks, size_bytes, "f32", "sum"))
    return schedules.time(plan.question, machine).s, plan


def lead(machines: Machines, size_bytes: int, ranks: int, way: str = PLAN) -> float:
    """How much faster the DGX-1 reduces than the GX8; negative where the GX8 leads."""
    dgx1, gx8 = (allreduce(machine, size_bytes, ranks, way).seconds for _, machine in machines.items())
    return gx8 / dgx1 - 1


def medium_lead(machines: Machines, way: str = PLAN) -> float:
    """Mean lead of the GX8 on 8 GPUs over the payloads that the paper averages."""
    leads = [1 / (1 + lead(machines, size, GPUS, way)) - 1 for size in MEDIUM_SIZES]
    return sum(leads) / len(leads)


def largest_lead(machines: Machines) -> float:
    """The largest of these leads."""
    return max(1 / (1 + lead(machines, size, GPUS)) - 1 for size in MEDIUM_SIZES)


def by_version(machine: _native.Machine, version: str, kind: str, size_bytes: int, ranks: int = GPUS) -> dict:
    """A collective as NCCL `version` does it."""
    seconds, plan = planned(machine, version, kind, size_bytes, ranks)
    rate = gib_per_s(size_bytes, seconds)
    return {
        "machine": machine.name, "version": version, "collective": kind, "gpus": ranks, "size_bytes": size_bytes,
        "alg_bw_gib_per_s": rate, "bus_bw_gib_per_s": rate * _native.bus_factor(kind, ranks),
        "time_us": 1e6 * seconds, "rings": str(plan.planned.rings), "mode": plan.question.path,
    }  # fmt: skip


def _seconds(schedule: _native.Schedule, machine: _native.Machine, how: How) -> float:
    return ask(machine, schedule, how).time.s


def cells(machines: Machines) -> list[Cell]:
    """The four stated allreduces, to which the efficiency was fitted, and NCCL 2 on 2 to 8 GPUs."""
    found = []
    for row in reference_rows("gpu-nodes", "interconnect.csv"):
        if not row["quantity"].startswith("allreduce"):
            continue
        machine = dict(machines.items())[row["machine"]]
        rate = allreduce(machine, PAYLOAD_BYTES, int(row["quantity"].split()[1])).alg_bw
        found.append(replace(paper_cell(row, "allreduce", rate), role="fitted"))
    return found + [_nccl_2(machines.dgx1, row) for row in reference_rows("gpu-nodes", "nccl_2.csv")]


def _nccl_2(machine: _native.Machine, row: dict[str, str]) -> Cell:
    gpus = int(row["gpus"])
    seconds, plan = planned(machine, "2.3.5", "allreduce", LARGE_BYTES, gpus)
    rate = LARGE_BYTES / seconds / 1e9 * _native.bus_factor("allreduce", gpus)
    cell = reference_cell(row, "NCCL 2", {"id": row["id"], "gpus": gpus}, rate)
    # That no ring of links means host memory at every hop was concluded from this number.
    return replace(cell, role="fitted") if plan.question.path == "host_flags" else cell
