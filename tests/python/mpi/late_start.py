"""On every rank: messages between neighbours while rank 0 leaves each barrier a fifth of a second late."""

import time

from mpi4py import MPI

from linkwright.executors.mpi import exchange
from linkwright.executors.mpi.world import World

LATE_S = 0.2


class Late:
    """A communicator whose rank 0 is late after each barrier, as it is in each group made of it."""

    def __init__(self, comm):
        self.comm = comm

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def Create_group(self, group):  # noqa: N802
        return Late(self.comm.Create_group(group))

    def Barrier(self):  # noqa: N802
        self.comm.Barrier()
        time.sleep(0 if MPI.COMM_WORLD.rank else LATE_S)


job = World(Late(MPI.COMM_WORLD), [], "", {}, {})
flows = [(rank, (rank + 1) % 3) for rank in range(3)]
if job.rank == 0:
    print(*exchange.rates(job, flows, 1 << 20), flush=True)
else:
    job.comm.gather(exchange.take_part(job, *job.next_order()["exchange"]))
