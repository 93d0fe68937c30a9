"""`linkwright reproduce STUDY`: a published study, re-run on a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from linkwright.base.errors import UsageError
from linkwright.base.files import check_place
from linkwright.cli import options
from linkwright.cli.output import print_table
from linkwright.cli.progress import Progress
from linkwright_evidence import REGISTRY, Options, reproduce
from linkwright_evidence.outcome import Outcome, held

if TYPE_CHECKING:
    from linkwright.store.run import Run

# Tables that are printed as well as shown in the report, if the study has them.
PRINTED = (
    "no_fit", "ablation", "curve", "from_small_to_large", "numbers_from_small", "scores", "floor", "ranges", "cases",
    "predictions", "refused", "left_out", "fastest", "orders", "decisions",
)  # fmt: skip


@click.command(cls=options.Command, name="reproduce")
@click.argument("study", required=False, metavar="STUDY", shell_complete=options.completed("studies"))
@click.option("--full", is_flag=True, help="Add more seeds, variants of the model and blind predictions.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of everything random.")
@click.option("--table", "tables", metavar="NUMBER", multiple=True, help="Run only this table; may be repeated.")
@click.option(
    "--machine", "machines", metavar="NAME", multiple=True, help="Run only tables of this machine; repeatable."
)
@click.option("--kernel", "kernels", metavar="KIND", multiple=True, help="Run only kernels of this kind; repeatable.")
@click.option(
    "--conditions",
    metavar="FILE.csv",
    type=click.Path(path_type=Path),
    help="Predict the rows of this file instead; the page of the study names the columns.",
)
@click.option("--ablate", is_flag=True, help="Also drop each mechanism in turn, to show what it contributes.")
@click.option("--holdout-scale", is_flag=True, help="Also fit on small scales only and predict the large ones.")
@click.option(
    "--json",
    "json_file",
    metavar="[FILE]",
    is_flag=False,
    flag_value="-",
    help="Write every cell and claim as JSON: to FILE in addition, or only to standard output.",
)
@options.runs
def command(
    study: str | None,
    full: bool,
    seed: int,
    tables: tuple[str, ...],
    machines: tuple[str, ...],
    kernels: tuple[str, ...],
    conditions: Path | None,
    ablate: bool,
    holdout_scale: bool,
    json_file: str | None,
    root_folder: Path,
) -> int:
    """Prints the errors of each table, |predicted / published - 1|, and the claims that hold or fail. What was
    tuned is listed with them, because with enough of that any table can be matched: fitted numbers, rules chosen
    after the published values were seen, and free choices. A cell that the model was given or fitted to is not
    scored. Holdout cells, whose published values were withheld while the model was built, are predicted too. A
    claim that fails is a finding, not an error: the exit status stays 0. `--table` is for studies with numbered
    tables. `linkwright list studies` lists all studies.
    """
    from linkwright.show import report

    _check_file(study, json_file)
    bar = _Bar()
    try:
        options = Options(
            full=full, seed=seed, tables=tables, machines=machines, kernels=kernels, conditions=conditions,
            ablate=ablate, holdout_scale=holdout_scale, progress=bar,
            found=(lambda line: None) if json_file == "-" else click.echo,
        )  # fmt: skip
        outcome = reproduce(study, options)
    finally:
        bar.close()
    if json_file == "-":
        click.echo(_json(outcome), nl=False)
    else:
        # Save first: whoever reads the output may stop early, as `head` does.
        run = _save(study, outcome, json_file, root_folder)
        shown = report.render(run.folder)
        _print(outcome)
        click.echo(str(shown))
    return 0


def _check_file(study: str | None, json_file: str | None) -> None:
    """`--json STUDY` takes the study for its file."""
    if json_file in REGISTRY:
        raise UsageError(
            f"--json {json_file}: takes `{json_file}` for its FILE; write `linkwright reproduce {json_file} --json`, "
            f"or `--json=./{json_file}` if the file is meant"
        )
    if study is None:
        raise click.UsageError("Missing argument 'STUDY'.", click.get_current_context())
    if json_file and json_file != "-":
        check_place(Path(json_file), f"--json {json_file}")


def _json(outcome: Outcome) -> str:
    """Cells, claims and tables, without the charts of the report, which would only make it longer."""
    return (
        json.dumps(
            {key: part for key, part in outcome.as_dict().items() if key != "sections"}, indent=1, ensure_ascii=False
        )
        + "\n"
    )


def _print(outcome: Outcome) -> None:
    click.echo(f"{outcome.title}\nmachine {outcome.machine}: {outcome.basis()}")
    for row in outcome.tuned:
        if row["status"] == "fitted":
            click.echo(f"  fitted    {row['machine']}: {row['key']} = {row['value']} {row['unit']}")
        elif row["status"] == "post_hoc":
            click.echo(f"  post hoc  {row['machine']}: {row['key']}")
    click.echo("")
    _print_summary(outcome)
    for remark in outcome.remarks:
        click.echo(remark)
    for name in PRINTED:
        if outcome.tables.get(name):
            _print_rows(name, outcome)
    words = {True: "holds", False: "FAILS", None: "open"}
    for claim in outcome.claims:
        click.echo(f"claim {claim.id} {words[claim.holds]}: {claim.statement}\n    {claim.why}")
    holds, judged = held(outcome.claims)
    if judged:
        click.echo(f"\n{holds} of {judged} claims hold")


def _print_summary(outcome: Outcome) -> None:
    """The errors of each table, where there are published cells."""
    if not outcome.cells:
        return
    percent = "{:.1%}".format
    rows = [
        [
            str(row["table"]),
            str(row["cells"]),
            str(row["given"]),
            str(row["scored"]),
            *(percent(row[key]) if key in row else "-" for key in ("median", "p90", "max", "within_10_percent")),
            *([outcome.verdicts.get(str(row["table"]), "")] if outcome.verdicts else []),
        ]
        for row in outcome.summary()
    ]
    head = ["table", "cells", "given", "scored", "median", "p90", "largest", "within 10 %"]
    print_table(head + (["target"] if outcome.verdicts else []), rows, left=(0, len(head)))
    click.echo("")


def _print_rows(name: str, outcome: Outcome) -> None:
    """A table that was asked for by an option."""
    rows = outcome.tables[name]
    click.echo(f"\n{name.replace('_', ' ')}: {outcome.notes.get(name, '')}")
    body = [[f"{value:g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    print_table([key.replace("_", " ") for key in rows[0]], body, left=(0, len(rows[0]) - 1))
    click.echo("")


def _save(study: str, outcome: Outcome, json_file: str | None, root_folder: Path) -> Run:
    """The run folder with the study, and the file that was asked for."""
    from linkwright.base.files import write_text
    from linkwright.store import run as runs

    if json_file:
        write_text(Path(json_file), _json(outcome))
    run = runs.create(root_folder, f"reproduce-{study}", "", {"study": study})
    write_text(run.folder / "study.json", json.dumps(outcome.as_dict(), ensure_ascii=False) + "\n")
    run.mark("done")
    return run


class _Bar:
    """The progress of a study: what it is doing, and how much of that is done."""

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
