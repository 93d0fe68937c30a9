"""A Slurm job script that runs this command over MPI.

linkwright run allreduce --on mpi --ranks 64 --slurm > job.sh && sbatch job.sh
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from linkwright.base.errors import UsageError

# Besides what is measured: starting, verifying, writing the report.
_OVERHEAD_S = 300


def script(arguments: list[str], on: str, ranks: int | None, budget_s: float) -> str:
    """The script; `arguments` are those of this command, `--slurm` included."""
    if on != "mpi":
        raise UsageError(f"--slurm: a job script starts MPI ranks, and `--on {on}` has none; use `--on mpi`")
    if ranks is None:
        raise UsageError("--slurm: a job script states how many ranks to start; add --ranks N")
    if ranks < 2:
        raise UsageError(f"--slurm: --ranks {ranks}: a message needs two ranks; ask for at least 2")
    seconds = int(budget_s) + _OVERHEAD_S
    command = [str(Path(sys.prefix) / "bin" / "linkwright"), *(word for word in arguments if word != "--slurm")]
    return "\n".join(
        (
            "#!/bin/bash",
            "#SBATCH --job-name=linkwright",
            f"#SBATCH --ntasks={ranks}",
            "#SBATCH --cpus-per-task=1",
            "#SBATCH --exclusive",
            f"#SBATCH --time={seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}",
            "# Add what your site needs: --nodes, --partition, --account, `module load` of the MPI library.",
            "set -eu",
            f'mpirun -np "$SLURM_NTASKS" {shlex.join(command)}',
            "",
        )
    )
