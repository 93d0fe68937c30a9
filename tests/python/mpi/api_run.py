"""On every rank: `lw.run(..., on="mpi")` gives each rank the same result, or raises the same error."""

import linkwright as lw

measured = lw.run(lw.schedule("allreduce", "ring", ranks=2, size="4K"), on="mpi", launches=2, budget_s=0.2)
try:
    lw.run(lw.schedule("allreduce", "ring", ranks=3, size="6K"), on="mpi")
except lw.LinkwrightError as error:
    print(measured.row("time")["executor"], measured.time_us, error, sep=" | ", flush=True)
