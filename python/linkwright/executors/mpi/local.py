"""`lw.run(schedule, on="mpi")` in a process that mpirun did not start: a job on this host that does the same.

The job runs `linkwright.mpi_rank` on every rank. The request and the rows go through files of a folder of their own,
because launchers pass standard input to one rank only and mix what the ranks print.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from linkwright import _native
from linkwright.base.errors import MpiError, reported
from linkwright.base.extras import install

# What every rank runs; it stands above all executors, because it calls `lw.run`.
RANK = "linkwright.mpi_rank"
# Lines of the launcher's complaint that a message repeats.
LINES = 6


def rows(schedule: _native.Schedule, how: dict[str, object]) -> list[dict[str, object]]:
    """The rows of `lw.run(schedule, on="mpi", **how)` by as many local ranks as the schedule has."""
    launcher = shutil.which("mpirun")
    if launcher is None:
        raise MpiError(f"mpi: no `mpirun` is installed; install Open MPI or MPICH, and mpi4py ({install('mpi')})")
    with tempfile.TemporaryDirectory(prefix="linkwright-mpi-") as name:
        folder = Path(name)
        (folder / "request.json").write_text(json.dumps({"schedule": schedule.text(), "how": how}), encoding="utf-8")
        command = [launcher, *_oversubscribed(launcher), "-np", str(schedule.ranks)]
        ended = subprocess.run(
            [*command, sys.executable, "-P", "-m", RANK, name], check=False, capture_output=True, text=True
        )
        answer = folder / "answer.json"
        if not answer.is_file():
            said = "\n".join((ended.stderr or ended.stdout).strip().splitlines()[-LINES:])
            raise MpiError(f"mpi: `{' '.join(command)}` ended with status {ended.returncode} without a result:\n{said}")
        found = json.loads(answer.read_text(encoding="utf-8"))
    if "rows" not in found:
        raise reported(found["reason"], found["code"])
    return found["rows"]


def _oversubscribed(launcher: str) -> list[str]:
    """Open MPI refuses more ranks than cores unless it is told; MPICH does not."""
    version = subprocess.run([launcher, "--version"], check=False, capture_output=True, text=True).stdout
    return ["--oversubscribe"] if "Open MPI" in version or "OpenRTE" in version else []
