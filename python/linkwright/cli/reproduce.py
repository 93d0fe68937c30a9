"""`linkwright reproduce STUDY`: a published study, re-run on a model."""

from __future__ import annotations

from pathlib import Path

import click

from linkwright.cli import options
from linkwright.cli.output import Progress, print_table
from linkwright.studies import Options, Outcome, held


@click.command(name="reproduce")
@click.argument("study", metavar="STUDY")
@click.option("--full", is_flag=True, help="Also more seeds, variants of the model and blind predictions.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of all that is random.")
@click.option("--json", "json_file", metavar="FILE", help="Every cell and claim as JSON; `-` is standard output.")
@options.runs
def command(study: str, full: bool, seed: int, json_file: str | None, root_folder: Path) -> int:
    """Re-run the published STUDY on its model: errors for each table, claims that hold or fail.

    An error is |predicted / published - 1|. The numbers of the machine file that were fitted stand beside
    them: with enough of those any table can be matched. Cells that nobody may see (holdout) are predicted
    all the same. A claim that fails is a finding, not an error: the exit status stays 0.
    """
    from linkwright import studies

    bar = _Bar()
    try:
        outcome = studies.reproduce(study, Options(full=full, seed=seed, progress=bar))
    finally:
        bar.close()
    if json_file == "-":
        click.echo(_json(outcome), nl=False)
    else:
        _print(outcome)
        _save(study, outcome, json_file, root_folder)
    return 0


def _json(outcome: Outcome) -> str:
    import json

    return json.dumps(outcome.as_dict(), indent=1, ensure_ascii=False) + "\n"


def _print(outcome: Outcome) -> None:
    click.echo(f"{outcome.title}\nmachine {outcome.machine}, {len(outcome.fitted)} fitted numbers:")
    for row in outcome.fitted:
        click.echo(f"  {row['key']} = {row['value']} {row['unit']}")
    click.echo("")
    percent = "{:.1%}".format
    rows = [
        [
            str(row["table"]),
            str(row["cells"]),
            str(row["scored"]),
            *(percent(row[key]) if key in row else "-" for key in ("median", "p90", "max", "within_10_percent")),
        ]
        for row in outcome.summary()
    ]
    print_table(["table", "cells", "scored", "median", "p90", "largest", "within 10 %"], rows)
    click.echo("")
    words = {True: "holds", False: "FAILS", None: "open"}
    for claim in outcome.claims:
        click.echo(f"claim {claim.id} {words[claim.holds]}: {claim.statement}\n    {claim.why}")
    holds, judged = held(outcome.claims)
    click.echo(f"\n{holds} of {judged} claims hold")


def _save(study: str, outcome: Outcome, json_file: str | None, root_folder: Path) -> None:
    """The run folder with the study and its report, and the file that was asked for."""
    from linkwright import report
    from linkwright.store import run as runs
    from linkwright.store.files import write_text

    if json_file:
        write_text(Path(json_file), _json(outcome))
    run = runs.create(root_folder, f"reproduce-{study}", "", {"study": study})
    write_text(run.folder / "study.json", _json(outcome))
    run.mark("done")
    click.echo(str(report.render(run.folder)))


class _Bar:
    """The progress of a study, which tells what it does and how much of it is done."""

    def __init__(self) -> None:
        self._what = ""
        self._bar: Progress | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None or self._bar.total != total:
            self.close()
            self._bar = Progress(total, what)
        self._bar.show(done, what)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
