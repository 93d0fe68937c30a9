"""Executors: what runs schedules, each an object behind `Executor`, and the one list of them.

    sim         described machines, modelled       threads    processors of this host
    mpi         ranks of an MPI job                cuda       SMs of a GPU
    gpus        GPUs of a node                     reference  the judge: data only, no times

`protocol.py` documents the interface. To add an executor: a package with a subclass of `Executor`, a line here, a test,
and a page in docs/. All other code uses the object and compares no names.
"""

from __future__ import annotations

from linkwright import machines, registry
from linkwright.errors import ShapeError, UsageError, unknown
from linkwright.experiment import Experiment

from .cuda import Cuda
from .gpus import Gpus
from .mpi import Mpi
from .protocol import ANY, CONDITIONS, MOST_RANKS, Executor, Target
from .reference import Reference
from .sim import ModelledTarget, Recipe, Sim
from .threads import Threads

EXECUTORS: dict[str, Executor] = {e.key: e for e in (Reference(), Sim(), Threads(), Mpi(), Cuda(), Gpus())}


def is_modelled(key: str | None) -> bool:
    """Whether rows of this executor are modelled; imported rows may name one that we do not know."""
    return key in EXECUTORS and EXECUTORS[key].modelled


def is_host(key: str | None) -> bool:
    """Whether rows of this executor are about the processors that `environment.json` describes."""
    return key not in EXECUTORS or EXECUTORS[key].is_host


def resolve(
    names: str,
    ranks: int | None = None,
    grid: tuple[int, int] | None = None,
    walk: str | None = None,
    most: int = MOST_RANKS,
) -> list[Target]:
    """The targets named in a list such as `threads,wormhole-n150`: executors and described machines.

    `walk` (`fold` or `stream`) simulates machines without a schedule; `most` ranks of a described machine take part
    without a choice. Raises a `UsageError` or a `ShapeError`.
    """
    if ranks is not None and ranks < 1:
        raise ShapeError(f"--ranks {ranks}: a collective has at least 1 rank")
    wanted = [name.strip() for name in names.split(",")]
    for place, name in enumerate(wanted):
        if name in wanted[:place]:
            raise UsageError(f"--on {names}: `{name}` is named twice; name it once")
    on_host = [name for name in wanted if name in EXECUTORS and EXECUTORS[name].is_host]
    if len(on_host) > 1 and not any(EXECUTORS[name].untimed for name in on_host):
        raise UsageError(
            f"--on {names}: {' and '.join(on_host)} would compete for the processors of this host; make two runs"
        )
    found = [resolve_one(name, ranks, grid, walk, most) for name in wanted]
    if len(found) == 1 and grid:  # of several machines, it is meant for those that it fits
        _check_grid(grid, found[0].extent.ranks)
    return found


def resolve_one(
    name: str,
    ranks: int | None = None,
    grid: tuple[int, int] | None = None,
    walk: str | None = None,
    most: int = MOST_RANKS,
) -> Target:
    """The target of one name after --on."""
    if name in EXECUTORS:
        return EXECUTORS[name].resolve(ranks, grid)
    if name not in registry.keys("machines") and not name.endswith(".toml") and "/" not in name:
        timed = [key for key, executor in EXECUTORS.items() if not executor.untimed]
        known = [*registry.keys("machines"), *timed]
        lists = "linkwright list machines", "linkwright list executors"
        raise unknown("machine or executor", name, known, where="--on", lists=lists)
    return described(Recipe(name, *machines.source(name), ranks, grid, walk, most))


def described(recipe: Recipe) -> ModelledTarget:
    """The described machine of a recipe, with a size if its file leaves that open."""
    return EXECUTORS["sim"].described(recipe)


def check_obeyed(executor: Executor, experiment: Experiment) -> None:
    """Refuse an experiment under a condition that the executor would ignore, though its rows would name it."""
    for name, usual in CONDITIONS.items():
        value = getattr(experiment, name)
        if value != usual and name not in executor.obeys:
            stated = "->".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()
            able = [f"--on {key}" for key, one in EXECUTORS.items() if name in one.obeys and not one.modelled]
            raise UsageError(
                f"{experiment.part}: `{name} = {stated}`: --on {executor.key} cannot obey it, and its rows would name "
                f"what was not done; leave it out, or ask a described machine (suites: `modelled = {{ {name} = ... }}`)"
                + (f" or {', '.join(able)}" if able else "")
            )


def entries() -> list[dict[str, object]]:
    """All executors, for `list` and `describe`."""
    return [executor.entry() for executor in EXECUTORS.values()]


def own_algorithms() -> list[dict[str, object]]:
    """Algorithms of executors' libraries and devices, for `list` and `describe`."""
    return [
        {"key": own.key, "summary": own.summary, "executor": executor.key, "collectives": list(own.collectives)}
        | ({"needs": own.needs} if own.needs else {})
        for executor in EXECUTORS.values()
        for own in executor.own
    ]


def elsewhere(algorithm: str) -> UsageError | None:
    """The error for an algorithm that only some executor has; None if none has it."""
    for executor in EXECUTORS.values():
        for own in executor.own:
            if own.key == algorithm:
                has = ", ".join(own.collectives)
                where = own.needs if executor.modelled else f"`--on {executor.key}`"
                return UsageError(
                    f"algorithm `{algorithm}`: only {where} has it ({has}); ask there, or for another one"
                )
    return None


def _check_grid(grid: tuple[int, int], ranks: int) -> None:
    """Refuse a grid of another size, which every experiment would silently ignore."""
    columns, rows = grid
    if columns * rows != ranks:
        raise ShapeError(
            f"--grid {columns}x{rows}: {columns * rows} places for {ranks} ranks; "
            f"make them equal, with `--ranks {columns * rows}` or another grid"
        )


__all__ = ["ANY", "EXECUTORS", "Executor", "ModelledTarget", "Recipe", "Target"]
