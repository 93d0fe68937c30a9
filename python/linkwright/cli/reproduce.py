"""`linkwright reproduce STUDY`: the command of the package that brings the studies, or how to install it."""

from __future__ import annotations

import click

from linkwright.base import studies
from linkwright.cli.options import Command


@click.command(cls=Command, name="reproduce", context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="STUDY", nargs=-1, type=click.UNPROCESSED)
def missing(words: tuple[str, ...]) -> None:
    """Studies are in the package linkwright-evidence, which is not installed."""
    raise studies.missing()


command = studies.module("cli").command if studies.installed() else missing
