"""Helpers that several test files use."""

import contextlib
import io
import os
from typing import NamedTuple

from linkwright.cli.main import status_of

# Texts are those of a pipe: 80 columns, without colour.
for name in ("COLUMNS", "NO_COLOR"):
    os.environ.pop(name, None)


# A measurement that ends as soon as its launches roughly agree. Where other tests keep the processors busy it takes all
# of its time, so this is short.
BRIEF = ("--time-budget", "8s", "--target", "90%")


class Result(NamedTuple):
    status: int
    out: str
    err: str


def invoke(*arguments: str) -> Result:
    """Run one command in this process, as the entry point does."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = status_of(list(arguments))
    return Result(status, out.getvalue(), err.getvalue())
