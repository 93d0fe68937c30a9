"""Ranks as processes of an MPI job: our schedules, and the library's own collectives for comparison.

    mpirun -np 4 linkwright run allreduce --on mpi

Every rank runs the same command. Rank 0 is the session: it plans, keeps the journal and prints. The others serve: they
wait for an experiment, run their part of it, and write their samples to their own file, which rank 0 merges at the end.

    local.py     a job on this host, for `lw.run` outside one
    world.py     the job: ranks, hosts, versions, what the library looks like to the native walker
    ranks.py     one experiment on all ranks
    exchange.py  messages of chosen pairs at the same time, for `locate`
    samples.py   one file per rank, and their merge
    slurm.py     a job script
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from linkwright._native import Schedule
from linkwright.base.errors import ShapeError
from linkwright.base.extras import install
from linkwright.store.record import Outcome, Record

from ..protocol import ANY, Executor, Extent, Launch, OwnAlgorithm, Shared, Target
from .names import NATIVE, NATIVE_IN_PLACE


class Mpi(Executor):
    """The job that `mpirun` started; rank 0 leads, the others serve."""

    key = "mpi"
    summary = "ranks are processes of an MPI job, on one host or many; the library's own collectives compared with ours"
    description = (
        "Each transfer is an Isend and an Irecv, a notice a message of 0 bytes; combinations are ours. Ranks "
        "start each repetition at an agreed time of synchronised clocks, or after a barrier where that fails. "
        "The algorithm `mpi-native` stands for the library's own collective. Started by `mpirun -np N "
        "linkwright run ... --on mpi`, or by the job script that `--slurm` prints; needs mpi4py "
        f"({install('mpi')}) and Open MPI or MPICH."
    )
    is_host = True
    obeys = frozenset({"issue", "skew", "placement"})
    own = (
        OwnAlgorithm(NATIVE, "the collective of the MPI library itself", (ANY,)),
        OwnAlgorithm(
            NATIVE_IN_PLACE,
            "the collective of the MPI library with MPI_IN_PLACE, as our schedules of allreduce work",
            ("allreduce",),
        ),
    )

    def resolve(self, ranks: int | None, grid: tuple[int, ...] | None) -> Target:
        """The ranks of the job that this process belongs to."""
        from .world import world

        job = world()
        if ranks is not None and ranks > job.size:
            raise ShapeError(
                f"--ranks {ranks}: the MPI job has {job.size} ranks; "
                f"start as many with `mpirun -np {ranks}`, or ask for fewer"
            )
        extent = Extent("measured", ranks or job.size, grid, self.own_algorithms)
        return Target(self.key, self, job.machine_name(), extent, job.endpoint_names(), job.environment(), job)

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """One round of the list: fresh memory and communicators in processes that stay."""
        from . import ranks

        return ranks.launch(target.handle, launch)

    def elsewhere(self, schedule: Schedule, how: Mapping[str, object]) -> list[dict[str, object]] | None:
        """Outside a job, one on this host; inside, None."""
        from .world import started_by_launcher

        if started_by_launcher():
            return None
        from . import local

        return local.rows(schedule, dict(how))

    @contextmanager
    def job(self, asked: bool, resumed: bool) -> Iterator[bool]:
        """Whether this process is rank 0 (True), or has nothing left to do.

        If `mpi` is not among the targets, the first process measures and the others end, because they would disturb it.
        A resumed run states its own targets, so under mpirun all other ranks serve.
        """
        from . import world

        if not asked and not (resumed and world.started_by_launcher()):
            rank = 0 if resumed else world.rank_from_launcher()
            if rank == 1:
                said = "only rank 0 runs: --on names no MPI job; --on mpi measures one"
                print(f"linkwright: {said}", file=sys.stderr)
            yield rank == 0
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
            ranks.order(None)

    def begin(self, target: Target, run_id: str, root: Path) -> None:
        """From now on, a job that is ended from outside says what is kept."""
        from .ranks import announce_end

        announce_end(run_id, str(root))

    def share(self, target: Target, work: Callable[[], Shared]) -> Shared:
        """All ranks call this together: rank 0 works, the others serve, and all get the result."""
        from .ranks import share

        return share(target.handle, work)

    def merge(self, target: Target, folder: Path, records: list[Record]) -> list[Record]:
        """Add every rank's starts and durations from its file."""
        from . import samples

        return samples.merge(target.handle, folder, records)

    def discard(self, target: Target, folder: Path) -> None:
        """Every rank deletes its file."""
        from . import samples

        samples.merged(target.handle, folder)
