"""`linkwright machines`: show every number of a machine, or make a machine file of what a system says about itself."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.cli import options
from linkwright.cli.columns import items, terminal_columns
from linkwright.cli.output import print_json, print_table

if TYPE_CHECKING:
    from linkwright.formats.discovery.fitted import Log
    from linkwright.machines import Variant


@click.group(name="machines")
def command() -> None:
    """NAME is a shipped machine (`linkwright list machines`) or the path of a machine file."""


@command.command(cls=options.Command, name="list")
@options.as_json
def list_(as_json: bool) -> None:
    """List the shipped machines, as `linkwright list machines` does."""
    from linkwright.cli import list as listed

    listed.show("machines", as_json)


@command.command(cls=options.Command, name="show")
@click.argument("name", shell_complete=options.completed("machines"))
@click.option(
    "--rules", is_flag=True, help="One page that states in plain sentences what a message costs at each level."
)
@click.option("--devices", is_flag=True, help="List chips and groups of chips, as the vendor does.")
@click.option("--device", metavar="IDS", help="Show only the device that consists of these chips, such as 5,7.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the machine file with its parts, or as a cluster.")
@options.variant
@options.as_json
def show(
    name: str, rules: bool, devices: bool, device: str | None, as_toml: bool, variant: Variant, as_json: bool
) -> None:
    """Show every number of the machine NAME (or of a machine file) with its source.

    A number is documented, measured, derived from such numbers, assumed, or fitted: chosen so that the model meets
    measurements. The fewer numbers are fitted, the more an agreement with measurements means.
    """
    from linkwright.machines import load, source

    if rules and (devices or device):
        raise UsageError("--rules and --devices print different pages; give one of the two")
    if as_toml and (rules or devices or device or as_json):
        raise UsageError("--toml prints a file; omit the options of other pages")
    if as_toml:  # also of a machine that is wrong: messages count the lines of this text
        click.echo(source(name, variant)[0], nl=False)
        return
    machine = load(name, variant)
    if rules:
        from linkwright.advise.predict import page

        if as_json:
            print_json(page.values(machine))
        else:
            click.echo(items(page.text(machine), terminal_columns()))
        return
    if devices or device:
        _show_devices(machine, device, as_json)
        return
    numbers = machine.numbers()
    statuses = Counter(number["status"] for number in numbers)
    if as_json:
        fields = ("name", "summary", "description", "fabric", "paths", "ranks", "memories", "sources", "fitted")
        shown = {key: getattr(machine, key) for key in fields}
        print_json({**shown, "numbers": numbers, "rules": machine.rules()})
        return
    size = f"{machine.ranks} ranks, {machine.memories} memories"
    size = {"ranks": "any number of ranks", "grid": "any grid of ranks"}.get(machine.open_size or "", size)
    _echo(f"{machine.name}: {machine.summary}")
    _echo(f"fabric {machine.fabric}, {size}, paths {', '.join(machine.paths)}\n")
    rows = [[n["key"], n["value"], n["unit"], n["status"], n["source"]] for n in numbers]
    print_table(["number", "value", "unit", "status", "source"], rows, left=(0, 2, 3, 4))
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    for number, rule in enumerate(machine.rules(), 1):
        when = " (chosen after looking at the measurements)" if rule["post_hoc"] else ""
        _echo(f"\nrule {number}, {rule['name']}{when}: {rule['statement']}\n    {rule['evidence']}")
    _echo(f"\n{len(numbers)} numbers: {counted}; {machine.fitted} fitted")


_fits = click.option(
    "--fit", "fits", multiple=True, type=click.Path(path_type=Path), metavar="LOG",
    help="Output of a benchmark on this node, to which start-ups and rates are fitted. May be repeated.",
)  # fmt: skip
_collective = click.option(
    "--collective", metavar="NAME", help="Collective that LOG measured, if it does not state it."
)


_out = options.file("--out", help="Write here.  [default: NAME.toml]")


@command.command(cls=options.Command, name="import")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.argument("graph", required=False, type=click.Path(path_type=Path), metavar="[GRAPH]")
@click.option(
    "--as", "format_key", metavar="FORMAT", shell_complete=options.completed("machine-importers"),
    help="The format; default: recognised from the file; `linkwright list machine-importers` lists all.",
)  # fmt: skip
@click.option("--name", default="here", show_default=True, metavar="NAME", help="The machine's name.")
@click.option("--gpu", metavar="MODEL", help="Model of the GPUs, such as H100, if the file does not state it.")
@click.option(
    "--node", metavar="MACHINE", shell_complete=options.completed("machines"),
    help="Machine of each computer in a network, such as hgx-h100: FILE becomes a cluster of these.",
)  # fmt: skip
@click.option(
    "--fabric", metavar="NETWORK", shell_complete=options.completed("networks"),
    help="With --node: network whose software and latencies are used.  [default: that of the node]",
)  # fmt: skip
@click.option(
    "--rate", "rates", multiple=True, metavar="NAME=RATE",
    help="With a topology of Slurm: `port=400Gb/s` for each port of a node, or `leaf*=1600Gb/s` for all links "
    "of these switches upwards. May be repeated.",
)  # fmt: skip
@_fits
@_collective
@_out
def import_(
    file: Path,
    graph: Path | None,
    format_key: str | None,
    name: str,
    gpu: str | None,
    node: str | None,
    fabric: str | None,
    rates: tuple[str, ...],
    fits: tuple[Path, ...],
    collective: str | None,
    out: Path | None,
) -> None:
    """Turn the description that a system reports into a machine file.

    FILE is the topology of NCCL or RCCL, the output of `nvidia-smi topo -m`, `rocm-smi --showtopo`, `lstopo` or
    `ibnetdiscover`, a topology of Slurm, or, with the package linkwright-networks, a network of SimGrid, InfraGraph,
    ASTRA-sim or tt-metal. Links are those of FILE; rates that it does not state come from data sheets, or are
    assumed and marked so. GRAPH is the graph of NCCL for the same host (NCCL_GRAPH_DUMP_FILE), which states how
    many channels its rings have.
    """
    from linkwright.base.files import read_text, shown_name
    from linkwright.formats.discovery import importing

    text = read_text(file, "a description of a system")
    channels = read_text(graph, "a graph of NCCL") if graph else None
    made = importing.machine_file(
        text, shown_name(file.name), name=_named(name), format_key=format_key, gpu=gpu, graph=channels,
        graph_file=shown_name(graph.name) if graph else "", node=node, fabric=fabric, logs=_logs(fits),
        collective=collective, rates=rates,
    )  # fmt: skip
    _write(made, out or Path(f"{name}.toml"))


@command.command(cls=options.Command, name="discover")
@click.option("--name", default="here", show_default=True, metavar="NAME", help="The machine's name.")
@click.option("--gpu", metavar="MODEL", help="Model of the GPUs, if no program reports it.")
@_fits
@_collective
@_out
def discover(name: str, gpu: str | None, fits: tuple[Path, ...], collective: str | None, out: Path | None) -> None:
    """Describe this host from the output of nvidia-smi, rocm-smi or lstopo.

    Rates of network ports are those of /sys/class/infiniband. Rates between the cores of a host without GPUs are
    assumed; to measure them, run `linkwright dissect`, then `linkwright fit latest`.
    """
    from linkwright.formats.discovery import live

    made = live.machine_file(
        _named(name), gpu, lambda told: click.echo(f"linkwright: {told}", err=True), _logs(fits), collective
    )
    _write(made, out or Path(f"{name}.toml"))


def _logs(fits: tuple[Path, ...]) -> list[Log]:
    from linkwright.base.files import read_text, shown_name
    from linkwright.formats.discovery.fitted import Log

    return [Log(shown_name(path.name), read_text(path, "the log of a benchmark")) for path in fits]


def _named(name: str) -> str:
    """A name that a machine and a file can have."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}", name):
        raise UsageError(f"--name {name!r}: a name has up to 60 letters, digits, dots, dashes and underscores")
    return name


