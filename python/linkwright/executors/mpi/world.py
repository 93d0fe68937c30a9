"""The MPI job that this process belongs to.

mpi4py starts the library and knows its handles. The native walker calls the functions of the loaded library by address:
nothing is compiled against MPI, and both Open MPI and MPICH work. MPI starts with one thread, as in a plain C program;
other Python threads do not call it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwright import _native
from linkwright.base.errors import MpiError, UsageError
from linkwright.base.extras import install

if TYPE_CHECKING:
    from mpi4py import MPI

# How launchers pass the rank to their processes: Open MPI, PMIx, MPICH and its relatives, Slurm.
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")


def started_by_launcher() -> bool:
    """Whether mpirun or a similar launcher started this process."""
    return any(name in os.environ for name in _RANK_VARIABLES)


def rank_from_launcher() -> int:
    """The rank that the launcher gave this process, before MPI has started; 0 without a launcher."""
    return int(next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), 0))


@dataclass(frozen=True)
class Place:
    """Where a rank is."""

    host: str
    cpus: tuple[int, ...]  # that it may use
    version: str  # of linkwright
    processor: str
    kernel: str  # hosts with the same one, such as containers or namespaces, share processors


_NAP_S = 1e-3  # between two looks for an order, which may take several


@dataclass
class World:
    """All ranks of the job."""

    comm: MPI.Intracomm
    places: list[Place]
    library: str
    functions: dict[str, int]
    handles: dict[str, Any]

    @property
    def rank(self) -> int:
        """This process."""
        return self.comm.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self.comm.size

    @property
    def hosts(self) -> list[str]:
        """Hosts in the order of their first rank."""
        return list(dict.fromkeys(place.host for place in self.places))

    @functools.cached_property
    def oversubscribed(self) -> bool:
        """Whether some machine has more ranks than cores; those that take no part spin while they wait."""
        for kernel in {place.kernel for place in self.places}:
            here = [place for place in self.places if place.kernel == kernel]
            if len(here) > len({cpu for place in here for cpu in place.cpus}):
                return True
        return False

    def environment(self) -> dict[str, object]:
        """What a reader needs to know about the job."""
        return {
            "library": self.library,
            "mpi4py": importlib.metadata.version("mpi4py"),
            "hosts": self.hosts,
            "ranks": [{"rank": rank, "host": p.host, "cpus": list(p.cpus)} for rank, p in enumerate(self.places)],
            "settings": {k: v for k, v in sorted(os.environ.items()) if _is_setting(k)},
        }

    def machine_name(self) -> str:
        """The name of the machine in rows."""
        processors = list(dict.fromkeys(place.processor for place in self.places))
        name = " and ".join(processors) + " over MPI"
        return name if len(self.hosts) == 1 else f"{len(self.hosts)} x {name}"

    def endpoint_names(self) -> tuple[str, ...]:
        """The names of the ranks in rows."""
        several = len(self.hosts) > 1
        return tuple(f"rank {r} on {p.host}" if several else f"rank {r}" for r, p in enumerate(self.places))

    def group(self, members: Sequence[int]) -> tuple[_native.MpiGroup, list[MPI.Intracomm]]:
        """Some ranks for the native walker, and its communicators, which the caller frees; all members call it."""
        from mpi4py import MPI

        group = self.comm.group.Incl(list(members))
        data = self.comm.Create_group(group)
        control = data.Dup()
        group.Free()
        made = _native.MpiGroup(
            self.functions, self.handles, MPI._handleof(data), MPI._handleof(control),
            data.rank, data.size, self.oversubscribed, None,
        )  # fmt: skip
        return made, [data, control]

    def order(self, what: object) -> None:
        """Tell the other ranks, which wait in `next_order`, what to do; None releases them."""
        self.comm.Ibarrier().Wait()
        self.comm.bcast(what)

    def next_order(self) -> Any:
        """Wait for an order of rank 0, asleep.

        In a collective call they would spin and yield. On a host with fewer cores than ranks, rank 0, which meanwhile
        computes, would then owe the scheduler that time and start the next measurement late.
        """
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(_NAP_S)
        return self.comm.bcast(None)


def _is_setting(name: str) -> bool:
    """Whether a variable is a user's setting of the library, not what mpirun tells its processes of the job."""
    internal = ("OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix", "OMPI_MCA_initial_", "OMPI_MCA_mpi_oversubscribe")
    return name.startswith(("OMPI_MCA_", "MPICH_", "UCX_")) and not name.startswith(internal)


