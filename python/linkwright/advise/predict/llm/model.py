"""A transformer: its parameters, and what one token costs to compute, to move and to remember.

    layer = attention + feed-forward                 h hidden, a heads of d, k key heads, f of the feed-forward
      attention     q = a d, keys and values 2 k d, output; latent attention compresses q and keys first
      feed-forward  gated: 3 h f, else 2 h f; of a mixture of experts: `topk` of `experts`, shared ones, a router

    operations of a token, forward   2 x parameters that it passes + 2 x span x heads x (key + value width)
    span                             half of the sequence (causal), or the window

Training does three times the forward operations (with respect to inputs and to weights, backward). The embedding is a
look-up: its parameters count, its operations do not.

Sources: Kaplan et al., *Scaling Laws for Neural Language Models*, 2020 (operations); Korthikanti et al., *Reducing
Activation Recomputation in Large Transformer Models*, 2022 (activations); the technical report of DeepSeek-V2 (latent
attention).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from linkwright.advise.predict import head_keys
from linkwright.base.toml import FLAG, TEXT, Key, Many, OneTable, Table, whole

_WIDTH, _COUNT = whole(1, 1 << 24), whole(1, 1 << 16)
MODEL = {
    "layers": Key(_COUNT, "layers", required=True),
    "hidden": Key(_WIDTH, "width of the residual stream", required=True),
    "heads": Key(_COUNT, "query heads", required=True),
    "kv_heads": Key(_COUNT, "heads of keys and values; default: `heads`"),
    "head_dim": Key(_WIDTH, "width of a query and of a key; default: hidden / heads"),
    "value_dim": Key(_WIDTH, "width of a value; default: `head_dim`"),
    "q_rank": Key(_WIDTH, "width of compressed queries (latent attention)"),
    "kv_rank": Key(_WIDTH, "width of compressed keys and values (latent attention)"),
    "rope_dim": Key(_WIDTH, "part of a key with positions, which latent attention does not compress"),
    "ffn": Key(_WIDTH, "inner width of a dense feed-forward layer", required=True),
    "gated": Key(FLAG, "whether the feed-forward layer has a gate (SwiGLU)", default=True),
    "vocabulary": Key(_WIDTH, "tokens of the vocabulary", required=True),
    "tied": Key(FLAG, "whether the output shares the matrix of the embedding", default=False),
    "positions": Key(whole(0, 1 << 24), "learned positions", default=0),
    "sequence": Key(_WIDTH, "tokens of a sequence, unless --sequence says otherwise", required=True),
    "context": Key(_WIDTH, "tokens that one request may hold when serving; default: `sequence`"),
    "window": Key(_WIDTH, "tokens that windowed layers attend to"),
    "windowed_layers": Key(whole(0, 1 << 16), "layers that attend to a window", default=0),
    "experts": Key(whole(0, 1 << 16), "experts of a layer; 0: dense", default=0),
    "topk": Key(_COUNT, "experts of a token", default=1),
    "shared_experts": Key(whole(0, 1 << 10), "experts that serve every token", default=0),
    "expert_ffn": Key(_WIDTH, "inner width of an expert; default: `ffn`"),
    "dense_layers": Key(whole(0, 1 << 16), "first layers without experts", default=0),
}
PROGRAM = {
    "app": Key(
        OneTable(head_keys("transformer", sources=Key(Many(TEXT, 0), "where the numbers are published"))),
        "the program",
        required=True,
    ),
    "model": Key(OneTable(MODEL), "the transformer", required=True),
}


@dataclass(frozen=True)
class Transformer:
    """A model; the fields are the keys of `[model]`."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    q_rank: int
    kv_rank: int
    rope_dim: int
    ffn: int
    gated: bool
    vocabulary: int
    tied: bool
    positions: int
    sequence: int
    context: int
    window: int
    windowed_layers: int
    experts: int
    topk: int
    shared_experts: int
    expert_ffn: int
    dense_layers: int

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def matrices(self) -> int:
        """Matrices of a feed-forward layer."""
        return 3 if self.gated else 2

    @property
    def query_width(self) -> int:
        """Width of all queries."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all keys and values together."""
        return self.kv_heads * (self.head_dim + self.value_dim)

    @property
    def attention(self) -> int:
        """Parameters of the matrices of attention of one layer."""
        output = self.heads * self.value_dim * self.hidden
        if not self.kv_rank:
            return self.hidden * (self.query_width + self.kv_width) + output
        queries = self.q_rank * (self.hidden + self.query_width) if self.q_rank else self.hidden * self.query_width
        keys = self.kv_heads * (self.head_dim - self.rope_dim + self.value_dim)
        return queries + self.hidden * (self.kv_rank + self.rope_dim) + self.kv_rank * keys + output

    @property
    def norms(self) -> int:
        """Parameters of the norms of a layer, and of its biases where it is not gated (GPT)."""
        biases = 4 * self.hidden + self.query_width + self.kv_width + self.ffn
        return 2 * self.hidden + (0 if self.gated else biases)

    @property
    def expert(self) -> int:
        """Parameters of one expert."""
        return self.matrices * self.hidden * self.expert_ffn

    @property
    def embedding(self) -> int:
        """Parameters of the embedding, with learned positions."""
        return (self.vocabulary + self.positions) * self.hidden

    @property
    def output(self) -> int:
        """Parameters of the output matrix that are not those of the embedding."""
        return 0 if self.tied else self.vocabulary * self.hidden

    def dense(self, kind: str) -> int:
        """Parameters of a layer of a kind, `dense` or `expert`, that no group of experts divides."""
        inner = self.hidden * (self.shared_experts * self.matrices * self.expert_ffn + self.experts)
        return self.attention + self.norms + (inner if kind == EXPERT else self.matrices * self.hidden * self.ffn)

    @property
    def parameters(self) -> int:
        """All parameters."""
        own = (self.layers - self.expert_layers) * self.dense(DENSE)
        mixed = self.expert_layers * (self.dense(EXPERT) + self.experts * self.expert)
        return self.embedding + self.output + self.hidden + own + mixed

    @property
    def active(self) -> int:
        """Parameters that a token uses, with the embedding."""
        return self.parameters - self.expert_layers * (self.experts - self.topk) * self.expert

    def span(self, sequence: int) -> float:
        """Tokens that a token attends to, on average over layers, in a causal sequence."""
        whole, windowed = sequence / 2, min(self.window or sequence, sequence / 2)
        return (whole * (self.layers - self.windowed_layers) + windowed * self.windowed_layers) / self.layers

    def reach(self, context: int) -> float:
        """Tokens that the last token of a context attends to, on average over layers."""
        near = min(self.window or context, context) * self.windowed_layers
        return (context * (self.layers - self.windowed_layers) + near) / self.layers

    @property
    def cached_width(self) -> int:
        """Numbers of a token that a layer keeps for later tokens: keys and values, or what latent attention keeps."""
        return self.kv_rank + self.rope_dim if self.kv_rank else self.kv_width

    def attention_flops(self, sequence: int) -> float:
        """Operations of a token between queries, keys and values in one layer, forward."""
        return 2 * self.span(sequence) * self.heads * (self.head_dim + self.value_dim)

    def layer_flops(self, kind: str) -> tuple[float, float]:
        """Operations of a token in the products of one layer, forward: (those that --tp divides, those of experts)."""
        dense = self.dense(kind) - self.norms
        return 2.0 * dense, 2.0 * self.topk * self.expert if kind == EXPERT else 0.0

    @property
    def output_flops(self) -> float:
        """Operations of a token in the output, forward."""
        return 2.0 * self.vocabulary * self.hidden

    def step_flops(self, sequence: int) -> float:
        """Operations of a token in a step: three times forward, nothing computed twice."""
        products = 2.0 * (self.active - self.embedding + (self.vocabulary * self.hidden if self.tied else 0))
        return 3 * (products + self.layers * self.attention_flops(sequence))


