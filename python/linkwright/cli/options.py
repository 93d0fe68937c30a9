"""Options that several verbs share, named as in nccl-tests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwright.ask.exchange import PACKED
from linkwright.ask.question import ALL, DEFAULT, DTYPES, OPS, check_size
from linkwright.ask.question import collectives as known_collectives
from linkwright.base import units
from linkwright.base.errors import ShapeError, UsageError, check_known
from linkwright.cli import values

if TYPE_CHECKING:
    from linkwright.ask.sources import Source


class Command(click.Command):
    """A command that refuses an option given twice, of which click would silently take the last value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: an option with one value is given again.
        """
        if not ctx.resilient_parsing:  # as shell completion does
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for option in dict.fromkeys(order):
                if _takes_one(option) and order.count(option) > 1:
                    raise click.UsageError(f"{option.opts[0]} is given {order.count(option)} times; give it once", ctx)
        return super().parse_args(ctx, args)


def _takes_one(parameter: click.Parameter) -> bool:
    """Whether a parameter is an option that takes exactly one value."""
    return isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag or parameter.count)


def together(*options: Callable) -> Callable:
    """Several options as one decorator, in their order."""

    def decorate(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def on(*name: str, **more: Any) -> Callable:
    """The option that names a described machine, or its file; `name` is that of its argument."""
    return click.option("--on", *name, **{"metavar": "MACHINE", "shell_complete": completed("machines"), **more})


def file(*names: str, metavar: str = "FILE", **more: Any) -> Callable:
    """An option that names a file, or a folder."""
    return click.option(*names, type=click.Path(path_type=Path), metavar=metavar, **more)


def page(*names: str, **more: Any) -> Callable:
    """An option that names a page to write."""
    return click.option(*names, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html", **more)


sizes = together(
    click.option(
        "-b",
        "--min-bytes",
        type=values.SIZE,
        default="8",
        show_default=True,
        help=f"Smallest size: {units.SIZE_HELP}.",
    ),
    click.option("-e", "--max-bytes", type=values.SIZE, default="64K", show_default=True, help="Largest size."),
    click.option(
        "-f", "--factor", type=int, default=2, show_default=True, help="Multiply the size by this at each step."
    ),
    click.option("--sizes", "size_list", metavar="A,B,C", help="Use these sizes instead of a sweep; `1M..8G` doubles."),
)

_op = click.option("-o", "--op", type=click.Choice(OPS), default="sum", show_default=True, help="Reduction operator.")
_root = click.option("-r", "--root", type=values.ROOT, default=0, show_default=True, help="Root of rooted collectives.")


def _data(dtypes: Iterable[str], help: str) -> Callable:
    dtype = click.option("-d", "--dtype", type=click.Choice(list(dtypes)), default="f32", show_default=True, help=help)
    return together(dtype, _op, _root)


data = _data(DTYPES, "Data type.")
# The same for verbs that know how tokens of a dispatch are packed.
packed_data = _data([*DTYPES, *PACKED], "Data type; fp8 and nvfp4: of a dispatch.")

shape = together(
    click.option(
        "--algorithm",
        "-a",
        default=DEFAULT,
        metavar="A,B",
        help="Algorithms, `all`, or `own`, those of the machine's library; sources among them are schedules of yours.  "
        "[default: the plan of a described machine's library if it has one and no path or issue policy is asked for, "
        "otherwise all]",
    ),
    click.option(
        "--ranks", "-p", type=values.RANK_COUNTS,
        help="Number of ranks, or several: `8`, `2,4,8`, `1..8`; default: all that the machine has.",
    ),
    click.option(
        "--grid", type=values.GRID, help="Arrange the ranks in columns x rows, for two-dimensional algorithms."
    ),
)  # fmt: skip

_variant = together(
    click.option(
        "--nodes", type=int, metavar="N",
        help="For described machines: N copies of the node that the file describes, as one machine.",
    ),
    click.option(
        "--fabric", metavar="NETWORK[,KEY=X]",
        help="With --nodes: the network between them, such as `ndr-fat-tree,taper=2` (`linkwright list networks`); "
        "default: that of the machine.",
    ),
    click.option(
        "--without", multiple=True, metavar="NAME",
        help="For described machines: remove this link (`NIC 3 - leaf 3`), node (`NIC 3`), class of links (`nvlink`) "
        "or transport; may be repeated.",
    ),
    click.option(
        "--degrade", multiple=True, metavar="NAME=X",
        help="For described machines: multiply the rates of a link, node, class or transport by X; may be repeated.",
    ),
)  # fmt: skip

_seats = together(
    click.option(
        "--ranks-per-node", type=values.RANKS, metavar="N",
        help="For described machines: the first N endpoints of each node take part.",
    ),
    click.option(
        "--place", metavar="A,B",
        help="For described machines: the endpoints of ranks 0, 1, ..., such as `node 0 GPU 0..3,node 1 GPU 0..3`.",
    ),
)  # fmt: skip


def variant(function: Callable) -> Callable:
    """The options that change described machines, as one argument `variant` of the command."""

    @functools.wraps(function)
    def command(
        *args: object, nodes: int | None, fabric: str | None, without, degrade,
        ranks_per_node: int | None = None, place: str | None = None, **asked: object,
    ) -> object:  # fmt: skip
        from linkwright.machines.variant import Variant

        names = tuple(place.split(",")) if place else ()
        found = Variant.of(nodes, fabric, without, degrade, ranks_per_node, names)
        return function(*args, variant=found, **asked)

    return _variant(command)


def seated(function: Callable) -> Callable:
    """The same, and those that say which endpoints take part."""
    return _seats(variant(function))


traffic = together(
    click.option("--messages", type=click.IntRange(1), metavar="N", help="Messages per pair of a pattern; default: 1."),
    click.option("--both-ways", is_flag=True, help="The messages of a pattern also go the other way."),
    click.option(
        "--issue", metavar="POLICY", help="blocking, window(k), batch(k) or unlimited; default: the machine's."
    ),
)

outputs = file(
    "--out", "outputs", multiple=True,
    help="Also write the rows to FILE; its suffix chooses the format (`linkwright list exporters`); may be repeated.",
)  # fmt: skip

runs = file(
    "--runs", "root_folder", default="runs", show_default=True, metavar="FOLDER",
    help="Folder that holds the run folders.",
)  # fmt: skip

seed = click.option("--seed", type=values.SEED, default=0, show_default=True, help="Seed of everything random.")

sampling = together(
    click.option(
        "-n", "--iters", "samples", type=click.IntRange(1), help="Samples per launch; default: until they agree."
    ),
    click.option(
        "-w", "--warmup", type=click.IntRange(1), help="Maximum number of warm-up batches; they end when five agree."
    ),
)

skew = click.option("--skew", metavar="HOW", help="Arrival of ranks: none, uniform:2us, late:RANK:2us, list:0us,1us.")

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

watts = click.option(
    "--watts", type=values.WATTS, metavar="W",
    help="Nominal power of this machine; adds compute rates per watt.",
)  # fmt: skip


target = click.option(
    "--target", type=values.PROPER_SHARE, default="5%", show_default=True,
    help="Measure each value until half of its 95 % interval is within this share of it, or time runs out.",
)  # fmt: skip
time_budget = click.option(
    "--time-budget", type=values.DURATION, default="90s", show_default=True, help="Stop measuring after this time."
)


@dataclass
class View:
    """How tables of results are shown; one for each command that runs."""

    wide: bool = False
    columns: tuple[str, ...] = ()  # instead of the usual ones
    axes: tuple[str, ...] = ()  # of a probe that have a column even at their defaults
    json: bool = False  # one document at the end instead of tables

    @classmethod
    def current(cls) -> View:
        """The view of the command that runs."""
        context = click.get_current_context(silent=True)
        return context.meta.setdefault("linkwright.view", cls()) if context else cls()


def _set(name: str) -> Callable:
    return lambda context, option, value: setattr(View.current(), name, value)


def _set_columns(context: click.Context, _option: click.Parameter, names: str | None) -> None:
    if names is not None:
        from linkwright.cli import groups  # which loads probes and machines

        if View.current().wide:
            raise UsageError("--wide shows all columns, --columns some; give one of the two")
        View.current().columns = groups.chosen(names)


def _set_colour(context: click.Context, _option: click.Parameter, when: str) -> None:
    if when != "auto":
        context.color = when == "always"


colour = click.option(
    "--color", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True,
    expose_value=False, callback=_set_colour, help="Colour; `auto`: on a terminal, unless NO_COLOR is set.",
)  # fmt: skip

view = together(
    click.option(
        "--wide", is_flag=True, is_eager=True, expose_value=False, callback=_set("wide"),
        help="Print all columns, those of nccl-tests first, in lines of any length.",
    ),
    click.option(
        "--columns", metavar="A,B", expose_value=False, callback=_set_columns,
        help="Print these columns, such as size,algorithm,time,time_p99; a wrong name lists all.",
    ),
    click.option("--json", is_flag=True, expose_value=False, callback=_set("json"), help="Print JSON."),
    colour,
)  # fmt: skip


def chosen_sizes(
    collective: str, dtype: str, min_bytes: int, max_bytes: int, factor: int, size_list: str | None
) -> tuple[int, ...]:
    """The requested sizes in bytes, checked against the data type."""
    if size_list is not None and given("min_bytes", "max_bytes", "factor"):
        raise UsageError("--sizes lists all sizes, and --min-bytes, --max-bytes and --factor sweep; omit one side")
    if collective == "barrier":
        if given("size_list", "min_bytes", "max_bytes", "factor"):
            raise UsageError("a barrier moves no data; omit --sizes and what sweeps sizes")
        return (0,)
    if size_list is not None:
        found = units.parse_sizes(size_list)
    else:
        context = click.get_current_context(silent=True)
        asked = context.get_parameter_source("max_bytes") if context else None
        # `-b 1M` alone means a single size, as in nccl-tests.
        if asked == click.core.ParameterSource.DEFAULT and min_bytes > max_bytes:
            max_bytes = min_bytes
        found = units.size_sweep(min_bytes, max_bytes, factor)
    for size in found:
        check_size(collective, size, dtype)
    return tuple(dict.fromkeys(found))


def completed(*kinds: str) -> Callable:
    """Shell completion from the registries of these kinds; completes the last name of a list such as `A,B`."""

    def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from linkwright.base import registry

        before, comma, part = incomplete.rpartition(",")
        return [f"{before}{comma}{key}" for kind in kinds for key in registry.keys(kind) if key.startswith(part)]

    return names


def among(words: Iterable[str]) -> Callable:
    """Shell completion from these words."""
    return lambda ctx, param, incomplete: [word for word in words if word.startswith(incomplete)]


def collectives(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of COLLECTIVE, or of COLLECTIVE/ALGORITHM once it has its slash."""
    from linkwright import _native

    rows = _native.algorithms() if "/" in incomplete else _native.collectives()
    return [row["key"] for row in rows if row["key"].startswith(incomplete)]


