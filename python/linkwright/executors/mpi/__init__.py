"""Ranks as processes of an MPI job: our schedules, and the library's own collectives beside them.

    mpirun -np 4 linkwright run allreduce --on mpi

Every rank runs the same command. Rank 0 is the session as everywhere else: it plans, keeps the journal,
prints. The others serve: they wait for an experiment, run their part of it, and write their own samples
into a file of their own, which rank 0 merges at the end.

    world.py     the job: ranks, hosts, versions, what the library looks like to the native walker
    ranks.py     one experiment on all ranks
    samples.py   one file per rank, and their merge
    slurm.py     a job script
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# How experiments name the collectives of the library itself.
NATIVE = "mpi-native"
NATIVE_IN_PLACE = "mpi-native-in-place"

ENTRY: dict[str, object] = {
    "key": "mpi",
    "summary": "ranks are processes of an MPI job, on one host or on many; the library's own collectives beside ours",
    "description": (
        "Each transfer is an Isend and an Irecv, a notice a message of 0 bytes; combinations are ours. Ranks "
        "start each repetition at an agreed time of synchronised clocks, or after a barrier where that fails. "
        "The algorithm `mpi-native` stands for the library's own collective. Started by `mpirun -np N "
        "linkwright run ... --on mpi`, or by the job script that `--slurm` prints; needs mpi4py "
        "(`pip install linkwright[mpi]`) and Open MPI or MPICH."
    ),
}


def asked(on: str | None) -> bool:
    """Whether `mpi` is among the targets named."""
    return "mpi" in [name.strip() for name in (on or "").split(",")]


@contextmanager
def job(on: str | None, *, resumed: bool = False) -> Iterator[bool]:
    """Whether this process is the session (True), or a rank that has served and has nothing left to do.

    Without `mpi` among the targets the first process measures and the others would only disturb it, so they end. A
    resumed run says itself what it was asked for, so that under mpirun all ranks but the first one serve.
    """
    from . import world

    if not asked(on) and not resumed:
        rank = world.rank_from_launcher()
        if rank == 1:
            said = f"only rank 0 runs; `--on {on}` does not measure an MPI job, --on mpi does"
            print(f"linkwright: {said}", file=sys.stderr)
        yield rank == 0
        return
    if not asked(on) and not world.started_by_launcher():
        yield True
        return
    ranks = world.world()
    if ranks.rank > 0:
        from .ranks import serve

        serve(ranks)
        yield False
        return
    try:
        yield True
    finally:
        ranks.finish()
