"""What the study aims at, each aim judged on the healthy cells that no number was fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright_evidence.outcome import Cell, Claim, numbered

from . import numbers
from .cells import pooled

MOST_GENERATION, MOST_NETWORK = 6, 3
GENERATIONS, NETWORKS = ("hopper", "blackwell", "ampere", "pcie"), ("infiniband",)
TOKENS, MIB = 1024, 1 << 20
ORDER = 95.0


def _is(kind: str, **more: object) -> Callable[[Cell], bool]:
    return lambda cell: (
        str(cell.keys["kind"]).startswith(kind) and all(cell.keys.get(name) == value for name, value in more.items())
    )


def _large_normal(cell: Cell) -> bool:
    return _is("deepep_ht")(cell) and int(str(cell.keys["tokens"])) >= TOKENS


def _nccl(cell: Cell) -> bool:
    return _is("collective", backend="nccl")(cell) and int(str(cell.keys["size_bytes"])) >= MIB


# What, which cells, most of the median and of the 90th percentile.
AIMS: tuple[tuple[str, Callable[[Cell], bool], float, float], ...] = (
    ("all-reduce of frameworks in a graph", _is("framework_allreduce", mode="graph"), 0.08, 0.25),
    ("DeepEP, low latency", _is("deepep_ll"), 0.08, 0.20),
    ("DeepEP, normal mode from 1,024 tokens on", _large_normal, 0.12, 0.25),
    ("exchanges of TensorRT-LLM's mixtures of experts", _is("moe_alltoall"), 0.12, 0.30),
    ("NCCL on one node from 1 MiB on", _nccl, 0.10, 0.25),
)


def check(cells: Sequence[Cell], orders: Sequence[dict]) -> list[Claim]:
    """All claims that the cells allow to judge, in order."""
    found: list[tuple[str, bool, str]] = []
    for what, keep, median, p90 in AIMS:
        score = pooled([cell for cell in cells if cell.role == "predicted" and keep(cell)])
        if score is not None:
            evidence = f"median {score.median:.1%}, 90th percentile {score.p90:.1%} of {len(score.errors)} cells"
            statement = f"{what}: median error at most {median:.0%}, nine in ten within {p90:.0%}"
            found.append((statement, score.median <= median and score.p90 <= p90, evidence))
    for what in dict.fromkeys(str(row["comparison"]) for row in orders):
        its = [row for row in orders if row["comparison"] == what]
        pairs = sum(row["pairs"] for row in its)
        right = sum(row["pairs"] * row["right_percent"] for row in its) / pairs
        statement = f"the faster of two backends is right in {ORDER:g} % of pairs that differ by a tenth: {what}"
        found.append((statement, right >= ORDER, f"{right:.1f} % of {pairs} pairs"))
    found.append(_few(GENERATIONS, MOST_GENERATION, "a generation of GPUs"))
    found.append(_few(NETWORKS, MOST_NETWORK, "a network"))
    own = [row for row in numbers.rows() if row["machine"] not in (*GENERATIONS, *NETWORKS)]
    fitted = sum(row["status"] == "fitted" for row in own)
    found.append(("no number of a library's own kernels was fitted", fitted == 0, f"{fitted} were"))
    return [numbered("K", number, *claim) for number, claim in enumerate(found, 1)]


def _few(owners: Sequence[str], most: int, what: str) -> tuple[str, bool, str]:
    counts = {owner: len(numbers.fitted(owner)) for owner in owners}
    words = ", ".join(f"{owner} {count}" for owner, count in counts.items())
    return f"at most {most} numbers were fitted to {what}", max(counts.values()) <= most, words
