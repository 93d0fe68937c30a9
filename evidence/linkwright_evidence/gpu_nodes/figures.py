"""Figures 4 to 11 of the paper as charts of the model; points that the paper states are marked.

Rates of the charts are in decimal GB/s, as everywhere in a report; the cells keep the GiB/s of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwright.show.report.model import Axis, Curve, HeatMap, Plot, Section
from linkwright_evidence.outcome import Cell
from linkwright_evidence.report import plain

from . import collectives, copies
from .machine_pair import DGX1, GIB, GPUS, GX8, LARGE_BYTES, PAYLOAD_BYTES, Machines
from .networks import networks, resnets

GROUPS = {
    DGX1: {"one hop": (0, 1), "two hops": (0, 5)},
    GX8: {"same riser": (0, 1), "other riser": (0, 4), "0 -> 5": (0, 5)},
}
BYTES = Axis("bytes", "B", "log2")
RATE = Axis("rate", "B/s", "linear")
TIME = Axis("time", "s", "log10")


def sections(machines: Machines, cells: Sequence[Cell]) -> list[dict]:
    """One section with a part per figure, in the plain form that a run folder keeps."""
    stated = {(c.keys.get("machine"), c.keys.get("quantity")): c.reference * GIB for c in cells if c.unit == "GiB/s"}
    parts = [
        Section("Figures 4 to 7: workloads", [_intensity()]),
        Section(
            "Figure 8: copy and DMA bandwidth",
            [_copies(machines, stated, copies.COPY), _copies(machines, {}, copies.DMA)],
        ),
        Section("Figure 8, all pairs", [_matrix(name, machine) for name, machine in machines.items()]),
        Section("Figure 9: latency of a copy from GPU 0", [_latency(machines)]),
        Section("Figure 10: allreduce", [_allreduce(machines, stated), _small(machines)]),
        Section("Figure 11: broadcast on 8 GPUs", [_broadcast(machines)]),
        Section("Tartan on the DGX-1", _tartan(cells)),
    ]
    intro = "Lines are the model, points are published. The paper prints no other values of these figures."
    return [plain.dump(Section("Figures", parts=parts, intro=intro))]


def _intensity() -> Plot:
    gpus = [1, 2, 4, 8]
    curves = [
        Curve(f"{key}, batch {batch}", gpus, [workload.intensity(batch) / g for g in gpus], kind="model")
        for key, workload in networks().items()
        for batch in (workload.batches[0], workload.batches[-1])
    ]
    return Plot("Intensity per GPU", Axis("GPUs", "1", "log2"), Axis("activations per parameter", "1", "log10"), curves)


def _copies(machines: Machines, stated: dict, network: str) -> Plot:
    curves = []
    sizes = [size for size in copies.SIZES if size >= 1024]
    for name, machine in machines.items():
        for group, pair in GROUPS[name].items():
            rates = [size / t for size in sizes if (t := copies.times_s(machine, [pair], size, network).get(pair))]
            if rates:
                curves.append(Curve(f"{name}, {group}", sizes, rates, kind="model"))
            if point := stated.get((name, f"copy {group}")):
                curves.append(Curve(f"{name}, {group}, published", [LARGE_BYTES], [point]))
    return Plot(f"{network.upper() if network == copies.DMA else 'Copies'} between two GPUs", BYTES, RATE, curves)


def _matrix(name: str, machine) -> HeatMap:
    values = np.full((GPUS, GPUS), np.nan)
    for (a, b), rate in copies.matrix(machine).items():
        values[a, b] = rate * GIB
    names = [str(gpu) for gpu in range(GPUS)]
    return HeatMap(
        f"Copies of 256 MiB on {name}",
        "B/s",
        values=values,
        rows=names,
        columns=names,
        rows_title="from GPU",
        columns_title="to GPU",
        missing="a copy inside one GPU",
    )


def _latency(machines: Machines) -> Plot:
    targets = list(range(1, GPUS))
    curves = [
        Curve(f"{name}, {size:,} B", targets, [copies.time_s(machine, (0, t), size) for t in targets], kind="model")
        for name, machine in machines.items()
        for size in copies.LATENCY_SIZES
    ]
    return Plot("Time of one copy by target", Axis("to GPU", "1", "linear"), TIME, curves)


def _allreduce(machines: Machines, stated: dict) -> Plot:
    curves = []
    for name, machine in machines.items():
        for gpus in collectives.COUNTS:
            rates = [collectives.allreduce(machine, s, gpus).alg_bw * GIB for s in collectives.SIZES]
            curves.append(Curve(f"{name}, {gpus} GPUs", collectives.SIZES, rates, kind="model"))
            if point := stated.get((name, f"allreduce {gpus}")):
                curves.append(Curve(f"{name}, {gpus} GPUs, published", [PAYLOAD_BYTES], [point]))
    return Plot("Payload over time of an allreduce by NCCL 1.3.4", BYTES, RATE, curves)


def _small(machines: Machines) -> Plot:
    payloads = [workload.gradient_bytes for workload in resnets().values()]
    curves = [
        Curve(
            f"{name}, {way}",
            payloads,
            [collectives.allreduce(machine, s, GPUS, way).alg_bw * GIB for s in payloads],
            kind="model",
        )
        for name, machine in machines.items()
        for way in collectives.WAYS
    ]
    return Plot("Gradients of ResNet/1 to ResNet/32 on 8 GPUs, by what carries them", BYTES, RATE, curves)


def _broadcast(machines: Machines) -> Plot:
    curves = [
        Curve(
            name, collectives.SIZES, [collectives.broadcast(m, s).alg_bw * GIB for s in collectives.SIZES], kind="model"
        )
        for name, m in machines.items()
    ]
    return Plot("Payload over time of a broadcast", BYTES, RATE, curves)


def _tartan(cells: Sequence[Cell]) -> list[Plot]:
    plots = []
    for title, unit, axis in (("Time of a copy", "us", TIME), ("Rate of copies", "GB/s", RATE)):
        curves = []
        factor = 1e-6 if unit == "us" else 1e9
        own = [cell for cell in cells if "column" in cell.keys and cell.unit == unit]
        for column in dict.fromkeys(str(cell.keys["column"]) for cell in own):
            points = [cell for cell in own if cell.keys["column"] == column]
            sizes = [cell.keys["size_bytes"] for cell in points]
            curves.append(Curve(column, sizes, [cell.predicted * factor for cell in points], kind="model"))
            curves.append(Curve(f"{column}, measured", sizes, [cell.reference * factor for cell in points]))
        plots.append(Plot(title, BYTES, axis, curves))
    return plots
