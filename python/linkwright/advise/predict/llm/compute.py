"""How long a GPU computes on one microbatch of one layer.

    products       operations / (peak of the precision x reached)      `reached`: one number a GPU, `gpus.toml`
    attention      operations / (peak of bf16 x reached); backward computes the scores again, so 2.5 times forward
    memory         bytes of norms, residuals, activations, quantisation, routing / (rate of the memory x STREAMED)

The three follow each other. Start-up of kernels is not modelled. NVFP4 leaves 15 % of
the products in bf16, as its recipe does.

Sources: Williams et al., *Roofline*, 2009; Dao, *FlashAttention-2*, 2023 (backward); NVIDIA, *Pretraining Large
Language Models with NVFP4*, 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from linkwright import _native
from linkwright.advise.predict.llm.layout import ParallelLayout
from linkwright.advise.predict.llm.model import EXPERT, Transformer
from linkwright.advise.predict.training.compute import EFFICIENCY, peak_flops, stated
from linkwright.base.errors import NoPeakError
from linkwright.base.units import GIGA, NS_PER_S, TERA
from linkwright.machines import ASSUMED, gpus

WIDE = ("bf16", "half")  # precisions of 16 bits
# Share of the memory's rate that streaming kernels reach (assumed), and of products that NVFP4 leaves in bf16.
STREAMED, LEFT_IN_BF16 = 0.7, 0.15
GIVEN = "given"  # the basis of a share that the user states
# Operations of attention backward over forward, which computes the scores once more.
ATTENTION_BACKWARD = 2.5


@dataclass(frozen=True)
class ChipRates:
    """Rates of one GPU in one precision."""

    machine: str
    precision: str
    peak_flops_per_s: float
    wide_flops_per_s: float  # in 16 bits, which attention and the output take
    memory_bytes_per_s: float
    reached: float
    basis: str  # where `reached` comes from
    assumed: bool  # nothing calibrates it: `low` and `high` are given
    precisions: tuple[str, ...] = ()  # that have a known peak

    @property
    def ends(self) -> tuple[float, float]:
        """Plausible shares of the peak: a known one, or the range of the assumption."""
        return (EFFICIENCY[0], EFFICIENCY[2]) if self.assumed else (self.reached, self.reached)


def chip(machine: _native.Machine, precision: str, efficiency: float | None = None, gpu: str = "") -> ChipRates:
    """Return the rates of a machine's GPU.

    Args:
        machine: its file states the peak in 16 bits and the rate of the memory.
        precision: of the products, such as `mxfp8`.
        efficiency: share of the peak, instead of the calibrated or assumed one.
        gpu: row of the table of GPUs, where it is not the first that the machine stands for.

    Raises:
        NoPeakError: neither its file nor the table of GPUs states a peak in that precision.
    """
    name = Path(machine.file.removeprefix("composed ")).stem
    row = gpus.called(gpu) if gpu else gpus.of_machine(name)
    if name.startswith(ASSUMED) and not gpu and not (row and "bf16" in row.tensor_tflops):
        raise NoPeakError(
            f"{machine.name}: its rates of products are those of another GPU of its generation; write a machine file "
            "with `tensor_bf16` (docs/machines.md)"
        )
    # A peak no higher than that of single precision is stated where a GPU has no units for products of that precision.
    single = peak_flops(machine) or 0.0
    # Of an assumed box only bf16 is its own; half is that of its generation.
    stated_wide = {key: stated(machine, key) for key in (WIDE[:1] if name.startswith(ASSUMED) else WIDE)}
    peaks = {key: peak.flops_per_s for key, peak in stated_wide.items() if peak and peak.flops_per_s > single}
    if not peaks:
        raise NoPeakError(
            f"{machine.name}: its file states no peak of bf16 or half above single; add the fact `tensor_bf16`"
        )
    if row:
        peaks |= {key: value * TERA for key, value in row.tensor_tflops.items() if key not in WIDE}
    if precision not in peaks:
        raise NoPeakError(f"{machine.name}: no peak is known for {precision}; use --precision {' or '.join(peaks)}")
    reached, basis, assumed = EFFICIENCY[1], "assumed: half of the peak, from a quarter to three quarters", True
    if efficiency:
        reached, basis, assumed = efficiency, GIVEN, False
    elif row and row.reached:
        assumed = row.reached["status"] == "assumed"  # such as that of a sister: the step then has a range
        reached, basis = row.reached["value"], row.reached["source"]
    memory = _memory_bytes_per_s(machine)
    wide = peaks[next(key for key in (precision, *WIDE) if key in WIDE and key in peaks)]
    return ChipRates(
        machine.name, precision, peaks[precision], wide, memory, reached, basis, assumed, tuple(peaks)
    )  # fmt: skip


def _memory_bytes_per_s(machine: _native.Machine) -> float:
    """The memory's rate: three times that of sums by the path of copies, which are two reads and a write."""
    key = "path.copy.combine_rate"
    return next((3 * float(row["value"]) * GIGA for row in machine.numbers() if row["key"] == key), float("inf"))


