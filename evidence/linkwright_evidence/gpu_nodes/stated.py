"""Numbers that the text states: `facts.csv`, each with its role.

    input       the machine or workload files contain it, or arithmetic on them alone
    fitted      the machine files were fitted to it
    predicted   the rest, where the model says something

A lead in percent is scored as a number, so a lead of 5 % where 10 % are stated is an error of 50 %; the table
`headlines` has the ratio of times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from linkwright_evidence.outcome import Cell
from linkwright_evidence.published import facts, reference_rows

from . import collectives, copies, training
from .machine_pair import DGX1, GPUS, GX8, LARGE_BYTES, PAYLOAD_BYTES, Machines, gib_per_s
from .networks import networks

# Contents of the machine and workload files; of the rest of the machines, the model knows nothing.
INPUTS = (
    1, 3, 4, 5, 12, *range(26, 30), *range(35, 38), 42, 49, *range(52, 55), *range(57, 60), 64, 65, 69, 72, 73, 77, 78,
    84, 89, 90, 96, 97, 105, 108, 109, *range(110, 118), 120, 121, 124, 125, 130, *range(173, 178), 209, 210, 219, 232,
    233, 234,
)  # fmt: skip
# Rates that the machine files were fitted to, and what follows from them; three groups on the GX8 by an assumed rate.
FITTED = (145, 146, 147, 150, 151, 154, 155, 167, 188, 189, 190, 195, 196, 198, 199, 200)

NEIGHBOURS, ACROSS, RISER, RISERS = (0, 1), (0, 5), (0, 1), (0, 4)
ALEXNET_BATCH = 256  # of the sentence on intensity beside the rates; they come without one


def cells(machines: Machines) -> list[Cell]:
    """Every row; those without a model have no prediction."""
    rules = {f"G{number:03}": rule for number, rule in _rules(machines).items()}
    roles = {f"G{n:03}": role for role, ids in (("input", INPUTS), ("fitted", FITTED)) for n in ids}
    stated = {row["id"]: row["value"] for row in reference_rows("gpu-nodes", "facts.csv")}
    given = {key: lambda key=key: stated[key] for key, role in roles.items() if role == "input" and key not in rules}
    found = facts("gpu-nodes", given | rules, ("quantity", "machine"), {})
    return [replace(cell, role=roles.get(str(cell.keys["id"]), cell.role)) for cell in found]


def _rules(machines: Machines) -> dict[int, Callable[[], object]]:
    dgx1, gx8 = machines.dgx1, machines.gx8

    def copied(machine, pair) -> float:
        return gib_per_s(LARGE_BYTES, copies.time_s(machine, pair, LARGE_BYTES))

    def reduced(machine, gpus: int) -> float:
        return collectives.allreduce(machine, PAYLOAD_BYTES, gpus).alg_bw

    def medium() -> float:
        return 100 * collectives.medium_lead(machines)

    def four() -> float:
        return 100 * collectives.lead(machines, PAYLOAD_BYTES, 4)

    def eight() -> float:
        return 100 * (1 / (1 + collectives.lead(machines, PAYLOAD_BYTES, GPUS)) - 1)

    def alexnet(name: str) -> float:
        return training.rate(machines, "AlexNet", ALEXNET_BATCH, GPUS, name)

    def ahead() -> float:
        return 100 * training.lead(machines, "AlexNet", ALEXNET_BATCH, GPUS).lead

    def ratio() -> float:
        return networks()["GoogLeNet"].intensity(256) / networks()["AlexNet"].intensity(256)

    def clusters(machine, sizes) -> int:
        return max(len(copies.latency_groups(machine, size)) for size in sizes)

    intensities = [load.intensity(batch) for load in networks().values() for batch in load.batches]
    works = [load.work(batch) for load in networks().values() for batch in load.batches]
    # In percent of a peak as the paper has it: GiB/s over GB/s.
    return {
        2: medium, 205: medium, 238: medium, 250: medium,
        9: four, 201: four, 203: eight,
        6: lambda: 100 * collectives.largest_lead(machines),
        11: ahead, 213: ahead,
        120: lambda: min(works), 121: lambda: max(works), 124: lambda: min(intensities), 125: lambda: max(intensities),
        139: lambda: len(copies.bandwidth_groups(dgx1)), 147: lambda: len(copies.bandwidth_groups(gx8)),
        142: lambda: 5 * copied(dgx1, NEIGHBOURS), 143: lambda: copied(dgx1, NEIGHBOURS),
        145: lambda: 5 * copied(dgx1, ACROSS), 146: lambda: copied(dgx1, ACROSS),
        150: lambda: 6.25 * copied(gx8, RISER), 151: lambda: copied(gx8, RISER),
        154: lambda: 6.25 * copied(gx8, RISERS), 155: lambda: copied(gx8, RISERS),
        165: lambda: clusters(dgx1, copies.SIZES),
        166: lambda: clusters(gx8, (4,)), 167: lambda: clusters(gx8, (1_000_000,)),
        188: lambda: reduced(dgx1, 4), 189: lambda: reduced(gx8, 4),
        190: lambda: 100 * reduced(dgx1, 4) / copied(dgx1, NEIGHBOURS),
        195: lambda: reduced(dgx1, GPUS), 196: lambda: reduced(gx8, GPUS),
        197: lambda: copied(dgx1, NEIGHBOURS) / 2, 198: lambda: copied(gx8, RISER) / 2,
        199: lambda: 200 * reduced(dgx1, GPUS) / copied(dgx1, NEIGHBOURS),
        200: lambda: 200 * reduced(gx8, GPUS) / copied(gx8, RISER),
        208: lambda: _order(machines),
        214: lambda: alexnet(DGX1), 215: lambda: alexnet(GX8),
        219: ratio,
        226: lambda: training.equal_batch(machines), 237: lambda: training.knee(machines),
        243: lambda: training.won(machines),
    }  # fmt: skip


def _order(machines: Machines) -> str:
    dgx1, gx8 = (collectives.broadcast(machine, PAYLOAD_BYTES).alg_bw for _, machine in machines.items())
    return "dgx1>gx8" if dgx1 > gx8 else "gx8>dgx1"


def headlines(machines: Machines) -> list[dict]:
    """What figures 8 to 13 are quoted for: ratios and rates with their signs."""
    rows = {row["id"]: float(row["value"]) for row in reference_rows("gpu-nodes", "facts.csv") if row["id"] in SHOWN}
    rules = _rules(machines)
    found = []
    for key, (figure, what) in SHOWN.items():
        lead = what.endswith("lead")
        published, model = rows[key], float(rules[int(key[1:])]())
        off = (100 + model) / (100 + published) - 1 if lead else model / published - 1
        sign = "right" if not lead or model * published > 0 else "wrong"
        unit = " %" if lead else ""
        found.append(
            {"figure": figure, "headline": what, "published": f"{published:g}{unit}", "model": f"{model:.3g}{unit}"}
            | {"off": f"{off:+.1%}", "sign": sign, "within_15_percent": "yes" if abs(off) <= LIMIT else "no"}
        )
    return [*found, _at_512(machines, rows)]


def _at_512(machines: Machines, rows: dict[str, float]) -> dict:
    found = training.lead(machines, "AlexNet", 512, GPUS)
    off = (1 + found.lead) / (1 + rows["G213"] / 100) - 1
    return {
        "figure": "12", "headline": "AlexNet on 8 GPUs, DGX-1's lead, read at batch 512", "published": "36 %",
        "model": f"{100 * found.lead:.3g} %", "off": f"{off:+.1%}", "sign": "right" if found.lead > 0 else "wrong",
        "within_15_percent": "yes" if abs(off) <= LIMIT else "no",
    }  # fmt: skip


LIMIT = 0.15
SHOWN = {
    "G143": ("8", "copy between neighbours, GiB/s"),
    "G146": ("8", "copy over two hops, GiB/s"),
    "G151": ("8", "copy inside a riser, GiB/s"),
    "G155": ("8", "copy between risers, GiB/s"),
    "G188": ("10", "allreduce on 4 GPUs of the DGX-1, GiB/s"),
    "G189": ("10", "allreduce on 4 GPUs of the GX8, GiB/s"),
    "G195": ("10", "allreduce on 8 GPUs of the DGX-1, GiB/s"),
    "G196": ("10", "allreduce on 8 GPUs of the GX8, GiB/s"),
    "G201": ("10", "allreduce on 4 GPUs, the DGX-1's lead"),
    "G203": ("10", "allreduce on 8 GPUs, the GX8's lead"),
    "G205": ("10", "allreduce of 0.5 to 5 MB on 8 GPUs, the GX8's lead"),
    "G213": ("12", "AlexNet on 8 GPUs, the DGX-1's lead"),
    "G214": ("12", "AlexNet on 8 GPUs of the DGX-1, steps/s"),
    "G215": ("12", "AlexNet on 8 GPUs of the GX8, steps/s"),
}
