"""Serving: what a GPU holds, the time to the first token, and the time of each token after it.

    first token    one pass over `prompt` tokens of one sequence a copy         arithmetic decides
    output token   one pass over a token of every sequence                      memory and communication decide

    pass = layers x (roofline of products + roofline of attention + collectives + starts of kernels) + output
    roofline(operations, bytes) = max(operations / (peak x share), bytes / (memory's rate x share))

Weights are read once a pass, keys and values of the whole context once a token. Of `E` experts a GPU reads those that
its tokens choose: E (1 - (1 - topk / E)^tokens), if every expert is as likely.

Collectives, for one layer: two all-reduces of a token's vector over tp (one with --ep), and a dispatch and a combine
over ep. All groups are simulated at once by the library's choice; kernels of inference engines take a multiple of that
(`errors.toml`). Shares of the peak and of the memory's rate are assumed, so every time is a range: all of them at their
better ends, and all at their worse. With `pp` stages a token passes all of them, and as many parts of the batch are
under way; a copy with fewer sequences than stages leaves the others idle.

Requests in a steady state, without queues, each of `prompt` tokens and `outputs` = context - prompt after them:

    on the same GPUs      dp / (first token / pp + outputs x token x dp / batch)
    on GPUs of their own  the lower one of  dp x min(pp / prompt, 1 / keys and values)  and  batch / (outputs x token)

Sources: Pope et al., *Efficiently Scaling Transformer Inference*, 2022; DeepSeek-AI, *DeepSeek-V2*, 2024 (attention on
compressed keys); Williams et al., *Roofline*, 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from linkwright.advise.predict.llm import compute, errors
from linkwright.advise.predict.llm.compute import ChipRates
from linkwright.advise.predict.llm.layout import ParallelLayout
from linkwright.advise.predict.llm.memory import RUNTIME_BYTES, WEIGHT
from linkwright.advise.predict.llm.model import DENSE, EXPERT, Transformer
from linkwright.advise.predict.llm.step import GroupTime
from linkwright.advise.predict.llm.together import GroupExchanges
from linkwright.base.errors import UsageError
from linkwright.base.units import KILO, MEGA, NS_PER_S, NS_PER_US, S_PER_H

# Bytes of a number, with the scales of its block.
WIDTH = {"bf16": 2.0, "half": 2.0, "fp8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 0.5 + 1 / 16}
CACHES = ("bf16", "fp8")
# Kernels of a layer besides its collectives, and tokens of a prompt that are in memory at once: assumptions.
KERNELS = {DENSE: 9, EXPERT: 14}
CHUNK = 8192
MOST_SEQUENCES = 1 << 20  # of a batch, as the command line takes
PARTS = ("arithmetic", "memory", "communication", "kernel starts")
TRANSFER = "keys and values"  # sent from the nodes that compute prompts
NOT_MODELLED = (
    "arithmetic and starts of kernels are assumed shares, not simulated", "imbalance of experts",
    "queues, scheduling and batches of requests of different lengths", "sampling, tokenizers and the network to users",
    "speculative tokens and prompts in the cache",
)  # fmt: skip


@dataclass(frozen=True)
class ServingLoad:
    """What is asked of a model: `batch` sequences on all GPUs, each of `context` tokens, after prompts of `prompt`."""

    batch: int = 0  # 0: one for each copy and stage
    context: int = 0  # 0: the sequence of the model
    prompt: int = 0  # 0: as long as the context
    cache: str = "bf16"

    def checked(self, model: Transformer, layout: ParallelLayout) -> ServingLoad:
        """Return the load with its defaults, or raise one message with the nearest that works."""
        context = self.context or min(model.sequence, model.context)
        if context > model.context:
            raise UsageError(
                f"--context {context:,}: {model.name} is stated for at most {model.context:,} tokens; use that"
            )
        prompt = self.prompt or context
        if prompt > context:
            raise UsageError(f"--prompt {prompt:,} is longer than --context {context:,}; use at most {context:,}")
        parts = layout.dp * layout.pp
        batch = self.batch or parts
        if batch < parts and batch % layout.dp:
            near = max(1, round(batch / layout.dp)) * layout.dp
            raise UsageError(f"--batch {batch} is not a multiple of dp {layout.dp}, the copies; use {near}")
        if batch > parts and batch % parts:
            near = round(batch / parts) * parts
            raise UsageError(
                f"--batch {batch} is not a multiple of dp {layout.dp} x pp {layout.pp} = {parts}; use {near}"
            )
        return replace(self, batch=batch, context=context, prompt=prompt)


@dataclass(frozen=True)
class ServingMemory:
    """Bytes on one GPU by what holds them."""

    weights: int
    cache: int
    buffers: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.cache + self.buffers


@dataclass(frozen=True)
class PassTime:
    """One pass through all layers, in ns by what takes the time; `low_ns` and `high_ns` are of the sum."""

    parts: dict[str, float]
    low_ns: float
    high_ns: float
    groups: list[GroupTime]

    @property
    def time_ns(self) -> float:
        """All of it."""
        return sum(self.parts.values())

    @property
    def by_rate(self) -> dict[str, float]:
        """Times that give the usual, the low and the high rate."""
        return {"usual": self.time_ns, "low": self.high_ns, "high": self.low_ns}

    @property
    def largest(self) -> str:
        """What takes most."""
        return max(self.parts, key=self.parts.__getitem__)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "time_ns": self.time_ns,
            "low_ns": self.low_ns,
            "high_ns": self.high_ns,
            "parts_ns": self.parts,
            "groups": [group.as_dict() for group in self.groups],
        }


@dataclass(frozen=True)
class RequestRate:
    """Requests that all GPUs answer in a steady state without queues, by the usual, the low and the high rate a second.

    `prompts` and `output` are the rates that the two could have alone; they add up or, apart, the lower one binds.
    """

    outputs: int  # tokens of a request after its prompt
    gpus: int
    apart: bool  # prompts have GPUs of their own
    prompts: dict[str, float]
    output: dict[str, float]

    @property
    def per_s(self) -> dict[str, float]:
        """Requests per second."""
        rates = {rate: (alone, self.output[rate]) for rate, alone in self.prompts.items()}
        if self.apart:
            return {rate: min(both) for rate, both in rates.items()}
        return {rate: 1 / sum(1 / one for one in both) for rate, both in rates.items()}

    @property
    def prompt_share(self) -> float:
        """Part of their time that the GPUs that compute prompts compute them."""
        return self.per_s["usual"] / self.prompts["usual"]

    @property
    def binds(self) -> str:
        """What takes more of a request's time."""
        return "prompts" if self.prompts["usual"] < self.output["usual"] else "output"

    @property
    def tokens_per_s_per_gpu(self) -> dict[str, float]:
        """Output tokens per second and GPU, prompts and their GPUs counted."""
        return {rate: per_s * self.outputs / self.gpus for rate, per_s in self.per_s.items()}

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "per_s": self.per_s, "outputs": self.outputs, "binds": self.binds, "prompt_share": self.prompt_share,
            "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu,
        }  # fmt: skip


