"""`linkwright cluster`: a cluster of network namespaces on this host, for tests and tutorials."""

from __future__ import annotations

import os
from pathlib import Path

import click

from linkwright.base.units import counted
from linkwright.cli.options import Command


@click.group(name="cluster")
def command() -> None:
    """Hosts and switches are namespaces, links have the rates of the file, in both directions or with a fault in one.
    Needs root on Linux, iproute2, and Open MPI for MPI in it.
    """


@command.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
def up(file: Path, words: tuple[str, ...]) -> int:
    """Run COMMAND on the first host of the cluster in FILE, then remove the cluster.

    COMMAND finds in the folder $LINKWRIGHT_CLUSTER: `hosts`, a host file; `launcher`, which starts a command on a host
    as ssh would; `machine.toml`, the healthy cluster as a machine file. Open MPI takes them by its own variables.

    \b
    linkwright cluster up lab.toml -- mpirun -np 6 --map-by node linkwright dissect --on mpi
    """
    from linkwright.base.files import read_text, shown_name
    from linkwright.executors.cluster import namespaces, spec

    cluster = spec.of_text(read_text(file, "the file of a cluster"), shown_name(file.name))
    with namespaces.up(cluster) as folder:
        return namespaces.run(cluster, words, folder, os.environ)


@command.command(cls=Command)
@click.argument("name")
def down(name: str) -> None:
    """Remove what is left of the cluster NAME, as after a kill."""
    from linkwright.executors.cluster import namespaces

    namespaces.check()
    click.echo(f"removed {counted(namespaces.down(name), 'namespace')} of {name}")


@command.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def describe(file: Path) -> None:
    """Print the healthy cluster in FILE as a machine file."""
    from linkwright.base.files import read_text, shown_name
    from linkwright.executors.cluster import spec
    from linkwright.machines import writer

    cluster = spec.of_text(read_text(file, "the file of a cluster"), shown_name(file.name))
    click.echo(writer.text(spec.machine(cluster)), nl=False)
