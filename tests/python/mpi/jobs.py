"""Starting MPI jobs in tests; skips, with the reason, where there is no MPI."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def mpirun(
    ranks: int, *command: str, more: tuple[str, ...] = (), timeout_s: float = 120
) -> subprocess.CompletedProcess:
    """Run `python COMMAND` on so many ranks; `more` are further arguments of mpirun."""
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (Debian: openmpi-bin)")
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed (pip install -e '.[mpi]')")
    allowed = ["--allow-run-as-root"] if os.geteuid() == 0 and is_open_mpi() else []
    oversubscribe = ["--oversubscribe"] if is_open_mpi() else []
    full = ["mpirun", *allowed, *oversubscribe, *more, "-np", str(ranks), sys.executable, *command]
    # Ranks of a job inside a job would take each other for theirs.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM_"))}
    return subprocess.run(full, capture_output=True, text=True, timeout=timeout_s, env=environment)


def is_open_mpi() -> bool:
    """Whether `mpirun` is there and is Open MPI's."""
    if shutil.which("mpirun") is None:
        return False
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout
    return "Open MPI" in version
