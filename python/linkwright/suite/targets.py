"""What `--on` takes: the name of a described machine, which is modelled, or of an executor, which measures.

Names of machines and of executors are disjoint, so one word says which is meant.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from linkwright import _native, machines, registry
from linkwright.errors import ShapeError, UsageError, unknown
from linkwright.executors import own

from .expand import LAST_CACHE, Extent
from .rows import Context

if TYPE_CHECKING:
    from linkwright.executors.mpi.world import World

# Ranks of a machine whose file leaves the number open, unless the user says how many.
OPEN_RANKS = 16
OPEN_GRID = (8, 8)
# Ranks of a machine that has more, unless the user says how many: every pair of them is an experiment.
MOST_RANKS = 64


@dataclass(frozen=True)
class Recipe:
    """What a modelled target is made of, as plain values: another process makes the same one of it."""

    name: str  # as typed after --on
    text: str  # of the machine file
    file: str  # its name, for messages
    ranks: int | None = None
    grid: tuple[int, int] | None = None
    walk: str | None = None  # `fold` (one rank stands for all) or `stream` (all, without a schedule)


@dataclass(frozen=True)
class Target:
    """Something that gives a number for an experiment."""

    name: str  # as typed after --on
    machine_name: str
    executor: str
    extent: Extent
    endpoint_names: tuple[str, ...]
    machine: _native.Machine | None = None  # None: this machine, measured
    world: World | None = None  # the MPI job that measures
    sms: tuple[int, ...] = ()  # of the GPU that measures: SM of each rank
    about: dict[str, object] | None = None  # what a reader must know of that GPU, or of those GPUs
    sample: tuple[int, ...] | None = None  # endpoint of each rank, where the machine has more than take part
    recipe: Recipe | None = None  # of a modelled one

    @property
    def walk(self) -> str | None:
        """`fold` or `stream`, where no schedule is simulated."""
        return self.recipe.walk if self.recipe else None

    def context(self, run: str, suite: str, watts: float | None = None) -> Context:
        """What all rows of this target have in common."""
        return Context(run, suite, self.machine_name, self.executor, self.endpoint_names, watts)

    @property
    def modelled(self) -> bool:
        """Whether numbers come from a model, which makes them exact."""
        return self.machine is not None


def resolve(
    names: str, ranks: int | None = None, grid: tuple[int, int] | None = None, walk: str | None = None
) -> list[Target]:
    """The targets named in a list such as `threads,wormhole-n150`."""
    if ranks is not None and ranks < 1:
        raise ShapeError(f"--ranks {ranks}: a collective has at least 1 rank")
    wanted = [name.strip() for name in names.split(",")]
    if {"threads", "mpi"} <= set(wanted):
        raise UsageError(
            f"--on {names}: the ranks of the MPI job spin while they wait, so threads would not be alone; make two runs"
        )
    found = [_one(name, ranks, grid, walk) for name in wanted]
    if len(found) == 1 and grid:  # of several machines it is meant for those where it fits
        _check_grid(grid, found[0].extent.ranks)
    repeated = [target.name for i, target in enumerate(found) if target.name in [t.name for t in found[:i]]]
    if repeated:
        raise UsageError(f"--on {names}: `{repeated[0]}` is named twice; name it once")
    return found


def _one(name: str, ranks: int | None, grid: tuple[int, int] | None, walk: str | None) -> Target:
    if name == "threads":
        return _threads(ranks, grid)
    if name == "mpi":
        return _mpi(ranks, grid)
    if name == "cuda":
        return _cuda(ranks, grid)
    if name == "gpus":
        return _gpus(ranks, grid)
    if name in registry.keys("executors"):
        cure = "name a machine to simulate on" if name == "sim" else "it checks data; use `threads` or a machine"
        raise UsageError(f"--on {name}: this executor gives no times by itself; {cure}")
    known = registry.keys("machines")
    if name not in known and not name.endswith(".toml") and "/" not in name:
        raise unknown("machine or executor", name, [*known, "threads", "mpi", "cuda", "gpus"], where="--on")
    return modelled(Recipe(name, *machines.source(name), ranks, grid, walk))


def modelled(recipe: Recipe) -> Target:
    """The described machine of a recipe, with a size if its file leaves that open."""
    name, ranks, grid = recipe.name, recipe.ranks, recipe.grid
    machine = _native.Machine.parse(recipe.text, recipe.file)
    folded = recipe.walk == "fold"
    if folded and machine.open_size == "ranks":
        ranks = ranks or OPEN_RANKS  # the machine stays open: one endpoint stands for all
    elif machine.open_size:
        if grid or (machine.open_size == "grid" and ranks is None):
            machine = machine.with_grid(*(grid or OPEN_GRID))
        else:
            machine = machine.with_endpoints(ranks or OPEN_RANKS)
    if ranks is not None and not machine.open_size and ranks > machine.ranks:
        raise ShapeError(f"--ranks {ranks}: {name} has {machine.ranks} ranks; ask for at most that many")
    sample = None if ranks or folded else sampled(machine.ranks)
    used = ranks or len(sample or range(machine.ranks))
    whole = machine.rank_grid if used == machine.ranks else None
    names = tuple(endpoint["name"] for endpoint in machine.endpoints())
    return Target(
        name=name,
        machine_name=machine.name,
        executor="sim",
        extent=Extent("modelled", used, grid or whole, last_cache=_modelled_cache(machine)),
        endpoint_names=tuple(names[endpoint] for endpoint in sample) if sample else names,
        machine=machine,
        sample=sample,
        recipe=recipe,
    )


def sampled(ranks: int) -> tuple[int, ...] | None:
    """Endpoints that stand for a machine with too many: evenly spread, so that every level has a share."""
    if ranks <= MOST_RANKS:
        return None
    return tuple(rank * ranks // MOST_RANKS for rank in range(MOST_RANKS))


def _measured_cache() -> int:
    """As the operating system says."""
    return max((cache["bytes"] for cache in _native.caches()), default=LAST_CACHE)


def _modelled_cache(machine: _native.Machine) -> int:
    """Of a described memory, the level before the last; of a single level so much that sweeps reach its end."""
    sizes = machine.memory_levels()
    if len(sizes) > 1:
        return sizes[-2]
    return sizes[0] // 8 if sizes else LAST_CACHE


def _check_grid(grid: tuple[int, int], ranks: int) -> None:
    """A grid of another size would be left out of every experiment without a word."""
    columns, rows = grid
    if columns * rows != ranks:
        raise ShapeError(
            f"--grid {columns}x{rows}: {columns * rows} places for {ranks} ranks; "
            f"make them equal, with `--ranks {columns * rows}` or another grid"
        )


def _threads(ranks: int | None, grid: tuple[int, int] | None) -> Target:
    from linkwright.store.environment import processor_name

    cpus = _native.cpus()
    used = ranks or len(cpus)
    names = [f"cpu {cpu}" for cpu in cpus]
    # Ranks beyond the processors share them; the rows say so.
    names += [f"shared {i}" for i in range(len(cpus), used)]
    return Target(
        name="threads",
        machine_name=processor_name(),
        executor="threads",
        extent=Extent("measured", used, grid, last_cache=_measured_cache()),
        endpoint_names=tuple(names),
    )


def _mpi(ranks: int | None, grid: tuple[int, int] | None) -> Target:
    from linkwright.executors.mpi.world import world

    job = world()
    if ranks is not None and ranks > job.size:
        raise ShapeError(
            f"--ranks {ranks}: the MPI job has {job.size} ranks; "
            f"start as many with `mpirun -np {ranks}`, or ask for fewer"
        )
    return Target(
        name="mpi",
        machine_name=job.machine_name(),
        executor="mpi",
        extent=Extent("measured", ranks or job.size, grid, functools.partial(own.algorithms, "mpi")),
        endpoint_names=job.endpoint_names(),
        world=job,
    )


def _cuda(ranks: int | None, grid: tuple[int, int] | None) -> Target:
    from linkwright.executors.cuda.clocks import settled
    from linkwright.executors.cuda.device import asked

    with asked("cuda", 1) as (gpu,):
        clocks = settled(gpu)
        name, about = gpu.name, gpu.environment()
    sms = sorted(clocks.sms)
    if ranks is not None and ranks > len(sms):
        raise ShapeError(f"--ranks {ranks}: {name} has {len(sms)} SMs, one for each rank; ask for at most that many")
    chosen = sms[:ranks] if ranks else [sms[i] for i in sampled(len(sms)) or range(len(sms))]
    return Target(
        name="cuda",
        machine_name=name,
        executor="cuda",
        extent=Extent(
            "measured", len(chosen), grid, functools.partial(own.algorithms, "cuda"), about["l2_bytes"] or LAST_CACHE
        ),
        endpoint_names=tuple(f"SM {sm}" for sm in chosen),
        sms=tuple(chosen),
        about={**about, "calibration": clocks.calibration(), "endpoints": chosen},
    )


def _gpus(ranks: int | None, grid: tuple[int, int] | None) -> Target:
    from linkwright.executors import gpus
    from linkwright.executors.cuda.device import asked

    with asked("gpus") as devices:
        found = [device.environment() for device in devices]
    # Of one GPU alone everything is planned, and then waived with the reason.
    most = max(gpus.LEAST, len(found))
    if ranks is not None and ranks > most:
        raise ShapeError(f"--ranks {ranks}: this node shows {len(found)} GPUs; ask for at most {most}")
    used = ranks or most
    return Target(
        name="gpus",
        machine_name=f"{len(found)} x {found[0]['gpu']}",
        executor="gpus",
        extent=Extent("measured", used, grid, functools.partial(own.algorithms, "gpus")),
        endpoint_names=tuple(f"GPU {number}" for number in range(used)),
        about={"gpus": found},
    )
