"""linkwright dissects how a machine communicates.

Names are imported when they are first used, so that `import linkwright` and `linkwright --help` stay
fast.
"""

from __future__ import annotations

import importlib

# Public name -> module that defines it.
_EXPORTS = {
    "Builder": "api",
    "LinkwrightError": "errors",
    "Machine": "_native",
    "Proof": "api",
    "Result": "api",
    "Schedule": "_native",
    "UsageError": "errors",
    "VerifyError": "errors",
    "machine": "api",
    "parse_size": "units",
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
