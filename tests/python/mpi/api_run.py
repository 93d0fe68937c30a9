"""On every rank: `lw.run(..., on="mpi")` gives each rank the same result, or raises the same error."""

from mpi4py import MPI

import linkwright as lw


def ran(ranks: int) -> str:
    schedule = lw.schedule("allreduce", "ring", ranks=ranks, size=ranks * 1024)
    try:
        row = lw.run(schedule, on="mpi", launches=2, budget_s=0.2).row("time")
    except lw.LinkwrightError as error:
        return str(error)
    return f"{row['executor']} took {row['value']} ns"


said = MPI.COMM_WORLD.gather([ran(2), ran(3)])
if MPI.COMM_WORLD.rank == 0:
    print(*(line for lines in said for line in lines), sep="\n", flush=True)
