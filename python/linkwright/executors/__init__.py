"""Executors: what runs schedules, each an object behind `Executor`, and the one list of those that are built in.

    sim         described machines, modelled       threads    processors of this host
    mpi         ranks of an MPI job                cuda       SMs of a GPU
    gpus        GPUs of a node                     metalium   cores of a Tenstorrent chip
    reference   the judge: data only, no times

`protocol.py` documents the interface. To add an executor: a package with a subclass of `Executor`, a line here, a test,
and a page in docs/. All other code uses the object and compares no names. Installed packages add more (`plugins.py`);
`find` knows both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from linkwright import machines
from linkwright.ask.question import Question
from linkwright.base.errors import PluginError, ShapeError, UsageError, unknown
from linkwright.base.units import format_grid
from linkwright.machines import AS_DESCRIBED, Variant

from .cuda import Cuda
from .gpus import Gpus
from .metalium import Metalium
from .mpi import Mpi
from .protocol import ANY, CONDITIONS, MOST_RANKS, Executor, Target
from .reference import Reference
from .sim import ModelledTarget, Recipe, Sim
from .threads import Threads

EXECUTORS: dict[str, Executor] = {e.key: e for e in (Reference(), Sim(), Threads(), Mpi(), Cuda(), Gpus(), Metalium())}


def find(name: str) -> Executor | None:
    """The executor of a key, built in or of an installed package; None if there is none, or a machine has the name.

    Raises a `PluginError` if the package is broken.
    """
    if name in EXECUTORS or _is_machine(name):
        return EXECUTORS.get(name)
    from . import plugins  # short commands do not look at packages

    return plugins.load(name) if name in plugins.installed() else None


def keys() -> list[str]:
    """The keys of all executors; loads no package."""
    from . import plugins

    return [*EXECUTORS, *(key for key in plugins.installed() if not _is_taken(key))]


def _is_machine(name: str) -> bool:
    return machines.is_name(name) or name.endswith(".toml") or "/" in name


def _is_taken(key: str) -> bool:
    """Whether linkwright has the name, so that no package can give it."""
    return key in EXECUTORS or _is_machine(key)


def is_modelled(key: str | None) -> bool:
    """Whether rows of this executor are modelled; imported rows may name one that we do not know."""
    return key in EXECUTORS and EXECUTORS[key].modelled


def is_host(key: str | None) -> bool:
    """Whether rows of this executor are about the processors that `environment.json` describes."""
    return key not in EXECUTORS or EXECUTORS[key].is_host


def resolve(
    names: str,
    ranks: int | None = None,
    grid: tuple[int, ...] | None = None,
    most: int = MOST_RANKS,
    kept: Mapping[str, tuple[str, str]] | None = None,
    variant: Variant = AS_DESCRIBED,
) -> list[Target]:
    """The targets named in a list such as `threads,wormhole-n150`: executors and described machines.

    `most` ranks of a described machine take part without a choice; `kept` has text and file name of machines that are
    not read again; described machines are taken as the `variant` has them. Raises a `UsageError` or a `ShapeError`.
    """
    if ranks is not None and ranks < 1:
        raise ShapeError(f"--ranks {ranks}: a collective has at least 1 rank")
    wanted = [name.strip() for name in names.split(",")]
    for place, name in enumerate(wanted):
        if name in wanted[:place]:
            raise UsageError(f"--on {names}: `{name}` is named twice; name it once")
    on_host = [executor for executor in map(find, wanted) if executor and executor.is_host]
    if len(on_host) > 1 and not any(executor.untimed for executor in on_host):
        keys_on_host = " and ".join(executor.key for executor in on_host)
        raise UsageError(
            f"--on {names}: {keys_on_host} would compete for the processors of this host; run them separately"
        )
    found = [resolve_one(name, ranks, grid, most, (kept or {}).get(name), variant) for name in wanted]
    _check_told_apart(names, found)
    if grid:
        _check_grid(grid, [target.extent.ranks for target in found])
    return found


def resolve_one(
    name: str,
    ranks: int | None = None,
    grid: tuple[int, ...] | None = None,
    most: int = MOST_RANKS,
    kept: tuple[str, str] | None = None,
    variant: Variant = AS_DESCRIBED,
) -> Target:
    """The target of one name after --on."""
    if executor := find(name):
        if variant:
            raise UsageError(
                f"--on {name}: an executor measures the machine as it is; --nodes, --fabric, --without and --degrade "
                "apply to described machines"
            )
        return executor.resolve(ranks, grid)
    if not _is_machine(name):
        timed = [key for key in keys() if key not in EXECUTORS or not EXECUTORS[key].untimed]
        known = [*machines.names(), *timed]
        lists = "linkwright list machines", "linkwright list executors"
        raise unknown("machine or executor", name, known, where="--on", lists=lists)
    return described(Recipe(name, *(kept or machines.source(name, variant)), ranks, grid, most, variant))


def _check_told_apart(names: str, targets: list[Target]) -> None:
    """Refuse two files that describe machines of one name: rows of both could not be told apart."""
    seen: dict[str, str] = {}
    for target in targets:
        if target.modelled and seen.setdefault(target.machine_name, target.name) != target.name:
            raise UsageError(
                f"--on {names}: {seen[target.machine_name]} and {target.name} both describe a machine called "
                f"`{target.machine_name}`, so their rows could not be told apart; rename one, or make two runs"
            )


def described(recipe: Recipe) -> ModelledTarget:
    """The described machine of a recipe, with a size if its file leaves that open."""
    return EXECUTORS["sim"].described(recipe)


def check_obeyed(executor: Executor, question: Question) -> None:
    """Refuse a question under a condition that the executor would ignore, though its rows would name it."""
    for name, usual in CONDITIONS.items():
        value = getattr(question, name, usual)
        if value != usual and name not in executor.obeys:
            stated = "->".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()
            able = [f"--on {key}" for key, one in EXECUTORS.items() if name in one.obeys and not one.modelled]
            raise UsageError(
                f"{question.part}: `{name} = {stated}`: --on {executor.key} cannot apply it, so its rows would "
                f"be mislabelled; omit it, or simulate a described machine (suites: `modelled = {{ {name} = ... }}`)"
                + (f" or {', '.join(able)}" if able else "")
            )


def entries() -> list[dict[str, object]]:
    """All executors, for `list`; one of a package that cannot be used says why."""
    from . import plugins

    taken = [
        plugins.unusable(key, f"the name `{key}` is taken by linkwright")
        for key in plugins.installed()
        if _is_taken(key)
    ]
    return [*map(entry, keys()), *taken]


def entry(key: str) -> dict[str, object]:
    """One executor, for `list` and `describe`."""
    if key in EXECUTORS:
        return EXECUTORS[key].entry()
    from . import plugins

    try:
        found = plugins.load(key)
    except PluginError as error:
        return plugins.unusable(key, str(error))
    package = plugins.package(plugins.installed()[key][0])
    own = [algorithm.key for algorithm in found.own]
    shown = {**found.entry(), "summary": f"{package}: {found.summary}", "package": package}
    return shown | ({"own_algorithms": own} if own else {})


def own_algorithms() -> list[dict[str, object]]:
    """Algorithms of libraries and devices of built-in executors, for `list` and `describe`."""
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
                    f"algorithm `{algorithm}`: only {where} has it ({has}); use that, or another algorithm"
                )
    return None


def _check_grid(grid: tuple[int, ...], ranks: list[int]) -> None:
    """Refuse a grid that fits none of the targets, which every experiment would silently ignore."""
    places = math.prod(grid)
    if places not in ranks:
        raise ShapeError(
            f"--grid {format_grid(grid)}: {places} places for {ranks[0]} ranks; "
            f"make the two equal, with `--ranks {places}` or another grid"
        )


__all__ = ["ANY", "EXECUTORS", "Executor", "ModelledTarget", "Recipe", "Target"]
