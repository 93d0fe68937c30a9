"""`linkwright expect COLLECTIVES --on MACHINE`: what a healthy machine gives, and gates for operators' tools."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.units import parse_sizes
from linkwright.cli import options, values

if TYPE_CHECKING:
    from linkwright.formats.gates import Expected
    from linkwright.formats.logs import Log
    from linkwright.machines import Variant

SIZES = "1M..8G"


@click.command(cls=options.Command, name="expect")
@click.argument("collectives", metavar="COLLECTIVE[,COLLECTIVE]", shell_complete=options.collectives)
@options.on("machine", required=True, help="A described machine, or the path of a machine file.")
@options.variant
@click.option("--ranks", "-p", type=values.RANKS, help="Ranks that take part; default: all that the machine has.")
@click.option("--algorithm", "-a", "version", metavar="VERSION", help="Version of the library, such as `nccl-2.26`.")
@click.option(
    "--sizes", metavar="A..B|A,B,C", help=f"Message sizes; `..` doubles.  [default: {SIZES}, or those of the log]"
)
@click.option(
    "--format", "gate_key", default="text", show_default=True, metavar="GATE",
    shell_complete=options.completed("gates"),
    help="What to write: `linkwright list gates` lists all.",
)  # fmt: skip
@options.as_json
@options.file("--log", help="Judge this log of a benchmark; the exit status is 1 if a size is below its floor.")
@options.file("--out", help="Write to FILE; default: stdout.")
def command(
    collectives: str,
    machine: str,
    variant: Variant,
    ranks: int | None,
    version: str | None,
    sizes: str | None,
    gate_key: str,
    log: Path | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """For each size it gives the modelled value, a tolerance and a floor, the value less the tolerance. The tolerance
    is how far below the model published healthy systems of this kind are, nineteen times in twenty; where none was
    published, it is the widest known, and the answer says so.

    \b
    linkwright expect allreduce,alltoall --on hgx-h100 --nodes 2 --fabric ndr-fat-tree --sizes 1M..8G
    linkwright expect allreduce --on hgx-h100 --log all_reduce.log --format junit --out report.xml
    linkwright expect allreduce --on hgx-h100 --sizes 16G --format nhc
    """
    from linkwright.advise.expect import Installation
    from linkwright.base.files import check_place, write_text
    from linkwright.formats import gates

    if gate_key == "json":  # the former spelling
        click.echo("linkwright: `expect --format json` is now `linkwright expect --json`", err=True)
        gate_key, as_json = "text", True
    if as_json and gate_key != "text":
        raise UsageError(f"--json and --format {gate_key} are two forms of one answer; omit one of them")
    gate = gates.JSON if as_json else gates.find(gate_key)
    if gate.needs_log and not log:
        raise UsageError(f"--format {gate.key}: tells how a measured log stands; give one with --log")
    if log and not gate.judges:
        raise UsageError(
            f"--format {gate.key}: does not judge a log; omit --log, or use --format text or junit, or --json"
        )
    if out:
        check_place(out, f"--out {out}")
    expected = _expected(Installation(machine, variant, ranks, version), collectives.split(","), sizes, log)
    text = gates.written(gate, expected)
    if out:
        write_text(out, text)
        click.echo(f"wrote {out}: {gate.key}, {expected.title}")
    else:
        click.echo(text, nl=False)
    return 1 if expected.failed else 0


def _expected(asked, names: list[str], sizes: str | None, log: Path | None) -> Expected:
    """Everything that a gate is made from; simulates."""
    from linkwright.advise import expect
    from linkwright.advise.explain import log as logs
    from linkwright.cli.progress import Progress

    read = _read(log) if log else None
    if read and asked.version is None:
        asked = expect.versioned(asked, read.facts, names[0])
    found = expect.systems(asked, tuple(dict.fromkeys(names)))
    measured = expect.measured(logs.tables(read), read.facts, found, str(log)) if read else None
    chosen = measured.sizes() if measured and sizes is None else parse_sizes(SIZES if sizes is None else sizes)
    expect.check_sizes(found, chosen)
    made = []
    with closing(Progress(len(found) * len(chosen), "simulating")) as progress:
        for done, one in enumerate(expect.expectations(found, chosen), 1):
            made.append(one)
            progress.show(done, one.label)
    expected = expect.answer(asked, found, made)
    return expect.judged(expected, found, measured, str(log)) if measured else expected


def _read(log: Path) -> Log:
    """The log, all of whose rows can be judged."""
    from linkwright.formats.logs import read_log

    found = read_log(log)
    if found.complaints:
        line, text = found.complaints[0]
        raise UsageError(f"{log}: line {line}: {text}; a log is judged if all its rows can be read; correct it")
    return found
