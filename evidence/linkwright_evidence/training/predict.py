"""From the conditions of a row to tokens per second and GPU: model, machine and layout in the words of the product."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from linkwright import machines
from linkwright.advise import predict
from linkwright.advise.predict import llm
from linkwright.advise.predict.llm import compute
from linkwright.advise.predict.llm.memory import memory
from linkwright.advise.predict.rates import capacity_bytes
from linkwright.base.errors import LinkwrightError
from linkwright.base.units import GIGA
from linkwright.machines import Variant

# Names of the publisher, in small letters without `_`, `-`, `.` and spaces -> a shipped model.
MODELS = {
    "llama38b": "llama3-8b", "llama318b": "llama3-8b", "llama370b": "llama3-70b", "llama3170b": "llama3-70b",
    "llama31405b": "llama3-405b", "llama3405b": "llama3-405b", "deepseekv3": "deepseek-v3",
    "qwen3235ba22b": "qwen3-235b", "qwen330ba3b": "qwen3-30b", "gptoss120b": "gpt-oss-120b",
    "mixtral8x7b": "mixtral-8x7b", "gpt3175b": "gpt3-175b",
}  # fmt: skip


@dataclass(frozen=True)
class PublishedSystem:
    """What stands for a published system."""

    machine: str
    gpus: int  # of a node that take part
    gpu: str  # the row of the table of GPUs
    fabric: str | None = None
    why: str = ""  # where something else stands for it
    capacity_bytes: int | None = None  # where that of the machine file is not its own


RACK = "64 of the 72 GPUs of a rack take part, as the recipes do"
SYSTEMS = {
    "DGX-H100": PublishedSystem("hgx-h100", 8, "H100"),
    "DGX-H200": PublishedSystem("hgx-h200", 8, "H200", why="rates of H100 with the memory of H200"),
    "DGX-B200": PublishedSystem("b200", 8, "B200"),
    "DGX-B300": PublishedSystem("b300", 8, "B300"),
    "DGX-GB200": PublishedSystem("gb200-nvl72", 64, "GB200", why=RACK),
    "DGX-GB300": PublishedSystem(
        "gb200-nvl72",
        64,
        "GB300",
        "xdr-fat-tree,nodes_per_leaf=1",
        f"GB200 NVL72 with 800G NICs; {RACK}",
        round(288 * GIGA),
    ),
}
PRECISIONS = {"BF16": "bf16", "FP8": "fp8", "MXFP8": "mxfp8", "NVFP4": "nvfp4"}
PASSES = {"pretrain": "train", "sft": "train", "lora": "adapt"}
# First release that hides exchanges of experts.
HIDES_EXPERTS = "26.06"
COLUMNS = (
    "task", "release", "model", "system", "gpus", "precision", "gbs", "mbs", "seq", "fsdp", "tp", "pp", "cp", "vp",
    "ep",
)  # fmt: skip


@dataclass(frozen=True)
class Throughput:
    """Tokens per second and GPU, or why there is no prediction."""

    tokens_per_s: float | None
    why: str = ""
    fits: bool | None = None
    made: llm.ModelForecast | None = None


class ThroughputModel:
    """Predictions; conditions that differ by release only are predicted once, and exchanges are kept by system."""

    def __init__(self, reached: Mapping[str, float] | None = None):
        self._reached = dict(reached or {})
        self._exchanges: dict[tuple, llm.GroupExchanges] = {}
        self._known: dict[tuple, Throughput] = {}

    def with_reached(self, reached: Mapping[str, float]) -> ThroughputModel:
        """Return the same with other shares of the peak by GPU; exchanges that were simulated are kept."""
        other = ThroughputModel(reached)
        other._exchanges = self._exchanges
        return other

    def of(self, row: Mapping[str, str]) -> Throughput:
        """Return the answer for a row with the columns of `COLUMNS`."""
        key = (*(row[name] for name in COLUMNS if name != "release"), hides_experts(row["release"]))
        if key not in self._known:
            try:
                self._known[key] = self._answer(row)
            except LinkwrightError as error:
                self._known[key] = Throughput(None, str(error))
        return self._known[key]

    def _answer(self, row: Mapping[str, str]) -> Throughput:
        name = MODELS.get("".join(c for c in row["model"].lower() if c.isalnum()))
        if name is None:
            return Throughput(
                None, f"model `{row['model']}` is not described; {', '.join(sorted(set(MODELS.values())))} are"
            )
        system = SYSTEMS.get(row["system"])
        if system is None:
            return Throughput(None, f"system `{row['system']}` is not described; {', '.join(SYSTEMS)} are")
        precision = PRECISIONS.get(row["precision"])
        if precision is None or row["task"] not in PASSES:
            return Throughput(None, f"`{row['task']}` in `{row['precision']}` is not described")
        gpus = _number(row, "gpus")
        machine, places = located(system, gpus)
        chip = compute.chip(machine, precision, gpu=system.gpu)
        if system.gpu in self._reached:
            chip = replace(chip, reached=self._reached[system.gpu])
        exchanges = self._exchanges.setdefault(
            (system.machine, system.fabric, gpus), llm.GroupExchanges(machine, places)
        )
        trained, wanted, capacity = model(name), layout(row, precision), system.capacity_bytes
        notes = [system.why] if system.why else []
        whole = wanted.tp * wanted.pp * wanted.ep == 1 and wanted.zero < 3
        if whole and memory(trained, wanted.checked(trained, gpus)).total > (capacity or capacity_bytes(machine) or 0):
            wanted = replace(wanted, zero=3)
            notes.append("one GPU cannot hold a copy, so parameters are shared (FSDP)")
        made = llm.forecast_model(
            trained, wanted, machine, places, chip, exchanges=exchanges, capacity=capacity, anyway=True
        )
        return Throughput(made.tokens_per_s_per_gpu, "; ".join(notes), made.fits, made)


@functools.cache
def model(name: str) -> llm.Transformer:
    """Return the shipped model."""
    found = predict.read(predict.find(name))
    return llm.read(found.document, found.head)


@functools.cache
def located(system: PublishedSystem, gpus: int) -> tuple:
    """Return the machine of so many GPUs, and the endpoint of each rank."""
    per_node = min(gpus, system.gpus)
    nodes = -(-gpus // per_node)
    machine = machines.load(system.machine, Variant(nodes, system.fabric) if nodes > 1 else Variant())
    each = machine.ranks // nodes
    return machine, tuple(node * each + gpu for node in range(nodes) for gpu in range(per_node))


def layout(row: Mapping[str, str], precision: str) -> llm.ParallelLayout:
    """Return the layout of a row; the recipes overlap gradients, and tensors of dense models."""
    experts = _number(row, "ep") > 1
    return llm.ParallelLayout(
        tp=_number(row, "tp"), pp=_number(row, "pp"), vpp=_number(row, "vp"), ep=_number(row, "ep"),
        cp=_number(row, "cp"), zero=3 if _number(row, "fsdp") > 1 else 1, microbatch=_number(row, "mbs"),
        batch=_number(row, "gbs"), sequence=_number(row, "seq"), precision=precision, overlap_tp=not experts,
        overlap_ep=hides_experts(row["release"]), passes=PASSES[row["task"]],
    )  # fmt: skip


def hides_experts(release: str) -> bool:
    """Whether a release hides exchanges of experts behind other work; a rule chosen after values had been seen."""
    return release >= HIDES_EXPERTS


def _number(row: Mapping[str, str], name: str) -> int:
    text = row.get(name, "")
    return int(text) if text.isdigit() and int(text) > 0 else 1
