"""Algorithms that are no schedules of ours: what an executor's library or device brings along (`-a own`).

They are measured beside ours, on the same ranks and data. Each entry names its executor and the collectives it has.
"""

from __future__ import annotations

from linkwright.errors import UsageError

from .cuda import NATIVE as CUDA_NATIVE
from .gpus import NCCL
from .mpi import NATIVE, NATIVE_IN_PLACE

ANY = "any collective"

ENTRIES: tuple[dict[str, object], ...] = (
    {
        "key": NATIVE,
        "summary": "the collective of the MPI library itself",
        "executor": "mpi",
        "collectives": [ANY],
    },
    {
        "key": NATIVE_IN_PLACE,
        "summary": "the collective of the MPI library with MPI_IN_PLACE, as our schedules of allreduce work",
        "executor": "mpi",
        "collectives": ["allreduce"],
    },
    {
        "key": CUDA_NATIVE,
        "summary": "an allreduce by barriers of the whole grid, as one would write it without schedules",
        "executor": "cuda",
        "collectives": ["allreduce"],
    },
    {
        "key": NCCL,
        "summary": "NCCL's own collective, through CuPy",
        "executor": "gpus",
        "collectives": ["allreduce", "allgather", "broadcast"],
        "needs": "pip install linkwright[cuda-libraries], or [cuda13-libraries]",
    },
)


def algorithms(executor: str, collective: str) -> list[str]:
    """What `executor` brings along of a collective."""
    of = [entry for entry in ENTRIES if entry["executor"] == executor]
    return [str(entry["key"]) for entry in of if {collective, ANY} & set(entry["collectives"])]


def elsewhere(name: str) -> UsageError | None:
    """What to say of `name` where nobody has it, if some executor brings it along."""
    for entry in ENTRIES:
        if entry["key"] == name:
            has, on = ", ".join(entry["collectives"]), entry["executor"]
            return UsageError(f"algorithm `{name}`: only `--on {on}` has it ({has}); ask there, or for another one")
    return None
