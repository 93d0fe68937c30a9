"""`linkwright play`: the engine as one page, which works from a file."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli.options import Command


@click.command(cls=Command, name="play")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("playground.html"), show_default=True,
    metavar="FILE.html", help="Where to write.",
)  # fmt: skip
@click.option("--open", "opened", is_flag=True, help="Open it in a browser.")
def command(out: Path, opened: bool) -> None:
    """The page holds the engine as WebAssembly and every shipped machine. Choose or edit a machine, a collective, or
    paste a schedule: it is proved and simulated in the page, which loads nothing and sends nothing. The page also
    searches for a faster schedule, up to a minute.

    \b
    linkwright play --open
    """
    from linkwright.base.files import check_page, write_text
    from linkwright.show import playground

    check_page(out, "--out")
    write_text(out, playground.page())
    if remark := playground.outdated():
        click.echo(remark, err=True)
    if opened:
        click.launch(out.resolve().as_uri())
    click.echo(str(out))
