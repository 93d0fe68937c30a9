"""Which of two backends is faster: is the model right where their times differ by more than a tenth?

    frameworks    all-reduce as TensorRT-LLM, vLLM and SGLang call it, in a graph: any two tables of different backends
    sides         one- or two-sided exchanges of TensorRT-LLM
    modes         DeepEP's low latency against its normal mode at its best number of multiprocessors

Cases do not count, nor do pairs of two rows that numbers were fitted to.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from linkwright_evidence.outcome import Cell

NOTE = (
    "Pairs of backends under one condition whose published times differ by more than a tenth, and in how many percent "
    "the model has the same one as the faster."
)
APART = 1.1
Contest = dict[tuple, dict[str, Cell]]


def rows(cells: Iterable[Cell]) -> list[dict]:
    """One row per comparison and system: pairs that differ, and how many are in the right order."""
    counts: dict[tuple[str, str], list[bool]] = {}
    for (what, system), fast, slow in _pairs([cell for cell in cells if not cell.erratum]):
        counts.setdefault((what, system), []).append(_time(fast.predicted) < _time(slow.predicted))
    return [
        {"comparison": what, "system": system, "pairs": len(its), "right_percent": round(100 * sum(its) / len(its), 1)}
        for (what, system), its in counts.items()
    ]


def _pairs(cells: list[Cell]) -> Iterator[tuple[tuple[str, str], Cell, Cell]]:
    """(comparison and system), the faster and the slower."""
    for key, its in [*_frameworks(cells).items(), *_sides(cells).items(), *_modes(cells).items()]:
        for (name, one), (other, two) in itertools.combinations(its.items(), 2):
            fast, slow = sorted((one, two), key=lambda cell: _time(cell.reference))
            apart = _time(slow.reference) > APART * _time(fast.reference)
            scored = "predicted" in (one.role, two.role)
            if scored and apart and name.partition("/")[0] != other.partition("/")[0]:
                yield key[:2], fast, slow


def _frameworks(cells: list[Cell]) -> Contest:
    found: Contest = {}
    for cell in cells:
        keys = cell.keys
        if keys["kind"] == "framework_allreduce" and keys.get("mode") == "graph":
            key = ("frameworks", keys["system"], keys["gpus"], keys["size_bytes"])
            found.setdefault(key, {})[str(keys["version"])] = cell
    return found


def _sides(cells: list[Cell]) -> Contest:
    found: Contest = {}
    for cell in cells:
        keys = cell.keys
        if keys["kind"] == "moe_alltoall":
            key = ("sides", keys["system"], keys["gpus"], keys["op"], keys["dtype"], keys["tokens"])
            found.setdefault(key, {})[str(keys["backend"])] = cell
    return found


def _modes(cells: list[Cell]) -> Contest:
    """The normal mode at its best number of multiprocessors, which is each side's own."""
    found: Contest = {}
    for cell in cells:
        keys = cell.keys
        if str(keys["kind"]).startswith("deepep") and keys["nodes"] == 1 and not str(keys["op"]).endswith("notify"):
            key = (
                "modes", keys["system"], keys["gpus"], keys["op"], keys["tokens"], keys["hidden"], keys["topk"],
                keys["experts"],
            )  # fmt: skip
            mode = "low latency" if keys["kind"] == "deepep_ll" else "normal"
            before = found.setdefault(key, {}).get(mode)
            if before is None or _time(cell.reference) < _time(before.reference):
                found[key][mode] = cell
    return found


def _time(value: object) -> float:
    return float(str(value))
