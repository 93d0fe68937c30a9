"""A configuration file of UCC that names algorithms of its layer `tl/ucp`.

    UCC_CONFIG_FILE=FILE ...

    UCC_TL_UCP_TUNE = allreduce:0-8191:[16]:@knomial#allreduce:8192-134217728:[16]:@ring

A token holds a collective, a range of sizes, a team size and an algorithm; tokens follow each other after `#`. The size
is the whole array, as ours. Algorithms called `knomial` have a radix, which the file sets to 2, so that they are the
ones whose times are known. No score is set, so the choice among layers (`tl/cuda`, `tl/nccl`, ...) stays as it is.

Source: openucx/ucc, docs/user_guide.md (syntax), src/components/tl/ucp/*/ (names), tl_ucp.c (radices),
src/coll_score/ucc_coll_score.c (parser).
"""

from __future__ import annotations

from collections.abc import Sequence

from .rules import Table
from .runtime import About, Runtime, Written

NAMES = {"broadcast": "bcast"}
ALGORITHMS = {
    "allgather": {
        "recursive_doubling": "knomial", "ring": "ring", "neighbor_exchange": "neighbor", "bruck": "bruck",
        "linear": "linear",
    },
    "allreduce": {
        "recursive_doubling_latency": "knomial", "recursive_doubling_bandwidth": "sra_knomial",
        "double_binary_tree": "dbt", "ring": "ring",
    },
    "alltoall": {"pairwise": "pairwise", "bruck": "bruck"},
    "broadcast": {"binomial": "knomial"},
    "reduce": {"binomial": "knomial", "reduce_scatter_gather": "srg"},
    "reduce_scatter": {"ring": "ring", "recursive_halving": "knomial"},
}  # fmt: skip
# (collective, algorithm) -> the variable of its radix.
RADICES = {
    ("allgather", "knomial"): "ALLGATHER_KN_RADIX",
    ("allreduce", "knomial"): "ALLREDUCE_KN_RADIX",
    ("allreduce", "sra_knomial"): "ALLREDUCE_SRA_KN_RADIX",
    ("broadcast", "knomial"): "BCAST_KN_RADIX",
    ("reduce", "knomial"): "REDUCE_KN_RADIX",
    ("reduce", "srg"): "REDUCE_SRG_KN_RADIX",
    ("reduce_scatter", "knomial"): "REDUCE_SCATTER_KN_RADIX",
}


def render(tables: Sequence[Table], about: About) -> Written:
    """The file, with the reasons as comments above the one line that counts."""
    lines, tokens, radices = [f"# from {about.title}"], [], []
    for table in tables:
        for place, rule in enumerate(table.rules):
            name = ALGORITHMS[table.collective][rule.algorithm]
            sizes = f"{table.since(place)}-{table.until(place)}"
            tokens.append(f"{NAMES.get(table.collective, table.collective)}:{sizes}:[{table.ranks}]:@{name}")
            lines.append(f"# {tokens[-1]}: {rule.algorithm}, {rule.why}")
            radices.append(RADICES.get((table.collective, name)))
    lines.append(f"UCC_TL_UCP_TUNE = {'#'.join(tokens)}")
    lines += [f"UCC_TL_UCP_{radix} = 2" for radix in dict.fromkeys(radices) if radix]
    return Written("\n".join(lines) + "\n")


UCC = Runtime(
    "ucc",
    "UCC: a configuration file with the algorithms of tl/ucp",
    "UCC_TL_UCP_TUNE with a token for each range of sizes, and a radix of 2 where an algorithm has one. The choice "
    "among layers is unchanged.",
    "openucx/ucc, docs/user_guide.md",
    ALGORITHMS,
    render,
)
