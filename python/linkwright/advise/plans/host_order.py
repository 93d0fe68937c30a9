"""Files that put ranks on hosts in a given order: for Open MPI, MPICH and Slurm.

    openmpi   rankfile: `rank 3=node07 slot=2`; the slot is the place within the host, which Open MPI takes for a core
    mpich     host file, one line for each rank: `node07:1`
    slurm     list for `--distribution=arbitrary` by SLURM_HOSTFILE: one host for each task

Only a rankfile says which place of a host a rank takes. In the other two, ranks of one host take its places (its GPUs,
say) in the order of ranks, unless the program chooses them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwright.base.errors import UsageError

Place = tuple[str, int]  # host, and place within it


def places(hosts: Sequence[str], endpoints: Sequence[int], each: int) -> list[Place]:
    """Host and place of each rank, with `each` endpoints on a host."""
    if len(set(hosts)) < len(hosts):
        raise UsageError("--hosts: a host is named twice; list each once")
    needed = max(endpoints) // each + 1
    if len(hosts) < needed:
        raise UsageError(
            f"--hosts: {len(hosts)} given, and the machine has {needed} of {each} endpoints; name them all"
        )
    return [(hosts[endpoint // each], endpoint % each) for endpoint in endpoints]


def _openmpi(found: Sequence[Place]) -> list[str]:
    return [f"rank {rank}={host} slot={slot}" for rank, (host, slot) in enumerate(found)]


def _mpich(found: Sequence[Place]) -> list[str]:
    return [f"{host}:1" for host, _ in found]


def _slurm(found: Sequence[Place]) -> list[str]:
    return [host for host, _ in found]


FORMATS: dict[str, Callable[[Sequence[Place]], list[str]]] = {"openmpi": _openmpi, "mpich": _mpich, "slurm": _slurm}


def text(form: str, found: Sequence[Place]) -> str:
    """The file in one of `FORMATS`."""
    return "\n".join(FORMATS[form](found)) + "\n"