def questions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The same, and `pattern/NAME`."""
    return collectives(ctx, param, incomplete) + completed("patterns")(ctx, param, incomplete)


def runnable(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The same, and `probe/NAME`, whose first word may be left out."""
    from linkwright.executors import probes

    named = [key for key in probes.registry() if incomplete and key.startswith(incomplete)]
    return questions(ctx, param, incomplete) + completed("probes")(ctx, param, incomplete) + named


# The argument of verbs that take a collective, a traffic pattern or a source; `subject` reads it.
subject_argument = click.argument(
    "what", metavar="COLLECTIVE[/ALGORITHM]|pattern/NAME|SOURCE", shell_complete=questions
)


@dataclass(frozen=True)
class Subject:
    """What a verb is about: a collective by some algorithms, a pattern, or a source that says its collective itself."""

    title: str
    axes: dict[str, tuple[str, ...]]  # of a part of a suite
    collective: str | None
    sources: tuple[Source, ...]  # those that are named
    pattern: str | None = None

    @property
    def ranks(self) -> int | None:
        """The ranks that its schedules are written for, if there is one number."""
        found = {source.ranks for source in self.sources if source.ranks}
        return found.pop() if len(found) == 1 else None

    def asked_ranks(self, ranks: int | None) -> int | None:
        """The number of ranks, if any is asked for; refuses one that a schedule, shown alone, is not for."""
        if self.collective is None and ranks and self.ranks and ranks != self.ranks:
            raise ShapeError(f"--ranks {ranks}: {self.title} is a schedule for {self.ranks} ranks; omit --ranks")
        return ranks or self.ranks

    def most_ranks(self, ranks: tuple[int, ...] | None) -> int | None:
        """The largest of several numbers of ranks, under the same rule."""
        return max((self.asked_ranks(count) or 0 for count in ranks), default=0) if ranks else self.asked_ranks(None)

    def sizes(self, dtype: str, min_bytes: int, max_bytes: int, factor: int, size_list: str | None) -> tuple[int, ...]:
        """The sizes in bytes; none where a schedule is shown at its own."""
        own = self.sources and self.collective is None and self.sources[0].size_bytes is not None
        if own and not given("min_bytes", "max_bytes", "factor", "size_list"):
            return ()
        return chosen_sizes(self.collective or self.title, dtype, min_bytes, max_bytes, factor, size_list)


