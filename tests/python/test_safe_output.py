"""Control characters of names that strangers give do not reach the terminal."""

import io

import pytest

from linkwright.cli.safe_output import SafeOutput
from linkwright_cases import invoke


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain text\n\tand a tab\n", "plain text\n\tand a tab\n"),
        ("\x1b[1;32mgreen\x1b[0m", "\x1b[1;32mgreen\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[2Jcleared", "\\x1b[2Jcleared"),
        ("over\rwritten", "over\\rwritten"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_only_colours_pass(written, shown):
    stream = io.StringIO()
    SafeOutput(stream).write(written)
    assert stream.getvalue() == shown


def test_a_query_shows_escapes(tmp_path):
    run = tmp_path / "a-run"
    run.mkdir()
    for table in ("results", "samples"):
        assert invoke("simulate", "barrier", "--on", "loggp", "--output", str(run / f"{table}.parquet")).status == 0
    out = invoke("query", "SELECT 'a' || chr(27) || ']0;b' AS name", "--runs", str(tmp_path)).out
    assert "\x1b" not in out
    assert "a\\x1b]0;b" in out
