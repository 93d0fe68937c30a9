"""`linkwright query SQL`: DuckDB over the results and samples of all runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from linkwright.base.errors import StoreError, UsageError
from linkwright.cli import options
from linkwright.cli.output import print_json, print_table

TABLES = ("results", "samples")


@click.command(cls=options.Command, name="query")
@click.argument("sql")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@options.runs
def command(sql: str, as_json: bool, root_folder: Path) -> None:
    """The tables are `results` and `samples`; docs/formats.md has their columns.

    \b
    linkwright query "select machine, algorithm, min(value) from results
                      where metric = 'time' and collective = 'allreduce' group by all"
    """
    from linkwright.base import extras
    from linkwright.store import tables

    duckdb = extras.load("duckdb", "analysis", "linkwright query")
    folders = _whole(root_folder, tables.glance)
    try:
        columns, rows = _answer(folders, sql)
    except duckdb.Error as error:
        whole = _whole(root_folder, tables.read, told=False)  # what a glance does not see
        if whole == folders:
            raise UsageError(f"query: {str(error).strip()}") from error
        try:
            columns, rows = _answer(_whole(root_folder, tables.read), sql)
        except duckdb.Error as again:
            raise UsageError(f"query: {str(again).strip()}") from again
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        texts = [i for i in range(len(columns)) if any(isinstance(row[i], str) for row in rows)]
        print_table(columns, [["" if cell is None else str(cell) for cell in row] for row in rows], left=texts)


def _whole(root: Path, read: Callable[[Path], object], *, told: bool = True) -> list[Path]:
    """The folders of finished runs whose tables `read` accepts; the others are named on stderr."""
    found = sorted(path.parent for path in root.glob("*/results.parquet"))
    if not found:
        raise StoreError(f"{root}: holds no finished run; create one with `linkwright dissect`")
    kept = []
    for folder in found:
        try:
            for table in TABLES:
                if (path := folder / f"{table}.parquet").exists():
                    read(path)
            kept.append(folder)
        except StoreError as error:
            if told:
                click.echo(f"linkwright: left out: {error}", err=True)
    if not kept:
        raise StoreError(f"{root}: none of its {len(found)} runs can be read; create one with `linkwright dissect`")
    return kept


def _answer(folders: list[Path], sql: str) -> tuple[list[str], list[tuple]]:
    """Columns and rows of the answer over the runs in `folders`."""
    import duckdb

    from linkwright.base.files import shown_name

    connection = duckdb.connect()
    for table in TABLES:
        paths = [path for folder in folders if (path := folder / f"{table}.parquet").exists()]
        if strange := next((path for path in paths if shown_name(path) != str(path)), None):
            raise UsageError(f"{strange}: SQL names files in UTF-8, and this is none; reach the folder by a link")
        files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
        if paths:
            connection.execute(f"create view {table} as select * from read_parquet([{files}], union_by_name=true)")
    answer = connection.execute(sql)
    if answer is None or answer.description is None:
        raise UsageError("query: contains no statement; write one such as `select * from results`")
    return [column[0] for column in answer.description], answer.fetchall()
