"""linkwright dissects how a machine communicates.

Names are imported on first use, so that `import linkwright` and `linkwright --help` stay fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names as in _EXPORTS, for type checkers and editors
    from linkwright.advise.costs import CostTable as CostTable
    from linkwright.advise.costs import estimate as estimate
    from linkwright.ask.writing import Builder as Builder
    from linkwright.base.errors import LinkwrightError as LinkwrightError
    from linkwright.base.errors import UsageError as UsageError
    from linkwright.base.errors import VerifyError as VerifyError
    from linkwright.base.errors import WaivedError as WaivedError
    from linkwright.base.units import parse_size as parse_size

    from ._native import Machine as Machine
    from ._native import Schedule as Schedule
    from .api import Proof as Proof
    from .api import limits as limits
    from .api import load as load
    from .api import machine as machine
    from .api import results as results
    from .api import run as run
    from .api import schedule as schedule
    from .api import simulate as simulate
    from .api import verify as verify
    from .result import Result as Result

# Public name -> module that defines it.
_EXPORTS = {
    "Builder": "ask.writing",
    "CostTable": "advise.costs",
    "LinkwrightError": "base.errors",
    "Machine": "_native",
    "Proof": "api",
    "Result": "result",
    "Schedule": "_native",
    "UsageError": "base.errors",
    "VerifyError": "base.errors",
    "WaivedError": "base.errors",
    "estimate": "advise.costs",
    "limits": "api",
    "load": "api",
    "machine": "api",
    "parse_size": "base.units",
    "results": "api",
    "run": "api",
    "schedule": "api",
    "simulate": "api",
    "verify": "api",
}

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> object:
    if name in _EXPORTS:
        return getattr(importlib.import_module(f"linkwright.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module `linkwright` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
