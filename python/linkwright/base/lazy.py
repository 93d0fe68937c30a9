"""NumPy, imported when it is first used: importing it takes as long as simulating a small collective does.

    from linkwright.base.lazy import np

Only modules that commands load without computing with arrays need this; all others import NumPy as usual.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("numpy"), name)

    np = _Numpy()

__all__ = ["np"]
