"""`linkwright query SQL`: DuckDB over the results and samples of all runs."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from linkwright.cli import options
from linkwright.cli.output import print_json, print_table


@click.command(name="query")
@click.argument("sql")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@options.runs
def command(sql: str, as_json: bool, root_folder: Path) -> None:
    """Query all runs at once, in SQL. The tables are `results` and `samples`; docs/formats.md has their columns.

    \b
    linkwright query "select machine, algorithm, min(value) from results
                      where metric = 'time' and collective = 'allreduce' group by all"
    """
    import duckdb

    from linkwright.errors import StoreError, UsageError

    if not any(root_folder.glob("*/results.parquet")):
        raise StoreError(f"{root_folder}: holds no finished run; make one with `linkwright dissect`")
    connection = duckdb.connect()
    for table in ("results", "samples"):
        files = str(root_folder / "*" / f"{table}.parquet").replace("'", "''")
        connection.execute(f"create view {table} as select * from read_parquet('{files}', union_by_name=true)")
    try:
        answer = connection.execute(sql)
        if answer is None:
            raise UsageError("query: holds no statement; write one such as `select * from results`")
        columns = [column[0] for column in answer.description]
        rows = _rows(answer)
    except duckdb.Error as error:
        raise UsageError(f"query: {str(error).strip()}") from error
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        texts = [i for i in range(len(columns)) if any(isinstance(row[i], str) for row in rows)]
        print_table(columns, [["" if cell is None else str(cell) for cell in row] for row in rows], left=texts)


def _rows(answer) -> list[tuple]:
    """All rows. DuckDB needs a package that is not installed to convert times with a zone; Arrow does not."""
    if not any("TIME ZONE" in str(kind) for _, kind, *_ in answer.description):
        return answer.fetchall()
    with warnings.catch_warnings(action="ignore"):  # that Arrow copies the rows once more
        columns = answer.to_arrow_table().columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
