"""`--conditions FILE.csv`: the rows of a file whose conditions a study predicts, as text."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from linkwright.base.errors import FileError
from linkwright.base.files import read_text

MOST_ROWS = 1 << 20  # so that a wrong file ends in a message


def rows(file: Path, needed: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (file and line, row) for each row; fields that are missing at its end are empty.

    Args:
        file: CSV text whose first line names the columns.
        needed: columns that have to be there.

    Raises:
        FileError: the file is not such a table, or has no rows.
    """
    reader = csv.DictReader(io.StringIO(read_text(file, "a table of conditions")), restkey="", restval="")
    try:
        if missing := [name for name in needed if name not in (reader.fieldnames or ())]:
            names = ", ".join(f"`{name}`" for name in missing)
            raise FileError(f"{file}: no column {names}; the first line names the columns")
        doubled = [name for name, times in Counter(reader.fieldnames or ()).items() if times > 1]
        if doubled:
            raise FileError(f"{file}: column `{doubled[0]}` is there twice; omit one")
        count = 0
        for count, row in enumerate(reader, 1):
            where = f"{file}: line {reader.line_num}"
            if "" in row:
                raise FileError(f"{where}: more fields than columns; quote texts with commas")
            if count > MOST_ROWS:
                raise FileError(f"{file}: more than {MOST_ROWS:,} rows; split the file")
            yield where, row
    except csv.Error as error:
        raise FileError(f"{file}: line {reader.line_num}: {error}; write comma-separated values") from error
    if not count:
        raise FileError(f"{file}: no rows; give one line for each condition")