@functools.cache
def world() -> World:
    """The job, started; refuses a job of one rank, and hosts that do not fit together."""
    if not started_by_launcher():
        raise UsageError(
            "--on mpi: this process was started alone, and MPI needs several; start it with "
            "`mpirun -np 4 linkwright ... --on mpi`, or print a job script with `linkwright run ... --slurm`"
        )
    mpi = _start()
    comm = mpi.COMM_WORLD
    places = comm.allgather(_place())
    _check_versions(places)
    if comm.size == 1:
        raise UsageError(
            "--on mpi: the job has one rank, and a message needs two; start it with `mpirun -np 2` or more"
        )
    return World(comm, places, mpi.Get_library_version().strip("\0 \n"), _functions(mpi), _handles(mpi))


def _start() -> Any:
    try:
        import mpi4py
    except ImportError as error:
        raise MpiError(
            f"--on mpi: mpi4py is not installed on {platform.node()}; type {install('mpi')} there"
        ) from error
    mpi4py.rc.thread_level = "funneled"
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise MpiError(
            f"--on mpi: no MPI library could be loaded on {platform.node()} ({error}); "
            "install Open MPI or MPICH (Debian: openmpi-bin), or load your site's module"
        ) from error
    return MPI


def _place() -> Place:
    from linkwright.store.environment import processor_name

    # An editable installation may be behind its native half, and that is what runs.
    version = f"{importlib.metadata.version('linkwright')}/{_native.__version__}"
    return Place(platform.node(), tuple(sorted(os.sched_getaffinity(0))), version, processor_name(), _kernel())


def _kernel() -> str:
    """What the hosts of one running kernel have in common; the host's name where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


def _check_versions(places: list[Place]) -> None:
    versions: dict[str, list[str]] = {}
    for place in places:
        hosts = versions.setdefault(place.version, [])
        if place.host not in hosts:
            hosts.append(place.host)
    if len(versions) > 1:
        found = "; ".join(f"{version} on {', '.join(hosts)}" for version, hosts in versions.items())
        raise MpiError(
            f"--on mpi: the ranks run different versions of linkwright: {found}; install the same one everywhere",
            everywhere=True,
        )


def _functions(mpi: Any) -> dict[str, int]:
    # The extension module was linked against the library, so its handle finds what the library defines.
    loaded = ctypes.CDLL(mpi.__file__)
    found = {}
    for name in _native.MpiGroup.functions():
        try:
            found[name] = ctypes.cast(getattr(loaded, f"MPI_{name}"), ctypes.c_void_p).value or 0
        except AttributeError:
            found[name] = 0
    return found


def _handles(mpi: Any) -> dict[str, Any]:
    dtypes = {"f32": mpi.FLOAT, "f64": mpi.DOUBLE, "i32": mpi.INT32_T, "i64": mpi.INT64_T, "u8": mpi.UINT8_T}
    ops = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN, "prod": mpi.PROD}
    return {
        "byte": mpi._handleof(mpi.BYTE),
        "double": mpi._handleof(mpi.DOUBLE),
        "max": mpi._handleof(mpi.MAX),
        "in_place": int(mpi.IN_PLACE) & (2**64 - 1),
        "tag_limit": mpi.COMM_WORLD.Get_attr(mpi.TAG_UB),
        "dtypes": [mpi._handleof(dtypes[name]) if name in dtypes else None for name in _native.MpiGroup.dtypes()],
        "ops": [mpi._handleof(ops[name]) for name in _native.MpiGroup.ops()],
    }
