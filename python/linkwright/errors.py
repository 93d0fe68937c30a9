"""Every error that a user can cause.

An error message names the thing, the state and the cure, in one sentence or two. The command line
prints it without a traceback and exits with `exit_status`; a broken invariant is an ordinary Python
exception or a Rust panic and keeps its traceback, because that one is a bug of ours.

The native half raises the subclasses listed in `NATIVE`, one per error variant of the Rust crates.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LinkwrightError(Exception):
    """Something named, its state and what to do about it."""

    exit_status = 1


class UsageError(LinkwrightError):
    """The command or call itself is wrong: an unknown name, a size that is none."""

    exit_status = 2


class UnknownNameError(UsageError):
    """A name that no registry knows."""


class StoreError(LinkwrightError):
    """A run folder that cannot be read or written."""


class SuiteError(UsageError):
    """A suite file that says something impossible."""


def unknown(what: str, name: str, known: Iterable[str], *, where: str = "") -> UnknownNameError:
    """The error for `name`, which is no `what`, with the closest known names as the cure."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        cure = "did you mean " + " or ".join(f"`{c}`" for c in close) + "?"
    elif len(known) <= 12:
        cure = "known: " + (", ".join(f"`{k}`" for k in known) or "none")
    else:
        cure = f"{len(known)} are known; `linkwright list` names them"
    prefix = f"{where}: " if where else ""
    return UnknownNameError(f"{prefix}unknown {what} `{name}`; {cure}")
