"""Tables that make communication runtimes use the fastest of their own algorithms.

    rows of a run, or a prediction -> rules.tables -> a runtime's file

A runtime is one file and one line in `RUNTIMES`. Engines that serve models choose among kernels instead
(`engines.py`). Only algorithms that it has are chosen among; `Runtime.algorithms`
says by which names. `docs/tuning.md` explains the use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from linkwright.base.errors import UsageError, check_known

from . import engines, mpich, nccl, openmpi, ucc
from .rules import Table, tables
from .runtime import Runtime

RUNTIMES = {r.key: r for r in (openmpi.TEXT, openmpi.JSON, nccl.NCCL, nccl.RCCL, ucc.UCC, mpich.MPICH)}


def find(key: str) -> Runtime:
    """Return the runtime of a key.

    Raises:
        UsageError: the key is not one of a runtime; `engines.find` finds engines.
    """
    if key in engines.ENGINES:
        raise UsageError(f"`{key}` is an engine, which takes settings and no table; name a runtime")
    check_known("runtime", key, [*RUNTIMES, *engines.ENGINES], lists="linkwright list runtimes")
    return RUNTIMES[key]


def entries() -> list[dict[str, object]]:
    """The runtimes and engines, as `list` and `describe` print them."""
    return [*(runtime.described() for runtime in RUNTIMES.values()), *engines.entries()]


def tables_of(runtime: Runtime, rows: Iterable[dict[str, Any]]) -> list[Table]:
    """The rules for a runtime that the times in `rows` make."""
    return tables(rows, runtime.word, runtime.algorithms)
