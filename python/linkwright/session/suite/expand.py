"""From a suite and the extent of a machine to the list of experiments.

The suite is the same for every machine; the machine decides the number of ranks and which endpoints form pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from linkwright.ask import sources
from linkwright.ask.exchange import exchange_of, refuse_unstated
from linkwright.ask.question import ALL, DEFAULT, Pattern, Question, collectives
from linkwright.base.errors import ShapeError, UsageError, check_known, unknown
from linkwright.executors import check_obeyed, elsewhere, probes
from linkwright.executors.protocol import Extent, Target
from linkwright.libraries import library
from linkwright.libraries.questions import collective_question, own_question, registered, source_of

from . import axes
from .load import RANKS, Part, Suite

# More would fill memory before the first one runs.
MOST_EXPERIMENTS = 1_000_000
# As an algorithm: those that the machine's own library provides.
OWN = "own"


def expand(suite: Suite, extent: Extent) -> list[Question]:
    """All experiments of `suite` on a machine of this extent."""
    return list(_told_apart(e for part in suite.parts for e in _part(part.on(extent.kind), extent)).values())


def _told_apart(questions: Iterable[Question]) -> dict[str, Question]:
    """The experiments by their keys; one that is asked for twice, as by two equal sizes, is run once."""
    seen: dict[str, Question] = {}
    for question in questions:
        first = seen.setdefault(question.key, question)
        if first is not question and first != question:
            raise UsageError(
                f"two schedules are called {question.algorithm}, so their results could not be told apart; "
                "rename one of the files or functions"
            )
        if len(seen) > MOST_EXPERIMENTS:
            raise _too_many()
    return seen


def _too_many() -> UsageError:
    return UsageError(
        f"more than {MOST_EXPERIMENTS:,} experiments; ask for fewer ranks, sizes or algorithms, or for a placement "
        "other than every pair"
    )


def expand_on(suite: Suite, target: Target, level: str) -> list[Question]:
    """The experiments of `suite` on a target; refuses conditions that its executor would ignore."""
    found = expand(suite.at(level), target.extent)
    for question in found:
        check_obeyed(target.executor, question)
    return found


def algorithms_of(collective: str, wanted: tuple[str, ...] = (ALL,), own: Sequence[str] = ()) -> list[str]:
    """The algorithms of a collective that `wanted` names, in its order.

    `all` stands for the machine's `own`, those of its library, and then the whole registry; `own` for the former alone.
    Sources and algorithms of packages are run where they are named only.
    """
    known = [*own, *(name for of, name in registered() if of == collective)]
    groups = {ALL: known, OWN: own}
    named = [name for word in wanted for name in groups.get(word, [word])]
    for name in named:
        if name not in known and not (own and library.is_plan(name)) and not source_of(collective, name):
            raise elsewhere(name) or unknown(
                f"algorithm of {collective}", name, known, lists="linkwright list algorithms"
            )
    return list(dict.fromkeys(named))


def _part(part: Part, extent: Extent) -> Iterator[Question]:
    if part.probe:
        found = axes.questions(
            part.name, probes.find(part.probe), part.axes, extent.ranks, extent.last_cache, _placements(part, extent)
        )
        # A suite may name more threads than a machine has, as it may name more ranks.
        return (question for question in found if question.ranks <= extent.ranks)
    if part.schedules:
        return _schedules(part, extent)
    return _pattern(part, extent) if part.pattern else _collective(part, extent)


def _collective(part: Part, extent: Extent) -> Iterator[Question]:
    seen = set()
    even = [name for name, traits in collectives().items() if not traits["uneven"]]
    exchange = exchange_of(part.exchange)
    for collective in even if "all" in part.collectives else part.collectives:
        check_known("collective", collective, collectives(), where=part.name, lists="linkwright list collectives")
        refuse_unstated(collective, exchange)
        names = _names(part, extent, collective)
        placed = ((name, ranks) for name in names for ranks in _ranks(part, extent, source_of(collective, name)))
        for (algorithm, ranks), size in itertools.product(placed, part.sizes):
            _check_root(part, ranks)
            made = collective_question(
                part.name, collective, algorithm, ranks, size, part.dtype, part.op, **_how(part),
                grid=_grid(extent, ranks),
                root=part.root if collectives()[collective]["rooted"] else 0, exchange=exchange,
            )  # fmt: skip
            # Sizes are rounded to blocks, and a barrier has none, so different sizes may become the same.
            if made not in seen:
                seen.add(made)
                yield extent.planned(made)


def _names(part: Part, extent: Extent, collective: str) -> list[str]:
    """The algorithms of a part; where it names none, the plan of the library, unless a path or policy is asked for."""
    plan = None if part.path or part.issue else extent.default(collective)
    usual = (plan or ALL,) if part.algorithms == (DEFAULT,) else part.algorithms
    own = extent.own_algorithms(collective)
    return algorithms_of(collective, tuple(_with_alternatives(usual, extent, collective, own)), own)


def _with_alternatives(names: Sequence[str], extent: Extent, collective: str, own: Sequence[str]) -> Iterator[str]:
    """Each name; `nccl-2.27/all` stands for the plan and for what the library could have chosen instead."""
    for name in names:
        stem, _, rest = name.partition("/")
        stem = extent.default(collective) or stem if stem == DEFAULT else stem
        if rest == library.ALTERNATIVES and not own:
            raise UsageError(f"--alternatives: no library plans {collective} on this machine; omit it")
        yield from extent.alternatives(collective, stem) if rest == library.ALTERNATIVES else (name,)


def _schedules(part: Part, extent: Extent) -> Iterator[Question]:
    seen = set()
    for name in part.schedules:
        source = sources.find(name)
        for ranks, size in itertools.product(_ranks(part, extent, source), part.sizes or (source.size_bytes,)):
            made = own_question(
                part.name, name, ranks, None if size == source.size_bytes else size, part.dtype, part.op, **_how(part),
                grid=_grid(extent, ranks), root=part.root,
            )  # fmt: skip
            if made.key not in seen:
                seen.add(made.key)
                yield made


def _pattern(part: Part, extent: Extent) -> Iterator[Question]:
    for ranks, size, pair in itertools.product(_ranks(part, extent), part.sizes, _placements(part, extent)):
        _check_root(part, ranks)
        how = _how(part)
        if extent.traffic and not (part.path or part.issue):
            how |= zip(("path", "issue"), extent.traffic, strict=True)
        made = Pattern(
            part.name, part.pattern, ranks, size, part.dtype, root=part.root, placement=pair,
            grid=_grid(extent, ranks), messages=part.messages, both_ways=part.both_ways, **how,
        )  # fmt: skip
        yield made
        if size == part.sizes[-1] and part.rising_to and extent.kind == "measured":
            yield from _further(made, part.sizes[-2], part.rising_to)


def _further(last: Pattern, before: int, rising_to: int) -> Iterator[Pattern]:
    """The sweep that ends with `last`, continued with the same factor: each size for when the rate rose up to there."""
    factor = last.size_bytes // before
    seen = replace(last, size_bytes=before)
    while last.size_bytes * factor <= rising_to:
        following = replace(last, size_bytes=last.size_bytes * factor, rising=(seen.key, last.key, factor))
        yield following
        seen, last = last, following


def _check_root(part: Part, ranks: int) -> None:
    if part.root >= ranks:
        raise ShapeError(f"root {part.root}: there are ranks 0 to {ranks - 1}; choose one of them")


def _placements(part: Part, extent: Extent) -> list[tuple[int, int] | None]:
    """Topology order, every ordered pair of endpoints, or the first endpoint paired with 1, 2, 4, ... and the last."""
    if part.placement == "topology":
        return [None]
    if part.placement == "doubling":
        others = [2**k for k in range(32) if 2**k < extent.ranks]
        return [(0, other) for other in dict.fromkeys([*others, extent.ranks - 1])]
    if extent.ranks**2 > MOST_EXPERIMENTS:
        raise _too_many()
    return list(itertools.permutations(range(extent.ranks), 2))


def _grid(extent: Extent, ranks: int) -> tuple[int, int] | None:
    """The grid of the machine, or the one that was asked for, where the ranks fill it."""
    return extent.grid if extent.grid and ranks == math.prod(extent.grid) else None


def _how(part: Part) -> dict[str, object]:
    return {"issue": part.issue, "path": part.path, "skew": part.skew, "arithmetic": part.arithmetic}


def _ranks(part: Part, extent: Extent, source: sources.Source | None = None) -> list[int]:
    """The rank counts of a part that the machine has room for; a schedule in a file has one of its own."""
    if source and source.ranks and part.ranks in RANKS and source.ranks <= extent.ranks:
        return [source.ranks]
    if part.ranks == "all":
        return [extent.ranks]
    if part.ranks == "doubling":
        powers = [2**k for k in range(1, 31) if 2**k <= extent.ranks]
        return powers if not powers or powers[-1] == extent.ranks or extent.ranks % 2 else [*powers, extent.ranks]
    return [ranks for ranks in part.ranks if ranks <= extent.ranks]