def _write(made: str, output: Path) -> None:
    """Write the file, which must not be there yet, and say what it holds."""
    from linkwright.base.files import write_text
    from linkwright.machines import load

    if output.suffix != ".toml":
        raise UsageError(f"{output}: a machine file ends in .toml; write {output.with_suffix('.toml')}")
    if output.exists():
        raise UsageError(f"{output}: exists already; remove it, or choose another name with --out or --name")
    write_text(output, made)
    machine = load(output)
    statuses = Counter(number["status"] for number in machine.numbers())
    counted = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    _echo(f"{output}: {machine.summary}\n{machine.ranks} ranks; numbers: {counted}")
    path = output if output.is_absolute() else f"./{output}"
    _echo(f"try: linkwright simulate allreduce --on {path} --sizes 1M")


def _echo(text: str) -> None:
    click.echo(items(text, terminal_columns()) + ("\n" if text.endswith("\n") else ""))


def _show_devices(machine, wanted: str | None, as_json: bool) -> None:
    from linkwright.machines import devices

    rows = devices.rows(machine)
    if wanted is not None:
        found = devices.of(machine, wanted)
        rows = [row for row in rows if row["device"] == found]
    if as_json:
        print_json(rows)
        return
    header = ["device", "type", "position", "members (DNC: device)", "tiles of each member"]
    shown = [
        [str(row["device"]), row["type"], str(row["position"]), _pairs(row["members"]), _ranges(row["tiles"])]
        for row in rows
    ]
    print_table(header, shown, left=(1, 3, 4))


def _pairs(members: list[int]) -> str:
    return " ".join(f"{dnc}:{device}" for dnc, device in enumerate(members))


def _ranges(tiles: list[tuple[int, int]]) -> str:
    return " ".join(f"{first}-{last}" for first, last in tiles)
