"""How ranks share a model: degrees of parallelism, groups of ranks, and refusals of what does not divide.

    rank = tp + TP (cp + CP (dp + DP pp))      tp fastest, so that its groups lie inside nodes; pp slowest

    tp     splits every matrix; with `sequence_parallel` also what lies between them
    cp     splits sequences
    dp     copies of the model, each with its share of the batch; with ZeRO or FSDP also shares of its state
    ep     experts: groups of consecutive ranks of a stage, across tp, cp and dp
    pp     stages, one after the other; with `vpp` each holds several pieces of the model

This is the order `tp-cp-ep-dp-pp` of Megatron-LM, whose experts are not split by --tp.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from linkwright.advise.predict.llm.model import Transformer
from linkwright.base.errors import UsageError


@dataclass(frozen=True)
class ParallelLayout:
    """How to train; `dp` 0 takes the ranks that are left.

    Example:
        >>> ParallelLayout(tp=8, pp=4).on(64).dp
        2
    """

    tp: int = 1
    pp: int = 1
    vpp: int = 1
    dp: int = 0
    ep: int = 1
    cp: int = 1
    zero: int = 1  # what data-parallel ranks share: 1 optimizer, 2 gradients too, 3 parameters too
    microbatch: int = 1
    batch: int = 0  # sequences of a step; 0: as many as fill the pipeline four times
    sequence: int = 0
    precision: str = "bf16"
    recompute: str = "none"
    sequence_parallel: bool = True
    overlap_dp: bool = True
    overlap_tp: bool = False
    overlap_ep: bool = False
    passes: str = "train"  # or `adapt`: frozen weights, as LoRA

    def on(self, ranks: int) -> ParallelLayout:
        """The layout with its number of copies on so many ranks."""
        one = self.tp * self.cp * self.pp
        if ranks % one or (self.dp and self.dp * one != ranks):
            near = max(1, ranks // one) * one
            cure = f"omit --dp, which is then {ranks // one}" if not ranks % one else f"use {near} GPUs"
            dp = f" x dp {self.dp}" if self.dp else ""
            raise UsageError(
                f"tp {self.tp} x cp {self.cp} x pp {self.pp}{dp} is {one * max(1, self.dp)} ranks or a multiple, and "
                f"there are {ranks}; {cure}"
            )
        return replace(self, dp=ranks // one)

    @property
    def stage(self) -> int:
        """Ranks of a stage."""
        return self.tp * self.cp * self.dp

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.stage * self.pp

    @property
    def microbatches(self) -> int:
        """Microbatches of a step on one copy."""
        return self.batch // (self.dp * self.microbatch)

    def words(self) -> str:
        """`tp 8, pp 4, dp 2`: the degrees above one, and what is shared or computed again."""
        names = ("tp", "cp", "pp", "vpp", "ep", "dp")
        found = [f"{name} {getattr(self, name)}" for name in names if getattr(self, name) > 1]
        found += [f"ZeRO {self.zero}"] if self.dp * self.cp > 1 and self.zero else []
        return ", ".join([*found, *(["recompute"] if self.recompute == "full" else [])]) or "one GPU"

    def groups(self, kind: str, stage: int = 0) -> list[tuple[int, ...]]:
        """The groups of a kind in a stage, each as its ranks: tp, cp, dp (with cp), ep, edp (copies of experts)."""
        size, first = self.stage, stage * self.stage
        stride, count = {
            "tp": (1, self.tp),
            "cp": (self.tp, self.cp),
            "dp": (self.tp, self.cp * self.dp),
            "ep": (1, self.ep),
            "edp": (self.ep, size // self.ep),
        }[kind]
        starts = (rank for rank in range(size) if rank // stride % count == 0)
        return [tuple(first + start + stride * place for place in range(count)) for start in starts]

    def checked(self, model: Transformer, ranks: int) -> ParallelLayout:
        """The layout on so many ranks, or one message that says what does not divide and the nearest that does."""
        for name, value, what, whole in (
            ("tp", self.tp, "heads", model.heads),
            ("tp", self.tp, "feed-forward width", model.ffn),
            ("cp", 2 * self.cp if self.cp > 1 else 1, "tokens of a sequence", self.sequence or model.sequence),
            ("ep", self.ep, "experts", model.experts or 1),
        ):
            if whole % value:
                cure = _nearest(value, whole)
                raise UsageError(f"--{name} {self.__dict__[name]} does not divide the {whole:,} {what}; use {cure}")
        found = self.on(ranks)
        if found.stage % self.ep:
            raise UsageError(
                f"--ep {self.ep} does not divide the {found.stage} ranks of a stage (tp x cp x dp); use "
                f"{_nearest(self.ep, found.stage)}"
            )
        if self.pp * self.vpp > model.layers + 2:  # embedding and output may be pieces of their own
            raise UsageError(
                f"pp {self.pp} x vpp {self.vpp} is more than the {model.layers} layers of {model.name}; use --vpp "
                f"{max(1, model.layers // self.pp)} or fewer stages"
            )
        if self.vpp > 1 and self.pp == 1:
            raise UsageError(f"--vpp {self.vpp} without --pp; a single stage has no pieces, omit --vpp")
        share = found.dp * self.microbatch
        found = replace(found, batch=self.batch or share * 4 * self.pp, sequence=self.sequence or model.sequence)
        if found.batch % share:
            near = max(1, round(found.batch / share)) * share
            raise UsageError(
                f"--batch {found.batch} is not a multiple of dp {found.dp} x microbatch {self.microbatch} = {share}; "
                f"use {near}"
            )
        if self.vpp > 1 and found.microbatches % self.pp:
            near = max(1, round(found.microbatches / self.pp)) * self.pp * share
            raise UsageError(
                f"--vpp {self.vpp} needs microbatches ({found.microbatches}) in multiples of pp {self.pp}; use --batch "
                f"{near}"
            )
        return found


def _nearest(value: int, whole: int) -> int:
    """The divisor of `whole` nearest to `value`."""
    divisors = [one for one in range(1, min(whole, 4 * value) + 1) if whole % one == 0]
    return min(divisors, key=lambda one: (abs(one - value), one))