def with_alternatives(subject: Subject) -> Subject:
    """The same, with the alternatives of a library next to each of its plans."""
    from linkwright.libraries import library

    def widened(name: str) -> str:
        chosen = name == DEFAULT or (library.is_plan(name) and "/" not in name)
        return f"{name}/{library.ALTERNATIVES}" if chosen else name

    named = subject.axes.get("algorithms")
    if not named or (not any(map(library.is_plan, map(widened, named))) and DEFAULT not in named):
        raise UsageError("--alternatives: no plan of a library is requested; name one, such as nccl-2.27")
    return replace(subject, axes={**subject.axes, "algorithms": tuple(map(widened, named))})


def subject(named: str, algorithm: str = DEFAULT, *, patterns: bool = False) -> Subject:
    """What the argument of a verb and its `--algorithm` name; a traffic pattern only with `patterns`."""
    from linkwright.ask import sources

    refuse_what_it_lacks(named)
    if patterns and (pattern := pattern_of(named)):
        if algorithm not in (ALL, DEFAULT):
            raise UsageError(f"--algorithm: {named} has no algorithms; omit it")
        return Subject(named, {"pattern": pattern}, None, (), pattern)
    in_collective = named.partition("/")[0] in known_collectives()
    if not in_collective and (sources.is_source(named) or Path(named).suffix or "/" in named):
        if algorithm not in (ALL, DEFAULT):
            raise UsageError(f"{named}: states its own collective; omit --algorithm, or write COLLECTIVE -a {named}")
        found = sources.find(named)
        return Subject(found.label, {"schedules": (named,)}, None, (found,))
    collective, names = collective_and_algorithm(named, algorithm)
    listed = tuple(names.split(","))
    found = tuple(sources.find(name) for name in listed if sources.is_source(name))
    by = f" by {names}" if names != DEFAULT else ""
    return Subject(f"{collective}{by}", {"collectives": (collective,), "algorithms": listed}, collective, found)


