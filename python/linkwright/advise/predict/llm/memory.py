"""What one GPU holds while it trains, for the fullest stage of the pipeline.

    parameters     2 B each; with ZeRO 3 shared by dp (and two layers at a time gathered, in `buffers`)
    gradients      4 B each, summed in single precision; shared from ZeRO 2 on
    optimizer      12 B each: master copy and two moments of Adam; shared from ZeRO 1 on
    activations    of a layer and microbatch, x layers, x microbatches under way; below
    buffers        gathered layers of ZeRO 3, buckets of gradients, and what the runtime and its libraries take

Korthikanti et al. count, per layer, s b h (10 + 24 / t) without sequence parallelism and 34 s b h / t with it, where
attention is recomputed or fused (theirs: `selective`). The same sum, for any width of heads and feed-forward layers:

    replicated by tp, divided with sequence parallelism   2 norms 4h, inputs of q and of the feed-forward layer 4h,
                                                          dropout masks 2h (models without a gate)
    divided by tp                                         q, k, v and the attention's output; the feed-forward layer's
                                                          inner tensors: 4 B per f, or 6 B with a gate

The first stage of 1F1B has `pp` microbatches under way; an interleaved one 1 + (pp - 1) / (pp vpp) times as many.

Source: Korthikanti et al., *Reducing Activation Recomputation in Large Transformer Models*, 2022, equations 2 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwright.advise.predict.llm.layout import ParallelLayout
from linkwright.advise.predict.llm.model import DENSE, EXPERT, Transformer

WEIGHT, GRADIENT, OPTIMIZER = 2, 4, 12
# Context of the driver, communicators, fragments of the allocator: an assumption, stated in the answer.
RUNTIME_BYTES = 4 << 30


@dataclass(frozen=True)
class GpuMemory:
    """Bytes on the fullest GPU by what holds them."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    buffers: int

    @property
    def total(self) -> int:
        """All of it."""
        return sum(vars(self).values())

    @property
    def largest(self) -> str:
        """What takes most."""
        return max(vars(self), key=vars(self).get)


@dataclass(frozen=True)
class OwnParameters:
    """Parameters on one GPU: those that dp copies, and those of experts."""

    dense: int
    experts: int


def layers_of(model: Transformer, layout: ParallelLayout) -> float:
    """Layers of the fullest stage; embedding and output take a layer's place each where that makes stages equal."""
    pieces = layout.pp * layout.vpp
    if model.layers % pieces and (model.layers + 2) % pieces == 0:
        return (model.layers + 2) // layout.pp
    return -(-model.layers // layout.pp)


def share(model: Transformer, layout: ParallelLayout) -> OwnParameters:
    """Parameters of a GPU of the fullest stage, the first or the last."""
    count = min(layers_of(model, layout), model.layers)
    mixed = count * model.expert_layers / model.layers
    dense = (count - mixed) * model.dense(DENSE) + mixed * model.dense(EXPERT)
    ends = model.embedding + model.output if layout.pp == 1 else max(model.embedding, model.output)
    if (model.layers + 2) % (layout.pp * layout.vpp) == 0 and model.layers % (layout.pp * layout.vpp):
        ends = 0  # the stages in the middle are the fullest
    return OwnParameters(round((dense + ends) / layout.tp), round(mixed * model.experts * model.expert / layout.ep))


def activation_bytes(model: Transformer, layout: ParallelLayout, kind: str) -> float:
    """Bytes that one layer keeps of one microbatch on one GPU."""
    tokens = layout.sequence * layout.microbatch / layout.cp
    h, tp = model.hidden, layout.tp
    spread = tp if layout.sequence_parallel else 1
    if layout.recompute == "full":
        return tokens * 2 * h / spread
    attention = 2 * (model.query_width + model.kv_width + model.heads * model.value_dim)
    outside = 8 * h + (0 if model.gated else 2 * h)
    inner = 6 if model.gated else 4
    if kind == DENSE:
        return tokens * (outside / spread + (attention + inner * model.ffn) / tp)
    routed = model.topk * (inner * model.expert_ffn + 2 * h) + inner * model.shared_experts * model.expert_ffn
    return tokens * (outside / spread + (attention + routed) / tp)


def memory(model: Transformer, layout: ParallelLayout) -> GpuMemory:
    """The memory of the fullest GPU."""
    own = share(model, layout)
    copies, expert_copies = layout.cp * layout.dp, max(1, layout.stage // layout.ep)

    def held(each: int, least: int) -> int:
        shared = layout.zero >= least
        return round(each * (own.dense / (copies if shared else 1) + own.experts / (expert_copies if shared else 1)))

    frozen = layout.passes == "adapt"
    per_layer = (own.dense + own.experts) / max(1.0, layers_of(model, layout))
    gathered = round(2 * WEIGHT * per_layer) if layout.zero == 3 else 0
    return GpuMemory(
        held(WEIGHT, 3),
        0 if frozen else held(GRADIENT, 2),
        0 if frozen else held(OPTIMIZER, 1),
        round(_activations(model, layout)),
        RUNTIME_BYTES + gathered,
    )


def _activations(model: Transformer, layout: ParallelLayout) -> float:
    count = min(layers_of(model, layout), model.layers)
    mixed = count * model.expert_layers / model.layers
    one = (count - mixed) * activation_bytes(model, layout, DENSE) + mixed * activation_bytes(model, layout, EXPERT)
    under_way = min(layout.pp, max(1, layout.microbatches))
    if layout.vpp > 1:
        under_way *= 1 + (layout.pp - 1) / (layout.pp * layout.vpp)
    tokens = layout.sequence * layout.microbatch / layout.cp
    again = 0.0
    if layout.recompute == "full":
        again = activation_bytes(model, replace(layout, recompute="none"), EXPERT if model.experts else DENSE)
    # The last stage also holds the logits and their gradient, 2 B and 4 B, of one microbatch.
    logits = tokens * 6 * model.vocabulary / layout.tp
    return max(one * under_way + again + (logits if layout.pp == 1 else 0), one + again + logits)