@dataclass(frozen=True)
class Prefill:
    """GPUs that only compute prompts: the first `ranks` of all."""

    ranks: int
    exchanges: GroupExchanges  # among them
    all: GroupExchanges  # and with those that serve


@dataclass(frozen=True)
class ServingForecast:
    """A model served with one layout on one machine; without times if it does not fit."""

    model: Transformer
    machine: str
    layout: ParallelLayout
    load: ServingLoad
    chip: ChipRates
    memory: ServingMemory
    capacity_bytes: int | None
    largest_batch: int | None  # that fits; None if the machine states no capacity
    first: PassTime | None = None
    token: PassTime | None = None
    prefill_gpus: int = 0  # that only compute prompts, besides those of the layout
    requests: RequestRate | None = None  # None if no tokens follow the prompt

    @property
    def fits(self) -> bool | None:
        """None if the machine states no capacity."""
        return None if self.capacity_bytes is None else self.memory.total <= self.capacity_bytes

    @property
    def not_modelled(self) -> list[str]:
        """What the times leave out."""
        return list(NOT_MODELLED)

    @property
    def idle_stages(self) -> int:
        """Stages of a copy that have no sequence to work on, at any time."""
        return max(0, self.layout.pp - self.load.batch // self.layout.dp)

    @property
    def tokens_per_s_per_gpu(self) -> dict[str, float]:
        """Output tokens per second and GPU by the usual, the low and the high rate; with prompts if tokens follow."""
        if self.token is None:
            return {}
        if self.requests:
            return self.requests.tokens_per_s_per_gpu
        gpus = self.layout.ranks + self.prefill_gpus
        return {rate: self.load.batch / gpus / ns * NS_PER_S for rate, ns in self.token.by_rate.items()}

    def per_million(self, watts: float | None, price: float | None) -> dict[str, float]:
        """Return energy and cost of a million output tokens, for GPUs of so many watts at such a price an hour.

        GPUs that compute prompts count as well.
        """
        if self.token is None:
            return {}
        hours = MEGA / self.tokens_per_s_per_gpu["usual"] / S_PER_H
        energy = {"energy_kwh": hours * watts / KILO} if watts else {}
        return energy | ({"cost": hours * price} if price else {})

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "app": self.model.name,
            "kind": "transformer",
            "serving": vars(self.load),
            "machine": self.machine,
            "gpus": self.layout.ranks,
            "prefill_gpus": self.prefill_gpus,
            "layout": {name: getattr(self.layout, name) for name in ("tp", "pp", "dp", "ep")},
            "fits": self.fits,
            "memory_bytes": {**vars(self.memory), "total": self.memory.total},
            "memory_capacity_bytes": self.capacity_bytes,
            "largest_batch": self.largest_batch,
            "idle_stages": self.idle_stages,
            "first_token": self.first.as_dict() if self.first else None,
            "output_token": self.token.as_dict() if self.token else None,
            "requests": self.requests.as_dict() if self.requests else None,
            "tokens_per_s_per_gpu": self.tokens_per_s_per_gpu or None,
            "precision": self.chip.precision,
            "peak_flops_per_s": self.chip.peak_flops_per_s,
            "reached": self.chip.reached,
            "calibration": self.chip.basis,
            "not_modelled": self.not_modelled,
        }  # fmt: skip


