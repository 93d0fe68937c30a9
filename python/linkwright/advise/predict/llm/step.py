"""One training step: what every stage computes, what its groups exchange, and what neither hides.

    microbatch of a stage   layers x (forward + backward + exposed tp, cp, ep)
    step                    (microbatches + (pp - 1) / vpp) x microbatch of the fullest stage
                            + exposed messages of the pipeline + exposed gradients + optimizer

Collectives, for one layer and microbatch (s tokens b sequences, h hidden, 2 B each):

    tp   with sequence parallelism an allgather and a reduce-scatter of s b h around attention and around a dense
         feed-forward layer, else an allreduce; the same again backward
    cp   an allgather of keys and values, and a reduce-scatter of their gradients
    ep   an alltoall of the tokens to their experts and one back; the same again backward
    dp   once a step: a reduce-scatter of gradients (4 B) and an allgather of parameters (2 B), or an allreduce;
         with ZeRO 3 two allgathers of the parameters and a reduce-scatter in each microbatch
    pp   s b h to the next stage, and back

Hidden is only what an overlap flag says: gradients behind the backward pass of the last microbatch, tensors behind the
products of their layer except a first slice of tp, experts behind the rest of the layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwright.advise.predict.llm import compute
from linkwright.advise.predict.llm.layout import ParallelLayout
from linkwright.advise.predict.llm.memory import GRADIENT, OPTIMIZER, WEIGHT, layers_of, share
from linkwright.advise.predict.llm.model import DENSE, EXPERT, Transformer
from linkwright.advise.predict.llm.together import GroupExchange, GroupExchanges
from linkwright.base.units import NS_PER_S


@dataclass
class GroupTime:
    """What the groups of one kind add to a step, in ns of the fullest stage."""

    kind: str
    ranks: int
    busy_ns: float = 0.0  # all its collectives
    exposed_ns: float = 0.0  # what no computation hides
    exchanges: list[GroupExchange] = field(default_factory=list)

    def add(self, exchange: GroupExchange, times: float, hidden_ns: float = 0.0, least: float = 0.0) -> float:
        """Count an exchange; return what of one is exposed. `least` is the share that cannot be hidden."""
        exposed = max(exchange.time_ns - hidden_ns, least * exchange.time_ns, 0.0)
        self.busy_ns += times * exchange.time_ns
        self.exposed_ns += times * exposed
        self.exchanges.append(exchange)
        return exposed

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        slowest = max(self.exchanges, key=lambda one: one.time_ns)
        return {
            "group": self.kind,
            "ranks": self.ranks,
            "busy_ns": self.busy_ns,
            "exposed_ns": self.exposed_ns,
            "link": slowest.link,
            "choice": slowest.choice,
            "groups_at_once": slowest.groups,
            "simulated_together": slowest.beside,
            "compared": slowest.looked,
        }


@dataclass(frozen=True)
class StepTime:
    """A step on one layout, in ns."""

    time_ns: float
    compute_ns: float
    bubble_ns: float
    optimizer_ns: float
    groups: list[GroupTime]


def step(model: Transformer, layout: ParallelLayout, chip: compute.ChipRates, exchanges: GroupExchanges) -> StepTime:
    """Return the step; every collective is simulated."""
    groups = {kind: GroupTime(kind, _ranks(kind, layout)) for kind in ("tp", "cp", "ep", "pp", "dp")}
    count, micro = layers_of(model, layout), layout.microbatches
    mixed = count * model.expert_layers / model.layers
    computed = exposed = 0.0
    backward_ns = 0.0
    for kind, layers in ((DENSE, count - mixed), (EXPERT, mixed)):
        if not layers:
            continue
        one = compute.layer(model, layout, chip, kind)
        computed += layers * (one.forward_ns + one.backward_ns)
        backward_ns += layers * one.backward_ns
        exposed += layers * _inside(model, layout, kind, one, exchanges, groups, layers * micro)
    last = compute.output_ns(model, layout, chip)
    whole_stages = count * layout.pp > model.layers  # the ends of the pipeline have fewer layers
    computed += 0.0 if whole_stages else last
    microbatch_ns = computed + exposed
    state_ns = _state(model, layout, exchanges, groups["dp"], backward_ns, microbatch_ns)
    hop_ns = _hops(model, layout, exchanges, groups["pp"])
    fills = (layout.pp - 1) / layout.vpp
    bubble_ns = fills * microbatch_ns
    optimizer_ns = _optimizer(model, layout, chip)
    time_ns = micro * microbatch_ns + bubble_ns + hop_ns + state_ns + optimizer_ns
    used = [group for group in groups.values() if group.exchanges and group.ranks > 1]
    return StepTime(time_ns, micro * computed, bubble_ns, optimizer_ns, used)


def _ranks(kind: str, layout: ParallelLayout) -> int:
    return {"tp": layout.tp, "cp": layout.cp, "ep": layout.ep, "pp": layout.pp, "dp": layout.dp * layout.cp}[kind]


def _inside(
    model: Transformer, layout: ParallelLayout, kind: str, one: compute.LayerTime, exchanges: GroupExchanges,
    groups: dict[str, GroupTime], times: float,
) -> float:  # fmt: skip
    """Exposed collectives of one layer and microbatch, forward and backward."""
    tokens = layout.sequence * layout.microbatch // layout.cp
    again = 1 if layout.recompute == "full" else 0
    exposed = 0.0
    if layout.tp > 1:
        blocks = 2 if kind == DENSE else 1
        kinds = ("allgather", "reduce_scatter") if layout.sequence_parallel else ("allreduce",)
        hides = one.products_ns / (2 * blocks) if layout.overlap_tp else 0.0
        for collective in kinds:
            found = exchanges.collective(collective, layout.groups("tp"), WEIGHT * tokens * model.hidden)
            calls = blocks * (2 + again)
            exposed += calls * groups["tp"].add(found, calls * times, hides, 1 / layout.tp)
    if layout.cp > 1:
        size = WEIGHT * tokens * layout.cp * model.kv_width // layout.tp
        hides = one.forward_ns - one.products_ns if layout.overlap_tp else 0.0
        for collective, calls in (("allgather", 2 + again), ("reduce_scatter", 1)):
            found = exchanges.collective(collective, layout.groups("cp"), size)
            exposed += calls * groups["cp"].add(found, calls * times, hides, 1 / layout.cp)
    if layout.ep > 1 and kind == EXPERT:
        sent = tokens * model.topk * model.hidden * WEIGHT // layout.tp
        found = exchanges.collective("alltoall", layout.groups("ep"), sent)
        hides = one.forward_ns / 2 if layout.overlap_ep else 0.0
        calls = 4 + 2 * again
        exposed += calls * groups["ep"].add(found, calls * times, hides)
    return exposed


def _state(
    model: Transformer,
    layout: ParallelLayout,
    exchanges: GroupExchanges,
    group: GroupTime,
    backward_ns: float,
    microbatch_ns: float,
) -> float:
    """Exposed gradients and parameters of a step."""
    own = share(model, layout)
    parts = [("dp", own.dense, layout.dp * layout.cp), ("edp", own.experts, max(1, layout.stage // layout.ep))]
    exposed = 0.0
    for kind, parameters, copies in parts:
        if copies == 1 or not parameters or layout.passes == "adapt":
            continue
        places = layout.groups(kind)
        if layout.zero == 3:
            layers = layers_of(model, layout)
            for collective, width, calls in (("allgather", WEIGHT, 2), ("reduce_scatter", GRADIENT, 1)):
                found = exchanges.collective(collective, places, round(width * parameters / layers))
                hides = microbatch_ns / (3 * layers) if layout.overlap_dp else 0.0
                times = calls * layers * layout.microbatches
                # The first gathering of a step and its last reduction have nothing to hide behind.
                group.exposed_ns += found.time_ns if layout.overlap_dp else 0.0
                exposed += times * group.add(found, times, hides) + (found.time_ns if layout.overlap_dp else 0.0)
            continue
        kinds = (("reduce_scatter", GRADIENT), ("allgather", WEIGHT)) if layout.zero else (("allreduce", GRADIENT),)
        for collective, width in kinds:
            found = exchanges.collective(collective, places, width * parameters)
            # Gradients hide behind the last backward pass, parameters behind the first forward pass.
            hides = backward_ns * (1 if collective != "allgather" else 0.5) if layout.overlap_dp else 0.0
            exposed += group.add(found, 1, hides, 1 / max(1.0, layers_of(model, layout)))
    return exposed


def _hops(model: Transformer, layout: ParallelLayout, exchanges: GroupExchanges, group: GroupTime) -> float:
    """Exposed messages between stages: those that fill and drain the pipeline; the others overlap."""
    if layout.pp == 1:
        return 0.0
    tokens = layout.sequence * layout.microbatch // layout.cp
    size = WEIGHT * tokens * model.hidden // (layout.tp if layout.sequence_parallel else 1)
    found = exchanges.messages([(rank, rank + layout.stage) for rank in range(layout.stage)], size)
    calls = 2 * layout.vpp * layout.microbatches
    group.busy_ns, group.exposed_ns = calls * found.time_ns, 2 * (layout.pp - 1) * found.time_ns
    group.exchanges.append(found)
    return group.exposed_ns


def _optimizer(model: Transformer, layout: ParallelLayout, chip: compute.ChipRates) -> float:
    """Adam reads and writes its state, reads gradients and writes parameters."""
    if layout.passes == "adapt":
        return 0.0
    own = share(model, layout)
    copies = (layout.dp * layout.cp, max(1, layout.stage // layout.ep)) if layout.zero else (1, 1)
    moved = (own.dense / copies[0] + own.experts / copies[1]) * (2 * OPTIMIZER + GRADIENT + WEIGHT)
    return moved / (chip.memory_bytes_per_s * compute.STREAMED) * NS_PER_S
