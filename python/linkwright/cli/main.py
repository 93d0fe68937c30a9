"""The entry point: finds the verb, turns errors into one line and an exit status.

Exit status: 0 all is well, 1 some experiment failed, 2 wrong usage, 130 interrupted. `--help`
answers at once, so a verb's module imports numpy, pyarrow and the like inside its function; a test watches it.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from linkwright.cli.output import discard_stdout
from linkwright.errors import LinkwrightError, UsageError, unknown

# In the order in which help lists them. Each is a module of its own, unless it is an alias.
VERBS = (
    "list",
    "describe",
    "machines",
    "verify",
    "simulate",
    "run",
    "probe",
    "dissect",
    "sweep",
    "reproduce",
    "predict",
    "plan",
    "fit",
    "compare",
    "query",
    "export",
    "import",
    "report",
    "completion",
)
# Verb -> (module, command in it).
ALIASES = {"sweep": ("dissect", "sweep"), "import": ("import_", "command")}


class Verbs(click.Group):
    """A group that imports a verb only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of `VERBS`."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command in the verb's module."""
        if name not in VERBS:
            raise unknown("verb", name, VERBS)
        module, command = ALIASES.get(name, (name, "command"))
        return getattr(importlib.import_module(f"linkwright.cli.{module}"), command)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="linkwright", prog_name="linkwright")
def linkwright() -> None:
    """Dissect how a machine communicates.

    The same schedules are verified, simulated on a described machine and executed on this one. Every number comes with
    its spread, the limit above it and, if there is one, the published value. Sizes are in bytes; K, M and G are
    1024-based.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit."""
    sys.exit(status_of(arguments))


def status_of(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status; every user error becomes one message on stderr."""
    if sys.stdout is None:
        return _complain("standard output is closed; open it, or send it to /dev/null", 2)
    try:
        # `auto` is click's rule, colour on a terminal; https://no-color.org is not part of it.
        colour = False if os.environ.get("NO_COLOR") else None
        status = linkwright.main(arguments, prog_name="linkwright", standalone_mode=False, color=colour)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except LinkwrightError as error:
        if _said_by_rank_0(error):
            return error.exit_status
        return _complain(str(error), error.exit_status)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.UsageError as error:
        if _said_by_rank_0(error):
            return 2
        hint = f" (see `{error.ctx.command_path} --help`)" if error.ctx else ""
        return _complain(error.format_message() + hint, 2)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader of a pipe has gone, as `head` does, so an error could not be read either.
        discard_stdout()
        return 1
    except OSError as error:
        if error.filename is not None:
            return _complain(f"{error.filename}: {error.strerror}; make it accessible, or name another", 1)
        discard_stdout()
        return _complain(f"standard output: {error.strerror}; send it elsewhere, or free some space", 1)


def _said_by_rank_0(error: Exception) -> bool:
    """Whether this rank repeats a complaint that rank 0 prints for all ranks of an MPI job."""
    everywhere = isinstance(error, UsageError | click.UsageError) or getattr(error, "everywhere", False)
    if not everywhere:
        return False
    from linkwright.executors.mpi.world import rank_from_launcher

    return rank_from_launcher() > 0


def _complain(message: str, status: int) -> int:
    click.echo(f"linkwright: {message}", err=True)
    return status