def held(model: Transformer, layout: ParallelLayout, load: ServingLoad, precision: str) -> ServingMemory:
    """Return what one GPU of the fullest stage holds, with its share of the batch."""
    layers = -(-model.layers // layout.pp)
    mixed = layers * model.expert_layers / model.layers
    dense = (layers - mixed) * model.dense(DENSE) + mixed * model.dense(EXPERT)
    experts = mixed * model.experts * model.expert / (layout.ep if layout.ep > 1 else layout.tp)
    ends = model.embedding + model.output if layout.pp == 1 else max(model.embedding, model.output)
    weights = (dense / layout.tp + experts) * WIDTH[precision] + ends / layout.tp * WEIGHT
    inner = max(model.ffn, model.topk * model.expert_ffn) * model.matrices / layout.tp
    sequences = load.batch // layout.dp
    # A chunk of a prompt or a token of each sequence under way is in memory at once, and the logits of the latter.
    rows = -(-sequences // layout.pp)
    chunk = max(min(CHUNK, load.prompt), rows) * WEIGHT * (4 * model.hidden + inner)
    logits = rows * model.vocabulary * WEIGHT
    cached = _cached(model, layout, load.cache, load.context)
    return ServingMemory(round(weights), sequences * cached * layers, round(RUNTIME_BYTES + chunk + logits))


def largest_batch(model: Transformer, layout: ParallelLayout, load: ServingLoad, precision: str, capacity: int) -> int:
    """Return the largest batch that fits, a multiple of copies x stages, or of copies below that; 0 if none does."""
    parts = layout.dp * layout.pp

    def fits(each: int, parts: int = parts) -> bool:
        return held(model, layout, replace(load, batch=each * parts), precision).total <= capacity

    least, most = 0, MOST_SEQUENCES // parts
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    if least:
        return least * parts
    # Some stages stay idle: sequences of each copy, from the most.
    return next((each * layout.dp for each in range(layout.pp - 1, 0, -1) if fits(each, layout.dp)), 0)


def _cached(model: Transformer, layout: ParallelLayout, cache: str, context: int) -> int:
    """Bytes that a layer keeps of a sequence on one GPU; heads of keys are copied where tp is more than there are."""
    shared = 1 if model.kv_rank else min(layout.tp, model.kv_heads)
    return round(model.reach(context) * model.cached_width / shared * WIDTH[cache])


def forecast_serving(
    model: Transformer,
    layout: ParallelLayout,
    load: ServingLoad,
    chip: ChipRates,
    exchanges: GroupExchanges,
    *,
    machine: str,
    ranks: int,
    capacity: int | None,
    prefill: Prefill | None = None,
) -> ServingForecast:
    """Return the forecast of a model that serves requests.

    Args:
        model: what is served.
        layout: its tp, pp and ep; copies are what the ranks leave.
        load: sequences and their lengths.
        chip: rates of a GPU.
        exchanges: of the GPUs that serve.
        machine: its name.
        ranks: all GPUs that serve.
        capacity: bytes of a GPU; None lets everything fit.
        prefill: other GPUs that compute the prompts.

    Raises:
        UsageError: the layout does not divide the model, the load does not suit it, or no rate of memory is known.
    """
    if layout.ep > 1 and not model.experts:
        raise UsageError(f"--ep {layout.ep}: {model.name} has no experts; omit --ep")
    if math.isinf(chip.memory_bytes_per_s):
        raise UsageError(
            f"{machine}: its file states no rate of the memory, which decides serving; add `path.copy.combine_rate`, a "
            "third of it"
        )
    found = replace(layout, batch=0, zero=0).checked(model, ranks)
    asked = load.checked(model, found)
    memory = held(model, found, asked, chip.precision)
    parts = found.dp * found.pp
    largest = None if capacity is None else largest_batch(model, found, asked, chip.precision, capacity)
    made = ServingForecast(
        model, machine, found, asked, chip, memory, capacity, largest, prefill_gpus=prefill.ranks if prefill else 0
    )
    if made.fits is False:
        return made
    serving = _Pass(model, found, asked, chip, exchanges)
    token = serving.time(1, max(1, asked.batch // parts), asked.context)
    if prefill is None:
        first = serving.time(asked.prompt, 1, asked.prompt)
        return replace(made, first=first, token=token, requests=_requests(made, found, first, 0.0, token))
    apart = replace(layout, batch=0).checked(model, prefill.ranks)
    prompt = _Pass(model, apart, asked, chip, prefill.exchanges).time(asked.prompt, 1, asked.prompt)
    first = _sent(model, apart, asked, prefill, prompt, ranks)
    # As many pairs send at once as GPUs receive; more senders take turns.
    sent_ns = first.parts[TRANSFER] * -(-prefill.ranks // ranks)
    return replace(made, first=first, token=token, requests=_requests(made, apart, prompt, sent_ns, token))


def _requests(
    made: ServingForecast, copies: ParallelLayout, prompt: PassTime, sent_ns: float, token: PassTime
) -> RequestRate | None:
    """How many requests a second: `copies` of the model compute a prompt in each stage at once."""
    outputs = made.load.context - made.load.prompt
    if not outputs:
        return None
    return RequestRate(
        outputs, made.layout.ranks + made.prefill_gpus, bool(made.prefill_gpus),
        {rate: copies.dp / max(ns / copies.pp, sent_ns) * NS_PER_S for rate, ns in prompt.by_rate.items()},
        {rate: made.load.batch / (outputs * ns) * NS_PER_S for rate, ns in token.by_rate.items()},
    )  # fmt: skip


def _sent(
    model: Transformer, layout: ParallelLayout, load: ServingLoad, prefill: Prefill, first: PassTime, ranks: int
) -> PassTime:
    """The first token with keys and values on their way: at best layer by layer behind the prompt, else after it."""
    layers = -(-model.layers // layout.pp)
    size = _cached(model, layout, load.cache, load.prompt) * layers
    pairs = [(rank, prefill.ranks + rank) for rank in range(min(prefill.ranks, ranks))]
    found = prefill.all.messages(pairs, size)
    group = GroupTime("kv", 2)
    group.add(found, 1)
    return PassTime(
        first.parts | {TRANSFER: found.time_ns}, first.low_ns + found.time_ns / layers, first.high_ns + found.time_ns,
        [*first.groups, group],
    )  # fmt: skip


class _Pass:
    """Passes of one model on one layout; what was simulated serves all ends."""

    def __init__(
        self, model: Transformer, layout: ParallelLayout, load: ServingLoad, chip: ChipRates, exchanges: GroupExchanges
    ):
        self._model, self._layout, self._load, self._chip, self._exchanges = model, layout, load, chip, exchanges

    def time(self, tokens: int, sequences: int, context: int) -> PassTime:
        """Return the time of a pass over the last `tokens` of a context, of each of so many sequences of a copy."""
        usual, low, high = (self._at(tokens, sequences, context, time) for time in ("usual", "low", "high"))
        groups = [group for group in usual[1].values() if group.exchanges]
        return PassTime(usual[0], sum(low[0].values()), sum(high[0].values()), groups)

    def _at(
        self, tokens: int, sequences: int, context: int, time: str
    ) -> tuple[dict[str, float], dict[str, GroupTime]]:
        """What takes the usual, the low or the high time, with all that is uncertain at that end."""
        model, layout, rows = self._model, self._layout, tokens * sequences
        share = {"usual": "usual", "low": "high", "high": "low"}[time]  # a higher share is a shorter time
        known = self._chip
        reached = {"low": known.ends[0], "usual": known.reached, "high": known.ends[1]}[share]
        if not known.assumed and known.basis != compute.GIVEN:
            reached = min(1.0, reached * getattr(errors.spread("products"), share))
        chip = compute.at(known, reached)
        rate = chip.memory_bytes_per_s * getattr(errors.spread("memory"), share)
        start_ns = getattr(errors.spread("start_us"), time) * NS_PER_US
        spent = dict.fromkeys(PARTS, 0.0)
        groups = {kind: GroupTime(kind, getattr(layout, kind)) for kind in ("tp", "ep", "pp")}

        def roofline(times: float, arithmetic_ns: float, moved: float) -> None:
            memory_ns = moved / rate * NS_PER_S
            spent["memory" if memory_ns >= arithmetic_ns else "arithmetic"] += times * max(memory_ns, arithmetic_ns)

        def exchange(times: float, group: str, kind: str, size: float) -> None:
            if times and getattr(layout, group) > 1:
                found = self._exchanges.collective(kind, layout.groups(group), round(size))
                kernel = getattr(self._kernel(kind, layout.groups(group)[0], round(size)), time)
                found = replace(found, time_ns=found.time_ns * kernel)
                spent["communication"] += times * groups[group].add(found, times)

        wide, tp = WIDTH[chip.precision], layout.tp
        for kind, layers in ((DENSE, model.layers - model.expert_layers), (EXPERT, model.expert_layers)):
            if not layers:
                continue
            dense, routed = model.layer_flops(kind)
            roofline(layers, compute.products_ns(chip, rows * dense / tp), dense / 2 * wide / tp)
            if routed:
                moved = self._experts_read(rows) * model.expert * wide
                roofline(layers, compute.products_ns(chip, rows * routed / tp), moved)
            attention = rows * self._attention_flops(tokens, context) / tp
            roofline(
                layers,
                attention / (chip.wide_flops_per_s * reached) * NS_PER_S,
                sequences * _cached(model, layout, self._load.cache, context),
            )
            inside, outside = compute.moved_bytes(model, chip.precision, kind)
            roofline(layers, 0.0, rows * (inside / tp + outside))
            spent["kernel starts"] += layers * KERNELS[kind] * start_ns
            apart = kind == EXPERT and layout.ep > 1
            exchange(layers * (1 if apart else 2), "tp", "allreduce", rows * model.hidden * WEIGHT)
            if apart:
                sent = rows * model.topk * model.hidden / tp
                exchange(layers, "ep", "alltoall", sent * (1 if wide < WEIGHT else WEIGHT))
                exchange(layers, "ep", "alltoall", sent * WEIGHT)
        output = sequences * model.output_flops / tp / (chip.wide_flops_per_s * reached) * NS_PER_S
        roofline(1, output, model.vocabulary * model.hidden * WEIGHT / tp)
        exchange(1, "tp", "allgather", sequences * model.vocabulary * WEIGHT)
        if layout.pp > 1:
            pairs = [(rank, rank + layout.stage) for rank in range(layout.stage)]
            found = self._exchanges.messages(pairs, rows * model.hidden * WEIGHT // tp)
            spent["communication"] += (layout.pp - 1) * groups["pp"].add(found, layout.pp - 1)
        return spent, groups

    def _attention_flops(self, tokens: int, context: int) -> float:
        """Operations of a token in attention; a single one attends to the whole context, on compressed keys if kept."""
        model = self._model
        if tokens > 1:
            return model.attention_flops(tokens)
        width = 2 * model.kv_rank + model.rope_dim if model.kv_rank else model.head_dim + model.value_dim
        return 2 * model.reach(context) * model.heads * width

    def _experts_read(self, rows: int) -> float:
        """Experts whose weights a GPU reads, in whole experts; --tp splits each where --ep is not given."""
        model, layout = self._model, self._layout
        tokens = rows * layout.ep / layout.tp if layout.ep > 1 else rows
        chosen = 1 - (1 - model.topk / model.experts) ** max(1.0, tokens)
        return chosen * model.experts / (layout.ep if layout.ep > 1 else layout.tp)

    def _kernel(self, kind: str, group: Sequence[int], size: int) -> errors.Spread:
        """How the kernel of an engine compares with the library's choice."""
        nodes = self._exchanges.nodes(group)
        if kind == "alltoall":
            return errors.spread("experts", "one_node" if nodes == 1 else "several_nodes")
        # Across nodes, and for logits, engines call the library.
        if nodes > 1 or kind != "allreduce":
            return errors.of_library(nodes, size)
        return errors.of_allreduce(size, self._exchanges.has_engines(group))
