"""An algorithm was forced, or the best one was left out."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts
from linkwright.libraries import library

from .kind import COMMON, UNUSUAL, Case, Hypothesis, checks, unless

NAMES = {"ring": "Ring", "tree": "Tree", "nvls": "NVLS", "nvls_tree": "NVLSTree", "collnet_chain": "CollnetChain"}
_MULTICAST = ("nvls", "nvls_tree")


def asked(value: str, collective: str) -> tuple[frozenset[str], list[str]]:
    """What `NCCL_ALGO` admits, of `NAMES`; and the algorithms it names that are not modelled.

    `Ring,Tree` lists, `^NVLS` excludes, and `allreduce:ring;allgather:nvls` tells collectives apart.
    """
    for part in value.split(";"):
        name, colon, rest = part.rpartition(":")
        if not colon or name.replace("_", "").lower() == collective.replace("_", ""):
            value = rest
            break
    names = [word.strip().replace("_", "").lower() for word in value.lstrip("^").split(",")]
    known = {name.replace("_", ""): name for name in NAMES}
    listed = frozenset(known[name] for name in names if name in known)
    unknown = [name for name in names if name and name not in known]
    return frozenset(NAMES) - listed if value.startswith("^") else listed, [] if value.startswith("^") else unknown


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.described.library() is None:
        return
    stem, *forced = system.algorithm.split("/")
    value = facts.setting("NCCL_ALGO")
    names, stated = _evidence(system, facts)
    cause = (
        "the library, or a tuner plugin, chose it" if value == ""
        else "NCCL_ALGO is set, or a faster algorithm is disabled (NCCL_NVLS_ENABLE=0, no fabric manager)"
    )  # fmt: skip
    for key, name in NAMES.items():
        if key in names:
            yield Case(
                f"the library uses {name}", system.having(algorithm="/".join((stem, key, *forced[1:]))), "algorithm",
                f"NCCL_ALGO={value} is set" if value else cause,
                checks(
                    unless(value, "env | grep NCCL_"),
                    "" if stated or facts.multicast is not None
                    else "grep -i nvls in the log with NCCL_DEBUG=INFO",
                ) or "run once with NCCL_ALGO unset",
                "unset NCCL_ALGO and NCCL_NVLS_ENABLE; systemctl status nvidia-fabricmanager", stated,
                common=UNUSUAL if value == "" else COMMON,
            )  # fmt: skip


def _evidence(system: System, facts: Facts) -> tuple[frozenset[str], str]:
    """The algorithms that the log admits, and what it says that proves them to be used."""
    everything = frozenset(NAMES)
    if value := facts.setting("NCCL_ALGO"):
        names, _ = asked(value, system.collective)
        return names, f"NCCL_ALGO={value}" if names < everything else ""
    if facts.chosen:
        size = max(facts.chosen)
        if (algorithm := facts.chosen[size][0]) in everything:
            return frozenset((algorithm,)), f"the library reports {NAMES[algorithm]} for {size} bytes"
    off = facts.setting("NCCL_NVLS_ENABLE") == "0"
    if off or facts.multicast is False:
        has = any("nvls" in name for name in _available(system))
        said = "NCCL_NVLS_ENABLE=0" if off else "GPUs have no multicast (NVLS is not available)"
        return everything - {*_MULTICAST}, said if has else ""
    return everything, ""


def _available(system: System) -> list[str]:
    return library.alternatives(system.described, system.collective, system.algorithm.partition("/")[0])


HYPOTHESIS = Hypothesis("algorithm_forced", "an algorithm was forced, or the best one was excluded", _cases)