def given(*names: str) -> bool:
    """Whether the user typed one of these options."""
    context = click.get_current_context(silent=True)
    usual = (None, click.core.ParameterSource.DEFAULT)
    return context is not None and any(context.get_parameter_source(name) not in usual for name in names)


def refuse_what_it_lacks(what: str) -> None:
    """Refuse a root or an operator where the collective, or that of an algorithm such as `allreduce/ring`, has none."""
    kind = known_collectives().get(what.partition("/")[0])
    if kind and given("op") and not kind["reduces"]:
        raise UsageError(f"--op: {kind['key']} combines nothing; omit it")
    if kind and given("root") and not kind["rooted"]:
        raise UsageError(f"--root: {kind['key']} has no root; omit it")


def check_efficiency(share: float | None) -> None:
    """Refuse a share of the peak that cannot be reached."""
    if share is not None and not 0 < share <= 1:
        raise UsageError(f"--efficiency {share:.0%}: give more than 0 and at most 100 %")


def refuse_others(reason: str, allowed: Collection[str]) -> None:
    """Refuse every option of the command line that is not among those `allowed`."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source == click.core.ParameterSource.COMMANDLINE and parameter.name not in allowed:
            raise UsageError(f"{reason}; leave out {parameter.get_error_hint(context)}")


PATTERN = "pattern/"


def pattern_of(named: str) -> str | None:
    """The traffic pattern that `pattern/NAME` names; None if it is about a collective."""
    from linkwright.base import registry

    if not named.startswith(PATTERN):
        return None
    known = registry.keys("patterns")
    check_known("pattern", named, known, lists="linkwright list patterns")
    return named.removeprefix(PATTERN)


def several(ranks: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The rank counts of a part if there are several; a single one is that of the machine, which a part takes whole."""
    return ranks if ranks and len(ranks) > 1 else None


def collective_and_algorithm(named: str, algorithm: str = DEFAULT) -> tuple[str, str]:
    """The collective and the algorithms, from COLLECTIVE[/ALGORITHM] and `--algorithm`, which may repeat it."""
    collective, slash, named_algorithm = named.partition("/")
    check_known("collective", collective, known_collectives(), lists="linkwright list collectives")
    algorithm = own_names(collective, algorithm)
    if slash and not named_algorithm:
        raise UsageError(f"{named}: names no algorithm; write `{collective}`, or `{collective}/ring`")
    if slash and algorithm not in (ALL, DEFAULT, named_algorithm):
        raise UsageError(f"{named}: --algorithm {algorithm} names a different one; give only one of them")
    return collective, named_algorithm or algorithm


def own_names(collective: str, algorithms: str) -> str:
    """The names of `ring,allreduce/swing` within the collective: `ring,swing`."""
    return ",".join(name.removeprefix(f"{collective}/") for name in algorithms.split(","))
