"""The entry point: find the verb, and turn an error into one line and an exit status.

Exit status: 0 success, 1 some experiment failed, 2 wrong usage, 130 interrupted. `--help` is fast: the summaries of all
verbs are in this file, and the module of a verb is imported when the verb is used. That module imports numpy, pyarrow
and the like inside its function, which a test checks.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import inspect
import keyword
import os
import sys
from typing import NamedTuple, TextIO, cast

import click

from linkwright.base.errors import LinkwrightError, UsageError, check_known
from linkwright.cli.safe_output import SafeOutput

# Heading -> verb -> summary, in the order of `--help`. The module of a verb has the verb's name; its help begins with
# the summary.
GROUPS = {
    "Ask a model": {
        "simulate": "Simulate COLLECTIVE, a traffic pattern or the schedule of SOURCE on described machines.",
        "explain": "Explain a number: why it is what it is, what binds it, and what would be faster.",
        "expect": "State what COLLECTIVE gives on a healthy machine, with tolerances, and write gates for operators.",
        "locate": "Find the slow link, port or host of a cluster with few tests.",
        "predict": "Forecast the program APP on described machines.",
        "draw": "Draw a machine, a run or schedules, or write the report of a run, and print the path.",
        "play": "Write the playground: simulate described machines in a browser, offline.",
        "machines": "List and show described machines, or import one from what a system reports.",
        "list": "List everything that has a name, or all of one KIND.",
        "describe": "Describe what NAME stands for.",
    },
    "Measure": {
        "dissect": "Measure what a machine can do, and rate the results.",
        "run": "Run COLLECTIVE, a traffic pattern, a probe or the schedule of SOURCE on hardware, checked and timed.",
        "cluster": "Make a cluster of network namespaces on this host, to try things on.",
        "compare": "Compare two runs, experiment by experiment, or two described machines.",
    },
    "Improve": {
        "synthesize": "Find schedules of COLLECTIVE that are fast on a described machine.",
        "tune": "Make a communication runtime, or an engine that serves models, use the fastest of its algorithms.",
        "plan": "Recommend one of several options, with the cost of each.",
        "fit": "Fit a machine file to the measurements of RUN.",
    },
    "Evidence": {
        "verify": "Prove a COLLECTIVE or the schedule of SOURCE correct.",
        "reproduce": "Re-run a published STUDY on its model.",
    },
    "Exchange": {
        "import": "Read FILES of benchmarks and profilers into a new run folder.",
        "export": "Write a run, or a schedule, in another format.",
        "query": "Query all runs at once, in SQL.",
        "completion": "Print the completion script for SHELL.",
    },
}
VERBS = {verb: summary for verbs in GROUPS.values() for verb, summary in verbs.items()}


class Old(NamedTuple):
    """The replacement of a former verb: a current verb, with other defaults for some options."""

    verb: str
    defaults: dict[str, object]
    written: str  # what to type instead


OLD = {
    "probe": Old("run", {}, "run NAME"),
    "sweep": Old("dissect", {"level": "full", "time_budget": "90s"}, "dissect SUITE --level full --time-budget 90s"),
    "report": Old("draw", {"report": True}, "draw RUN --report"),
}

OUR_BUG = "this is a bug in linkwright: please report it, with the command and the files that it read"


# Maximum characters of a message; from a longer one, the first and the last are shown.
MOST_CHARACTERS = 4000


HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
# `--output` was the spelling of some verbs for `--out`.
ONE_SPELLING = {"token_normalize_func": lambda name: "out" if name == "output" else name}


class Verbs(click.Group):
    """A group that imports a verb only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of `GROUPS`."""
        return list(VERBS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a verb; a former verb gives its replacement, with its defaults."""
        if old := OLD.get(args[0]):
            if not ctx.resilient_parsing:  # as shell completion does
                click.echo(f"linkwright: `{args[0]}` is now `linkwright {old.written}`", err=True)
            ctx.default_map = {old.verb: old.defaults}
            args = [old.verb, *args[1:]]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the verb's command, and put the summary before its help."""
        check_known("verb", name, VERBS, lists="linkwright --help")
        module = importlib.import_module(
            f"linkwright.cli.{name}_" if keyword.iskeyword(name) else f"linkwright.cli.{name}"
        )
        command = copy.copy(module.command)
        command.help = f"{VERBS[name]}\n\n{inspect.cleandoc(command.help)}" if command.help else VERBS[name]
        command.short_help = VERBS[name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the tables of verbs without importing them; their columns are aligned."""
        width = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.ljust(width), summary) for verb, summary in verbs.items()])


@click.group(cls=Verbs, context_settings={**HELP, **ONE_SPELLING})
@click.version_option(package_name="linkwright", prog_name="linkwright")
def linkwright() -> None:
    """Dissect how a machine communicates.

    The same schedules are verified, simulated on a described machine and executed on this one. Every number comes with
    its spread, the limit above it and, if there is one, the published value. Sizes are in bytes; K, M and G are
    1024-based.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit."""
    # Objects that modules define are never freed, so scanning them again and again during imports is wasted work.
    gc.set_threshold(20_000)
    sys.exit(status_of(arguments))


def status_of(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status; every user error becomes one message on stderr."""
    if sys.stdout is None:
        return _complain("standard output is closed; open it, or send it to /dev/null", 2)
    if sys.stderr is None:
        _open_stderr()
    with contextlib.redirect_stdout(cast(TextIO, SafeOutput(sys.stdout))):
        return _status_of(arguments)


def _open_stderr() -> None:
    """Send messages to /dev/null if standard error is closed, so that no other file takes its descriptor."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.set_inheritable(2, True)
    sys.stderr = open(2, "w")  # noqa: SIM115 (to the end of the process)


def _check_proof_key(digits: str) -> None:
    """Reject an invalid `LINKWRIGHT_PROOF_KEY` at the start, rather than at the first proof."""
    if not (0 < len(digits) <= 32 and set(digits) <= set("0123456789abcdef")):
        raise UsageError(
            "LINKWRIGHT_PROOF_KEY is not a hexadecimal number of up to 32 digits, as `environment.json` of a run "
            "states it; correct it, or unset it for new random numbers"
        )


def _status_of(arguments: list[str] | None) -> int:
    try:
        # None is click's rule, colour on a terminal, which does not include https://no-color.org.
        colour = False if os.environ.get("NO_COLOR") else None
        _check_proof_key(os.environ.get("LINKWRIGHT_PROOF_KEY", "0"))
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
        # The reader of the pipe has exited, as `head` does, so nobody would read an error either.
        _discard_stdout()
        return 1
    except OSError as error:
        if error.filename is not None:
            return _complain(f"{error.filename}: {error.strerror}; make it accessible, or choose another", 1)
        _discard_stdout()
        return _complain(f"standard output: {error.strerror}; redirect it elsewhere, or free some space", 1)
    except MemoryError:
        return _complain("out of memory; ask for less at once, or close other programs", 1)
    except BaseException as error:
        if not _is_panic(error):
            raise
        return _complain(f"internal error: {error}; {OUR_BUG}", 1)


def _is_panic(error: BaseException) -> bool:
    """Whether the error is a panic of the Rust half, whose exception class cannot be imported."""
    return type(error).__module__ == "pyo3_runtime" and type(error).__name__ == "PanicException"


def _said_by_rank_0(error: Exception) -> bool:
    """Whether rank 0 of an MPI job prints this error for all ranks, and this is another rank."""
    everywhere = isinstance(error, UsageError | click.UsageError) or getattr(error, "everywhere", False)
    if not everywhere:
        return False
    from linkwright.executors.mpi.world import rank_from_launcher

    return rank_from_launcher() > 0


def _discard_stdout() -> None:
    from linkwright.cli.output import discard_stdout

    discard_stdout()


def _complain(message: str, status: int) -> int:
    click.echo(f"linkwright: {_plain(message)}", err=True)
    return status


def _plain(message: str) -> str:
    """Make a message safe to print: names may contain control characters, which move the cursor, or be very long."""
    if len(message) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        message = f"{message[:half]} ... {message[-half:]}"
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in message)
