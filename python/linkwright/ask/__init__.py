"""Questions, their schedules, and the one call that simulates them in the native half.

from linkwright.ask import How, ask

ask(machine, schedule, How(links=True)).links
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported on first use, because questions are read without the native half
    from .answer import Answer as Answer
    from .answer import How as How
    from .answer import Limit as Limit
    from .answer import ask as ask
    from .answer import limits as limits

__all__ = ["Answer", "How", "Limit", "ask", "limits"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(importlib.import_module("linkwright.ask.answer"), name)
    raise AttributeError(f"module `linkwright.ask` has no attribute `{name}`")
