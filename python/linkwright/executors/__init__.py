"""Executors that live outside the native half: each a package of its own, and an entry here.

The native half lists `reference` and `threads`; `linkwright list executors` shows both lists as one.
"""

from __future__ import annotations

from . import cuda, gpus, mpi

ENTRIES: tuple[dict[str, object], ...] = (mpi.ENTRY, cuda.ENTRY, gpus.ENTRY)
