"""`linkwright fit RUN`: derive a machine file from measurements, and test its predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from linkwright.base import units
from linkwright.cli import options
from linkwright.cli.output import print_json, print_table


@click.command(cls=options.Command, name="fit")
@click.argument("run", default="latest")
@click.option("--machine", metavar="NAME", help="The measured machine, if the run holds several.")
@click.option("--name", metavar="KEY", help="Name of the machine file; default: the machine's.")
@options.file("--out", help="Also write the machine file to FILE.")
@options.file(
    "--map", "map_file",
    help="Fit switches and links to this map of hosts (`locate --run --json`), and predict the run.",
)  # fmt: skip
@options.as_json
@options.runs
def command(
    run: str,
    machine: str | None,
    name: str | None,
    out: Path | None,
    map_file: Path | None,
    as_json: bool,
    root_folder: Path,
) -> None:
    """RUN is an id, a path or `latest`.

    \b
    linkwright dissect --suite fit --time-budget 5m      # dense sweeps; the suite `dissect` works too
    linkwright fit --name here --out here.toml           # the machine, and how well it predicts
    linkwright simulate allreduce --on here.toml -p 16   # what more ranks would do
    linkwright export --as openmpi-rules --out rules     # the fastest algorithms, for mpirun

    With --map the machine is a network of switches and links, fitted to the rates between all pairs of hosts; every
    collective of the run is unseen.

    A third of all sizes, and all but a few plain algorithms, are held out. The errors of their predictions are printed
    and reported; they show what the model is worth.
    """
    from linkwright.advise.fit import fitting, host, network, noise, points, prediction
    from linkwright.base import extras
    from linkwright.base.files import check_place, write_text
    from linkwright.show import report
    from linkwright.store import documents
    from linkwright.store import run as runs

    extras.load("scipy", "fit", "linkwright fit")
    if out is not None:
        check_place(out, f"--out {out}")
    folder = runs.find(root_folder, run)
    measured = points.points(folder, machine)
    of = machine or points.measured_rows(folder)[0]["machine"]
    if map_file:
        model = network.read(map_file, host.slug(name or of), of)
        protocol, measured = fitting.protocol(folder, of), [replace(point, seen=False) for point in measured]
    else:
        model, protocol = fitting.fit(folder, measured, name or of, of)
    predictions = prediction.predict(model, measured, protocol)
    state = points.state(folder)
    text = model.text() + noise.table(folder, of)
    path = prediction.write(folder, model, text, predictions, state)
    if out is not None:
        write_text(out, text)
    if as_json:
        report.render(folder.folder)
        print_json(documents.read(folder.folder / "fit.json", documents.FIT))
        return
    if state is not None:
        click.echo(f"# the machine had two states: {state}")
    _print(model, predictions)
    click.echo(str(report.render(folder.folder)))
    click.echo(str(out or path))


def _print(model, predictions) -> None:
    from linkwright.advise.fit import prediction

    rows = [
        [key, f"{fit.value:.4g}", f"{fit.low:.4g}", f"{fit.high:.4g}", unit] for key, fit, unit in model.parameters()
    ]
    print_table(["number", "value", "low", "high", "unit"], rows)
    click.echo("")
    rows = [
        _errors(words, prediction.errors(predictions, seen)) for words, seen in (("seen", True), ("not seen", False))
    ]
    for collective in sorted({p.collective for p in predictions if p.collective}):
        of = [p for p in predictions if p.collective == collective]
        rows.append(_errors(f"not seen: {collective}", prediction.errors(of, seen=False)))
    print_table(["experiments", "count", "median", "p90", "worst", "within 15 %"], [row for row in rows if row])
    click.echo("")
    choices = prediction.choices(predictions)
    rows = [
        [c.collective, str(c.ranks), units.format_size(c.size_bytes), c.measured, c.predicted, f"{c.loss:.2f}"]
        for c in choices
    ]
    print_table(["collective", "ranks", "size", "measured fastest", "predicted", "loss"], rows, left=(0, 3, 4))
    left_out = [p for p in predictions if p.predicted_ns is None]
    if left_out:
        click.echo(f"# {len(left_out)} not predicted, such as {left_out[0].experiment}: {left_out[0].reason}")


def _errors(words: str, errors) -> list[str]:
    import numpy as np

    if not len(errors):
        return []
    median, p90, worst = np.percentile(errors, (50, 90, 100))
    share = np.mean(errors <= 0.15)
    return [words, str(len(errors)), f"{median:.1%}", f"{p90:.1%}", f"{worst:.1%}", f"{share:.0%}"]
