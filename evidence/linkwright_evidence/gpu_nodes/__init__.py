"""Eight P100s on NVLink or in a PCIe tree: copies, allreduce and broadcast, and the arithmetic of workloads.

Parts: `copies` (pairs, groups, Tartan's sweep), `collectives` (NCCL's, and one ring), `facts` (exact quantities),
`stated` (numbers of the text), `networks` (the trained networks), `claims` (1 to 12 and 18), `figures` (4 to 11),
`training` (claims 13 to 17 and 19 to 21), `training_figures` (12 and 13), `figure_1`, `machine_pair` (the two machines
and their units), `ablation`, `holdout`.

Sources: Tallent, Gawande, Siegel, Vishnu, Hoisie, "Evaluating On-Node GPU Interconnects for Deep Learning Workloads";
Tartan benchmark suite, results for a DGX-1 with P100; NCCL 1.3.4 and 2.3.5.
"""

from __future__ import annotations

from linkwright_evidence import Options
from linkwright_evidence.ablation import NOTE
from linkwright_evidence.gpu_nodes import (
    ablation,
    claims,
    collectives,
    copies,
    figure_1,
    figures,
    holdout,
    stated,
    training,
    training_figures,
)
from linkwright_evidence.gpu_nodes.machine_pair import GPUS, PAYLOAD_BYTES, Machines
from linkwright_evidence.gpu_nodes.networks import networks, resnets
from linkwright_evidence.numbers import tuned
from linkwright_evidence.outcome import Outcome
from linkwright_evidence.published import reference_rows

# Sources of claims; each gives a list for both machines.
CLAIMS = (claims.check, training.check, figure_1.check)

ONE_RING = (
    "Assumption: the paper's benchmark ran NCCL 1.3.4: one ring in index order; its slowest hop on 8 GPUs goes through "
    "host memory on the DGX-1 and crosses the risers on the GX8."
)
NOTES = {
    "groups": "Pairs with nearly one rate for copies of 256 MiB, found by their values alone; GiB/s, the unit of the "
    "paper.",
    "latencies": "Time of a copy from GPU 0, targets grouped; a group ends where the next is 15 % slower.",
    "host_copies": "The unit of the paper's host copies is unknown: both readings.",
    "ablation": NOTE,
    "from_small_to_large": "Errors on 8 GPUs (NCCL 2: 5 to 8) and of copies of 16 MiB and more, with these numbers.",
    "numbers_from_small": "Fitted numbers found again from 4 GPUs, and from copies of at most 4 MiB.",
    "headlines": "What the paper is quoted for, figures 8 to 13. A lead is compared as a ratio of times. The paper "
    "gives no batch for AlexNet; both readings are shown.",
    "allreduce": f"{ONE_RING} `plan` is the library's; `ring` and `flags` go step after step, with the start-up of a "
    "copy and the driver's staging, or with an exchange of flags.",
    "one_step": "The paper's own reading: 20 GB/s at 4 GPUs in one step, over three links at once, 10 at 8. It needs "
    "an efficiency for each cell; the ring needs one for all.",
    "gradients": f"Blind: nobody has published these. Allreduce of each ResNet's gradient on 8 GPUs. {ONE_RING}",
    "nccl_versions": "What either version of NCCL would do: its rings, chunks and mode. 1.3.4 has one ring in index "
    "order, 2.3.5 several over NVLink.",
    "workloads": "Activations of a batch, and activations per parameter and GPU.",
    "training": "Uncalibrated: the paper prints no compute times. 3 x forward operations over half of the peak; in "
    "brackets what the assumptions leave open, operations and a quarter to three quarters of the peak. f: share of the "
    "GX8's step in messages; a: its allreduce over that of the DGX-1, less 1; f x a: the paper's simple model.",
    "libraries": "Lead of the DGX-1 by what carries the gradients: one ring of copies, and the plans of NCCL 1.3.4 and "
    "2.3.5. Predictions, uncalibrated.",
    "late_ranks": "Lead of the DGX-1 where the last GPU computes 5 % longer: nowhere, on one machine, on both. Such an "
    "imbalance on one machine is as large as the leads themselves.",
    "gaps": "Networks that did not run, as the paper says, and whether activations of 4 B alone exceed a GPU.",
}


def reproduce(options: Options) -> Outcome:
    """The study: cells, claims, figures."""
    machines = Machines.load()
    options.progress("cells", 0, 1)
    cells = ablation.cells(machines)
    outcome = Outcome(
        paper="gpu-nodes",
        title="Eight P100s on NVLink or in a PCIe tree, re-run on a model",
        machine=f"{machines.dgx1.name} and {machines.gx8.name}",
        tuned=[row for _, machine in machines.items() for row in tuned(machine)],
        cells=cells,
        notes=NOTES,
    )
    options.progress("claims", 0, 1)
    outcome.claims = [claim for check in CLAIMS for claim in check(machines)]
    options.progress("figures", 0, 1)
    outcome.sections = [*figures.sections(machines, cells), training_figures.section(machines)]
    outcome.tables = _tables(machines, cells)
    if options.ablate:
        outcome.tables["ablation"] = ablation.table(machines, cells, options.progress)
    if options.holdout_scale:
        outcome.tables |= holdout.results(machines, options.progress)
    return outcome


