"""`linkwright machines import FILE`: a machine file made of what a network or system says of itself."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options
from linkwright.errors import UsageError


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--as", "format_key", metavar="FORMAT", shell_complete=options.completed("descriptions"),
    help="The format, if its text shall not tell; `linkwright list descriptions` lists all.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="Name of the machine; by default that of FILE.")
@click.option(
    "--node", metavar="MACHINE", shell_complete=options.completed("machines"),
    help="What each computer is, such as hgx-h100: the file then describes a cluster of it.",
)  # fmt: skip
@click.option(
    "--fabric", metavar="NETWORK", shell_complete=options.completed("networks"),
    help="With --node, whose software and latencies the network has; by default that of the node.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="PATH", help="The machine file; by default NAME.toml.")
def command(
    file: Path, format_key: str | None, name: str | None, node: str | None, fabric: str | None, out: Path | None
) -> None:
    """Make a machine file of FILE, which describes a network or system.

    The format is recognised by what FILE says. Numbers that it states are documented, with FILE as their source; what
    it leaves out is assumed, and `linkwright machines show` tells. The last line of output is the path of the machine
    file, which every verb takes after --on.
    """
    from linkwright import _native, discovery
    from linkwright.discovery import clusters, networks, wiring
    from linkwright.store.files import check_place, write_text
    from linkwright.toml import NAME, Place

    if fabric and not node:
        raise UsageError(f"--fabric {fabric}: is the network of nodes; name a --node, too")
    found, text = discovery.importer(file, format_key)
    shown = networks.described(found, text, file.name)
    if name is not None:
        NAME.check("--name", name, Place("linkwright machines import"))
    chosen = name or wiring.key(shown.name)
    path = out or Path(f"{chosen}.toml")
    if out is None and path.exists():
        raise UsageError(f"{path}: stands there already; write elsewhere with --out, or give another --name")
    check_place(path, str(path))
    if node:
        made = networks.checked(clusters.machine_text(shown, node, fabric, chosen, file.name), file.name)
    else:
        made = networks.machine_file(found, text, file.name, chosen)
    numbers = _native.Machine.parse(made, path.name).numbers()
    assumed = sum(number["status"] == "assumed" for number in numbers)
    write_text(path, made)
    click.echo(f"{found.key}: {shown.summary}; {assumed} of {len(numbers)} numbers assumed")
    click.echo(path)