@dataclass(frozen=True)
class LayerTime:
    """One layer and microbatch on one GPU, in ns."""

    forward_ns: float
    backward_ns: float
    products_ns: float  # of `forward_ns`, which communication of tensors may hide behind


def products_ns(chip: ChipRates, flops: float) -> float:
    """Time of products in the chip's precision."""
    share = LEFT_IN_BF16 if chip.precision == "nvfp4" else 0.0
    return flops * ((1 - share) / chip.peak_flops_per_s + share / chip.wide_flops_per_s) / chip.reached * NS_PER_S


def layer(model: Transformer, layout: ParallelLayout, chip: ChipRates, kind: str) -> LayerTime:
    """Time of one layer of a kind."""
    tokens = layout.sequence * layout.microbatch / (layout.cp * layout.tp)
    dense, routed = model.layer_flops(kind)
    products = products_ns(chip, tokens * (dense + routed))
    attention = tokens * model.attention_flops(layout.sequence) / (chip.wide_flops_per_s * chip.reached) * NS_PER_S
    replicated = 1 if layout.sequence_parallel else layout.tp
    inside, outside = moved_bytes(model, chip.precision, kind)
    stream = tokens * (inside + outside * replicated) / (chip.memory_bytes_per_s * STREAMED) * NS_PER_S
    forward = products + attention + stream
    weights = 1 if layout.passes == "train" else 0
    backward = products * (1 + weights) + attention * ATTENTION_BACKWARD + 2 * stream
    if layout.recompute == "full":
        backward += forward
    return LayerTime(forward, backward, products)


def moved_bytes(model: Transformer, precision: str, kind: str) -> tuple[float, float]:
    """Bytes that a token moves in a layer, forward, besides products: (divided by tp, only with sequence parallelism).

    Two norms read and write 4h, two residual sums 6h, positions read and write q and keys; the activation reads two
    inner tensors and writes one. In 8 bits and less, the input of each product is read and written again, mxfp8 and
    nvfp4 twice, along both axes. Experts permute tokens in and out, and sum.
    """
    h = model.hidden
    quantised = {"bf16": 0, "half": 0, "fp8": 3}.get(precision, 4)
    attended = model.heads * model.value_dim
    widths = model.expert_ffn * (model.topk + model.shared_experts) if kind == EXPERT else model.ffn
    inside = 4 * (model.query_width + model.kv_width) + (6 if model.gated else 4) * widths
    inside += quantised * (attended + widths)
    if kind == EXPERT:
        inside += model.topk * h * (4 + 4 + 4 + quantised)
    return inside, 20 * h + quantised * 2 * h


def output_ns(model: Transformer, layout: ParallelLayout, chip: ChipRates) -> float:
    """Output matrix and loss of one microbatch, forward and backward, in bf16."""
    tokens = layout.sequence * layout.microbatch / (layout.cp * layout.tp)
    times = 3 if layout.passes == "train" else 2
    return times * tokens * model.output_flops / (chip.wide_flops_per_s * chip.reached) * NS_PER_S


def at(chip: ChipRates, reached: float) -> ChipRates:
    """Return the chip with another share of its peak."""
    return replace(chip, reached=reached)