def _tables(machines: Machines, cells: list) -> dict[str, list[dict]]:
    return {
        "headlines": stated.headlines(machines),
        "groups": _groups(machines),
        "latencies": _latencies(machines),
        "host_copies": _host_copies(cells),
        "allreduce": _allreduces(machines),
        "one_step": _one_step(cells),
        "gradients": _gradients(machines),
        "nccl_versions": _versions(machines),
        "workloads": _workloads(),
        "training": training_figures.rows(machines),
        "libraries": training_figures.libraries(machines),
        "late_ranks": training_figures.late(machines),
        "gaps": _gaps(machines),
    }


def _pairs(members: tuple) -> str:
    few = ", ".join(f"{a} -> {b}" for a, b in members[:4])
    return few + (", ..." if len(members) > 4 else "")


def _groups(machines: Machines) -> list[dict]:
    return [
        {
            "machine": name,
            "rate": f"{group.median:.2f} GiB/s",
            "number": str(len(group.members)),
            "pairs": _pairs(group.members),
        }
        for name, machine in machines.items()
        for group in copies.bandwidth_groups(machine)
    ]


def _latencies(machines: Machines) -> list[dict]:
    return [
        {
            "machine": name,
            "bytes": f"{size:,}",
            "time": f"{1e6 * group.median:.2f} us",
            "targets": ", ".join(str(b) for _, b in group.members),
        }
        for name, machine in machines.items()
        for size in (*copies.LATENCY_SIZES, 16 << 20)
        for group in reversed(copies.latency_groups(machine, size))
    ]


def _host_copies(cells: list) -> list[dict]:
    return [
        {"machine": cell.keys["machine"], "read_as": unit, "means": f"{cell.reference * factor:.2f} GB/s"}
        for cell in cells
        if cell.table == "host copies"
        for unit, factor in (("GB/s", 1.0), ("GiB/s", 2**30 / 1e9))
    ]


def _allreduces(machines: Machines) -> list[dict]:
    rows = []
    for name, machine in machines.items():
        for way in collectives.WAYS:
            for gpus in collectives.COUNTS:
                for size in collectives.SIZES:
                    rate = collectives.allreduce(machine, size, gpus, way).alg_bw
                    rates = {"alg_bw_gib_per_s": rate, "bus_bw_gib_per_s": rate * 2 * (gpus - 1) / gpus}
                    rows.append({"machine": name, "way": way, "gpus": str(gpus), "size_bytes": size, **rates})
    return rows


def _one_step(cells: list) -> list[dict]:
    ideal = {row["gpus"]: float(row["value"]) for row in reference_rows("gpu-nodes", "one_step.csv")}
    rows = []
    for cell in (cell for cell in cells if cell.table == "allreduce"):
        gb_per_s = ideal[cell.keys["quantity"].split()[1]]
        rows.append(
            {
                "cell": cell.keys["id"],
                "published": f"{cell.reference:g} GiB/s",
                "one_step_ideal": f"{gb_per_s:g} GB/s",
                "efficiency_needed": f"{cell.reference * 2**30 / 1e9 / gb_per_s:.3f}",
                "ring_model": f"{cell.predicted:.2f} GiB/s",
            }
        )
    return rows


def _gradients(machines: Machines) -> list[dict]:
    rows = []
    for key, workload in resnets().items():
        for name, machine in machines.items():
            for way in collectives.WAYS:
                found = collectives.allreduce(machine, workload.gradient_bytes, GPUS, way)
                figures = {"rate": f"{found.alg_bw:.2f} GiB/s", "time": f"{1e6 * found.seconds:.1f} us"}
                about = {"network": key, "payload": f"{workload.gradient_bytes:,} B", "machine": name, "way": way}
                rows.append(about | figures)
    return rows


def _versions(machines: Machines) -> list[dict]:
    sizes = (4096, 65_536, 1 << 20, 16 << 20, PAYLOAD_BYTES)
    return [
        collectives.by_version(machine, version, kind, size)
        for _, machine in machines.items()
        for version in ("1.3.4", "2.3.5")
        for kind in collectives.KINDS
        for size in sizes
    ]


def _gaps(machines: Machines) -> list[dict]:
    model = training.predicted_gaps(training.scalings(machines))
    return [
        {"network": name, "batch": str(batch), "gpus": str(gpus), "model": "gap" if case in model else "fits"}
        for case in sorted(training.published_gaps())
        for name, batch, gpus in [case]
    ]


def _workloads() -> list[dict]:
    return [
        {"network": key, "batch": str(batch), "work": f"{workload.work(batch) / 1e6:,.1f} M"}
        | {f"intensity_on_{gpus}": f"{workload.intensity(batch) / gpus:,.4g}" for gpus in (1, 2, 4, 8)}
        for key, workload in networks().items()
        for batch in workload.batches
    ]