DENSE, EXPERT = "dense", "expert"


def read(document: Table, head: Table) -> Transformer:
    """The transformer in `document`, whose table `[app]` is `head`."""
    model = document["model"]
    given = {one.name: model[one.name] for one in fields(Transformer) if one.name != "name"}
    hidden, heads = model["hidden"], model["heads"]
    if given["head_dim"] is None and hidden % heads:
        raise model.error(f"hidden {hidden} is no multiple of heads {heads}; state `head_dim`")
    given["kv_heads"] = given["kv_heads"] or heads
    given["head_dim"] = given["head_dim"] or hidden // heads
    given["value_dim"] = given["value_dim"] or given["head_dim"]
    given["expert_ffn"] = given["expert_ffn"] or given["ffn"]
    given["context"] = max(given["context"] or 0, given["sequence"])
    made = Transformer(head["name"], **{key: value or 0 for key, value in given.items()})
    if heads % made.kv_heads:
        raise model.error(f"heads {heads} is not a multiple of kv_heads {made.kv_heads}; correct one of them")
    if made.experts and made.topk > made.experts:
        raise model.error(f"topk {made.topk} of {made.experts} experts; give at most {made.experts}")
    if not made.experts and (made.topk > 1 or model["expert_ffn"] or made.shared_experts or made.dense_layers):
        raise model.error("states `topk`, `expert_ffn`, `shared_experts` or `dense_layers` without `experts`; add it")
    for key, other in (
        ("q_rank", "kv_rank"),
        ("rope_dim", "kv_rank"),
        ("window", "windowed_layers"),
        ("windowed_layers", "window"),
    ):
        if model[key] and not model[other]:
            raise model.error(f"states `{key}` without `{other}`; add it, or omit `{key}`")
    if made.rope_dim > made.head_dim:
        raise model.error(f"rope_dim {made.rope_dim} is part of head_dim {made.head_dim}; correct one of them")
    if max(made.dense_layers, made.windowed_layers) > made.layers:
        raise model.error(f"dense_layers and windowed_layers are among the {made.layers} layers; correct them")
    return made
