"""Described machines, modelled: what `--on MACHINE` resolves to, and the simulation of one schedule on it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwright import _native, machines
from linkwright.ask import schedules
from linkwright.base.errors import ShapeError
from linkwright.libraries import library, questions
from linkwright.libraries.questions import Seats
from linkwright.machines import AS_DESCRIBED, Variant
from linkwright.machines.variant import grid_of
from linkwright.store.record import Outcome

from .protocol import (
    CONDITIONS,
    LAST_CACHE,
    MOST_RANKS,
    Executor,
    Extent,
    Launch,
    OwnAlgorithm,
    Target,
    partial,
    sampled,
)

# Ranks of a machine whose file leaves the number open, unless the user asks for a number.
OPEN_RANKS = 16
OPEN_GRID = (8, 8)


@dataclass(frozen=True)
class Recipe:
    """Plain values from which any process can make the same modelled target."""

    name: str  # as typed after --on
    text: str  # of the machine file
    file: str  # its name, for messages
    ranks: int | None = None
    grid: tuple[int, ...] | None = None
    most: int = MOST_RANKS  # a machine with more endpoints is represented by 64, unless `ranks` is given
    variant: Variant = AS_DESCRIBED  # that the text is of


@dataclass(frozen=True, kw_only=True)
class ModelledTarget(Target):
    """A described machine."""

    machine: _native.Machine
    recipe: Recipe
    seats: Seats  # endpoint of each of so many ranks; None: the first ones

    @property
    def sample(self) -> tuple[int, ...] | None:
        """The endpoint of each rank, if all of them take part."""
        return self.seats(self.extent.ranks)


class Sim(Executor):
    """The simulator; users name a machine instead, so `--on sim` alone is refused."""

    key = "sim"
    summary = "ranks are endpoints of a described machine, simulated"
    description = (
        "Integer picoseconds on the machine's fabric model: exact and the same on any number of threads. Name a "
        "machine with --on; `linkwright list machines` shows those that are shipped, and a path names a file of yours."
    )
    modelled = True
    obeys = frozenset(CONDITIONS)
    untimed = "name a machine to simulate on"
    own = tuple(
        OwnAlgorithm(
            f"{name}-{version}",
            *about,
            f"a machine whose `[library]` is {name}, with a path for each mode that the version needs",
        )
        for name, version, *about in library.entries()
    )

    def described(self, recipe: Recipe) -> ModelledTarget:
        """The machine of a recipe, with a size if its file leaves that open."""
        machine, ranks, grid = _sized(recipe), recipe.ranks, recipe.grid
        if ranks is not None and not machine.open_size and ranks > machine.ranks:
            nodes = recipe.variant.nodes or (1 if machines.load(recipe.name).cluster else None)
            enough = range(-(-ranks * nodes // machine.ranks), ranks + 1) if nodes else ()
            count = next((count for count in enough if ranks % count == 0), None)
            more = f", or for --nodes {count}" if count else ""
            said = f"--ranks {ranks}: {recipe.name} has {machine.ranks} ranks; ask for at most that many{more}"
            raise ShapeError(said)
        seats = _seats(machine, recipe)
        sample = seats(ranks or 0)
        used = ranks or len(sample or range(machine.ranks))
        names = tuple(endpoint["name"] for endpoint in machine.endpoints())
        return ModelledTarget(
            name=recipe.name,
            executor=self,
            machine_name=machine.name,
            extent=Extent(
                "modelled",
                used,
                grid or grid_of(machine, used),
                own_algorithms=functools.partial(library.algorithms, machine),
                default=functools.partial(library.default, machine),
                alternatives=functools.partial(library.alternatives, machine),
                planned=functools.partial(questions.planned, machine, seats),
                last_cache=_last_cache(machine),
                traffic=machine.traffic,
            ),
            endpoint_names=tuple(names[endpoint] for endpoint in sample) if sample else names,
            machine=machine,
            recipe=recipe,
            seats=seats,
            partial=partial(used, machine.ranks, "endpoints", _taken(recipe, sample)),
        )

    def launch(self, target: Target, launch: Launch, *, isolated: bool = True) -> Iterator[Outcome]:
        """Never called: a modelled time is exact, so `suite.model` simulates each experiment once."""
        raise AssertionError("a modelled target has no launches")


def _seats(machine: _native.Machine, recipe: Recipe) -> Seats:
    """Return where ranks are: as the variant says, or evenly spread over a large machine if nobody asked for more."""
    variant = recipe.variant
    asked = variant.chooses or (variant.nodes and recipe.ranks)
    if asked:
        return lambda ranks: variant.places(machine, ranks or None)
    spread = None if recipe.ranks or variant.nodes else sampled(machine.ranks, recipe.most)
    return lambda ranks: spread[: ranks or None] if spread else None


def _taken(recipe: Recipe, sample: tuple[int, ...] | None) -> str:
    """Return which endpoints of a machine take part, in words."""
    if sample is None:
        return "the first ones"
    if recipe.variant.place:
        return "those of --place"
    return "the first ones of each node" if recipe.variant.ranks_per_node or recipe.ranks else "evenly spread"


def _sized(recipe: Recipe) -> _native.Machine:
    """The machine of a recipe; one with more endpoints than fit in memory leaves their number open."""
    machine = machines.read(recipe.text, recipe.file)
    if machine.open_size == "ranks" and (recipe.ranks or 0) > schedules.MOST_RANKS:
        return machine
    return sized(machine, recipe.ranks, recipe.grid)


def sized(machine: _native.Machine, ranks: int | None, grid: Sequence[int] | None) -> _native.Machine:
    """The machine with the size that is asked for, or a usual one, if its file leaves that open."""
    if not machine.open_size:
        return machine
    if grid or (machine.open_size == "grid" and ranks is None):
        return machine.with_grid(*(grid or OPEN_GRID))
    return machine.with_endpoints(ranks or OPEN_RANKS)


def _last_cache(machine: _native.Machine) -> int:
    """The level before the last of a described memory; for a single level, enough for sweeps to reach its end."""
    sizes = machine.memory_levels()
    if len(sizes) > 1:
        return sizes[-2]
    return sizes[0] // 8 if sizes else LAST_CACHE
