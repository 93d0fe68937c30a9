"""`linkwright reproduce STUDY`: a published study re-run on a model, scored cell by cell."""

from __future__ import annotations

import json
from pathlib import Path

import click

from linkwright.cli.output import print_table, progress


@click.command(name="reproduce")
@click.argument("study")
@click.option("--table", "only", multiple=True, help="Print only these tables (repeatable).")
@click.option("--full", is_flag=True, help="Also 20 seeds, buffer and channel variants, blind predictions.")
@click.option("--cells", "show_cells", is_flag=True, help="Print every cell, not only the summary.")
@click.option("--seed", default=1, show_default=True, help="Seed of poll offsets and skew.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="All as JSON; `-` is stdout.")
def command(
    study: str, only: tuple[str, ...], full: bool, show_cells: bool, seed: int, json_file: str | None
) -> None:
    """Re-run the published STUDY on its model and compare cell by cell.

    Prints, per table: cells, fitted numbers used, median, 90th percentile and largest relative error, the
    share within 10 %; and which claims hold or fail. Cells without a published value are predicted too.
    A claim that fails is a finding, not an error: the exit status stays 0.
    """
    from linkwright import studies
    from linkwright.store.files import write_text

    with progress(1, f"reproduce {study}") as bar:

        def told(what: str, done: int, total: int) -> None:
            bar.show(what, done, total)

        outcome = studies.reproduce(study, studies.Options(full=full, seed=seed, progress=told))
    document = json.dumps(outcome.as_dict(), indent=1, ensure_ascii=False)
    if json_file == "-":
        click.echo(document)
        return
    if json_file:
        write_text(Path(json_file), document + "\n")
    _print(outcome, only, show_cells)


def _print(outcome, only: tuple[str, ...], show_cells: bool) -> None:
    from linkwright.errors import unknown
    from linkwright.studies import held

    tables = list(dict.fromkeys(cell.table for cell in outcome.cells))
    for name in only:
        if name not in tables:
            raise unknown("table", name, tables)
    chosen = [name for name in tables if not only or name in only]
    click.echo(f"{outcome.title}\nmachine {outcome.machine}, {len(outcome.fitted)} fitted numbers\n")
    header = ["table", "cells", "scored", "median", "p90", "max", "within 10 %"]
    rows = [
        [
            row["table"],
            str(row["cells"]),
            str(row["scored"]),
            *(_percent(row.get(key)) for key in ("median", "p90", "max", "within_10_percent")),
        ]
        for row in outcome.summary()
        if row["table"] in chosen
    ]
    print_table(header, rows)
    if show_cells:
        for name in chosen:
            _print_cells(name, [cell for cell in outcome.cells if cell.table == name])
    if not only:
        _print_claims(outcome.claims)
        good, judged = held(outcome.claims)
        click.echo(f"\n{good} of {judged} claims hold")


def _print_cells(name: str, cells: list) -> None:
    click.echo(f"\n{name}")
    keys = [key for key in cells[0].keys if key != "table"]
    rows = [
        [
            *(str(cell.keys[key]) for key in keys),
            _value(cell.predicted),
            _value(cell.reference),
            cell.unit,
            _percent(cell.error),
            cell.erratum or "",
        ]
        for cell in cells
    ]
    print_table([*keys, "predicted", "reference", "unit", "error", "erratum"], rows, left=(0, 1))


def _print_claims(claims: list) -> None:
    click.echo()
    for claim in claims:
        verdict = {True: "held", False: "FAILED", None: "open"}[claim.holds]
        click.echo(f"{verdict:6}  {claim.id:4}  {claim.statement}\n              {claim.why}")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f} %"


def _value(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
