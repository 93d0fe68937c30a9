"""An algorithm was forced, or the best one was left out."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System

from .kind import Case, Hypothesis

_NAMES = {"ring": "Ring", "tree": "Tree", "nvls": "NVLS", "nvls_tree": "NVLSTree", "collnet_chain": "CollnetChain"}


def _cases(system: System) -> Iterator[Case]:
    if system.described.library() is None:
        return
    library = system.algorithm.split("/")[0]
    for key, name in _NAMES.items():
        yield Case(
            f"the library uses {name}", system.having(algorithm=f"{library}/{key}"), "algorithm",
            f"NCCL_ALGO={name} is set, or a faster algorithm is disabled (NCCL_NVLS_ENABLE=0, no fabric manager)",
            "env | grep NCCL_; grep -i nvls in the log with NCCL_DEBUG=INFO",
            "unset NCCL_ALGO and NCCL_NVLS_ENABLE; systemctl status nvidia-fabricmanager",
        )  # fmt: skip


HYPOTHESIS = Hypothesis("algorithm_forced", "an algorithm was forced, or the best one was excluded", _cases)
