"""`linkwright plan order`: which rank goes where, so that no link gets more load than it must."""

from __future__ import annotations

import math
import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import format_us, parse_size
from linkwright.cli import options, values
from linkwright.cli.output import print_json

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.advise.plans.order import Order
    from linkwright.advise.plans.traffic import Axis, Group
    from linkwright.machines import Variant

_MOST = 1024  # ranks: routes of more take hours


def _axis(match: re.Match[str]) -> Axis:
    from linkwright.advise.plans.traffic import Axis

    return Axis(int(match[1]), parse_size(match[2]))


def _group(match: re.Match[str]) -> Group:
    from linkwright.advise.plans.traffic import Group

    return Group("group", tuple(map(int, match[1].split(","))), parse_size(match[2]))


_WRONG = "is not a group; write ranks and bytes, such as"
_AXIS = values.pattern("N:SIZE", r"([1-9]\d{0,6}):(.+)", f"{_WRONG} `8:256M`", _axis)
_GROUP = values.pattern("R,R:SIZE", r"(\d{1,7}(?:,\d{1,7})+):(.+)", f"{_WRONG} `0,4,8:64M`", _group)


@click.command(cls=options.Command, name="order")
@options.on("name", required=True, help="A described machine, or the path of its file.")
@options.seated
@click.option("--grid", type=values.GRID, help="Arrange the endpoints in columns x rows, for an open grid.")
@click.option("--tensor", type=_AXIS, help="Ranks of a tensor group, and bytes of its allreduces in a step.")
@click.option("--data", type=_AXIS, help="Ranks of a data group, and bytes of its gradients.")
@click.option("--pipeline", type=_AXIS, help="Stages of a pipeline, and bytes between two of them, each way.")
@click.option(
    "--group",
    "groups",
    type=_GROUP,
    multiple=True,
    help="Ranks of one allreduce, instead; may be repeated.",
)
@click.option("--hosts", metavar="LIST", help="Names of the nodes, in the order of the machine: `node[01-04]`, `a,b`.")
@click.option("--as", "form", type=click.Choice(["openmpi", "mpich", "slurm"]), help="Format of the file.")
@options.file("--out", help="Write the file for --as; needs --hosts.")
@options.seed
@options.as_json
def command(
    name: str, variant: Variant, grid: tuple[int, ...] | None, tensor: Axis | None, data: Axis | None,
    pipeline: Axis | None, groups: tuple[Group, ...], hosts: str | None, form: str | None, out: Path | None, seed: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Place ranks so that the busiest link gets the least load.

    Ranks are numbered with the tensor group fastest, then data, then pipeline. Load is bytes over the rate of a link,
    for all groups at once. The time of this traffic is simulated in the chosen order and in that of the endpoints.

    Ranks use the first endpoints of the machine, or those of --ranks-per-node or --place. For up to 16 ranks the order
    is optimal if the search ends; otherwise a bound states how much better another order could be.

    With --as and --hosts the order becomes a file: a rankfile of Open MPI, a host file of MPICH, or the list that
    Slurm takes by SLURM_HOSTFILE with `--distribution=arbitrary`.
    """
    from linkwright.advise.plans import order, traffic
    from linkwright.cli.progress import Progress

    given = {"tensor": tensor, "data": data, "pipeline": pipeline}
    axes = {key: axis for key, axis in given.items() if axis}
    if bool(axes) == bool(groups):
        raise UsageError("give sizes of groups (--tensor, --data, --pipeline), or the groups themselves (--group)")
    ranks = math.prod(axis.size for axis in axes.values()) if axes else 1 + max(max(g.ranks) for g in groups)
    machine = _machine(name, variant, grid, ranks)
    file = _file(machine, hosts, form, out)
    flows = traffic.flows_of(traffic.groups_of(axes) if axes else groups, ranks)
    if not flows:
        raise UsageError("the groups exchange nothing; give one with at least two ranks, and bytes")
    seats = variant.places(machine, ranks) if variant.chooses else None
    with closing(Progress(1, "searching")):
        found = order.Search(machine, flows, ranks, seed, seats).run(traffic.nested_orders(axes) if axes else ())
    _show(machine, found, as_json)
    if file:
        _write(found, *file)


def _machine(name: str, variant: Variant, grid: tuple[int, ...] | None, ranks: int) -> _native.Machine:
    from linkwright import machines

    if ranks > _MOST:
        raise UsageError(f"{ranks:,} ranks: at most {_MOST:,} can be ordered; use a smaller group of nodes")
    found = machines.load(name, variant)
    found = found.with_grid(*grid) if grid else found.with_endpoints(ranks) if found.open_size else found
    if found.ranks < ranks:
        raise UsageError(f"{ranks} ranks: {found.name} has {found.ranks} endpoints; add --nodes, or use smaller groups")
    return found


def _file(
    machine: _native.Machine, hosts: str | None, form: str | None, out: Path | None
) -> tuple[list[str], int, str, Path] | None:
    """Hosts, endpoints of each, format and place of the file; None if none is asked for."""
    from linkwright.base.files import check_place
    from linkwright.formats.discovery import hostlists

    if hosts is None and form is None and out is None:
        return None
    if hosts is None or form is None or out is None:
        raise UsageError("a file needs --hosts, --as and --out together")
    check_place(out, f"--out {out}")
    named = hostlists.expand(hosts, "--hosts")
    level, count = machine.levels()[0]
    if level == "node" and count != len(named):
        raise UsageError(f"--hosts: {len(named)} given, and {machine.name} has {count} nodes; name each of them")
    if machine.ranks % len(named):
        raise UsageError(f"--hosts: {machine.ranks} endpoints do not divide evenly among {len(named)} hosts")
    return named, machine.ranks // len(named), form, out


def _write(found: Order, hosts: list[str], each: int, form: str, out: Path) -> None:
    from linkwright.advise.plans import host_order
    from linkwright.base.files import write_text

    write_text(out, host_order.text(form, host_order.places(hosts, found.endpoints, each)))


def _show(machine: _native.Machine, found: Order, as_json: bool) -> None:

    names = [machine.endpoints()[endpoint]["name"] for endpoint in found.endpoints]
    if as_json:
        print_json({"machine": machine.name, **vars(found), "gap": found.gap, "names": names})
        return
    click.echo("  rank  endpoint")
    for rank, endpoint in enumerate(names):
        click.echo(f"{rank:>6}  {endpoint}")
    click.echo(f"\nbusiest link   {found.busiest}: {format_us(found.peak_us)}")
    gain = 1 - found.peak_us / found.identity_peak_us if found.identity_peak_us else 0.0
    click.echo(f"in plain order {format_us(found.identity_peak_us)}; {gain:.1%} less")
    simulated = (format_us(time) for time in (found.time_us, found.identity_time_us))
    click.echo("simulated      {} instead of {}, all groups at once".format(*simulated))
    if found.peak_us < found.identity_peak_us and found.time_us >= found.identity_time_us:
        click.echo("note           the time does not fall with the load: latency or message order dominates")
    click.echo(f"how good       {_quality(found)}")


def _quality(found: Order) -> str:

    if found.exact:
        return "exact: no order loads its busiest link less"
    if not found.bound_us:
        return "this machine has no known bound"
    return f"at most {found.gap:.1%} above the best; no order goes below {format_us(found.bound_us)}"
