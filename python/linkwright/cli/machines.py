"""`linkwright machines show NAME`: every number of a machine with its unit, status and source; or its rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from linkwright.cli import options
from linkwright.cli.columns import items, terminal_columns
from linkwright.cli.output import print_json, print_table
from linkwright.errors import UsageError

if TYPE_CHECKING:
    from linkwright.machines import Variant


@click.group(name="machines")
def command() -> None:
    """Show what is known about a described machine, and how well."""


@command.command(name="show")
@click.argument("name", shell_complete=options.completed("machines"))
@click.option("--rules", is_flag=True, help="One page that says in plain sentences what a message costs at each level.")
@click.option("--devices", is_flag=True, help="List chips and groups of chips, as the vendor does.")
@click.option("--device", metavar="IDS", help="Show only the device made of these chips, such as 5,7.")
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
        raise UsageError("--rules and --devices are two pages; ask for one at a time")
    if as_toml and (rules or devices or device or as_json):
        raise UsageError("--toml prints a file; leave the options of other pages out")
    machine = load(name, variant)
    if as_toml:
        click.echo(source(name, variant)[0], nl=False)
        return
    if rules:
        from linkwright.predict import page

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
