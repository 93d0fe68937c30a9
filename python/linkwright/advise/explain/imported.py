"""The logs that a run was imported from, against healthy machines.

    logs of the run -> the same answers as `explain LOG` gives -> one state and one sentence

`import`, `report`, `compare` and `explain` all judge an imported run by what stands here, so none of them calls a log
healthy that another one calls slow. The machine is that which the import was given, or which the log names.

What it does not do: a log whose collective only the import was told is compared with nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkwright.base.errors import LinkwrightError
from linkwright.formats import logs as formats
from linkwright.formats.logs import Log
from linkwright.libraries import tolerance
from linkwright.machines import Variant
from linkwright.store.run import Run

from . import log as logs
from .log import Answer


@dataclass(frozen=True)
class LogJudged:
    """What is to be said of a log: the answers to its tables, or why there are none."""

    path: Path
    log: Log
    answers: Sequence[Answer] = ()
    refused: str = ""

    @property
    def state(self) -> str:
        """One of `healthy`, `suspicious` and `unsure`, as reports have them."""
        if not all(one.passes for one in self.answers):
            return "suspicious"
        return "healthy" if self.answers and all(one.verdict.word == "fine" for one in self.answers) else "unsure"

    @property
    def sentences(self) -> list[str]:
        """The verdict on each table, the worst first; equal ones are said once, with their number."""
        if not self.answers:
            return [f"Compared with no healthy machine: {self.refused}."]
        ordered = sorted(self.answers, key=lambda one: (one.passes, one.verdict.share))
        counts = Counter(map(_sentence, ordered))
        return [text if count == 1 else f"{text} {count:,} tables have this verdict." for text, count in counts.items()]


def _sentence(answer: Answer) -> str:
    first = logs.verdict_in_words(answer)[0].removeprefix("Verdict: ")
    network = f" over {answer.system.fabric}" if answer.system.nodes > 1 else ""
    wrong = f"{answer.wrong} " if answer.wrong else ""
    return f"{wrong}{answer.system.collective} on {answer.system.machine}{network}: {first}"


def judged(run: Run, *, causes: bool = False) -> list[LogJudged]:
    """Judge the logs of an imported run; empty for runs of linkwright itself.

    Args:
        run: the run.
        causes: whether to look for causes, too, which takes longer.
    """
    machine, variant, ranks = asked(run.plan.get("request", {}))
    return [_judged(path, machine, variant, ranks, causes=causes) for path in run.logs]


def asked(request: Mapping[str, Any]) -> tuple[str | None, Variant, int | None]:
    """Return the healthy machine, its variant and the ranks that an import was given."""
    variant = Variant.of(**request["variant"]) if "variant" in request else Variant()
    return request.get("on"), variant, request.get("ranks")


def _judged(path: Path, machine: str | None, variant: Variant, ranks: int | None, *, causes: bool) -> LogJudged:
    log = formats.read_log(path)
    try:
        answers = logs.answers(log, logs.tables(log), machine, variant, ranks, causes=causes)
    except LinkwrightError as error:
        return LogJudged(path, log, refused=str(error))
    return LogJudged(path, log, answers, "" if answers else "it names no collective that a machine is known for")


def worst(found: Sequence[LogJudged]) -> LogJudged:
    """Return the log that decides about a run."""
    return min(found, key=lambda one: ("suspicious", "unsure", "healthy").index(one.state))


def tolerance_of(found: Sequence[LogJudged], row: Mapping[str, Any]) -> float:
    """Return by what share healthy systems of the kind of a result row differ: the tolerance of `expect`."""
    collective, ranks, size = row["collective"] or "sendrecv", row["ranks"], row["size_bytes"] or 1
    its = [one.system for one in _answers(found) if (one.system.collective, one.system.ranks) == (collective, ranks)]
    kinds = [(one.machine, one.fabric, one.nodes) for one in its] or [("", None, 1), ("", None, 2)]
    return max(tolerance.of(machine, fabric, collective, nodes, size).share for machine, fabric, nodes in kinds)


def _answers(found: Sequence[LogJudged]) -> Iterator[Answer]:
    for one in found:
        yield from one.answers
