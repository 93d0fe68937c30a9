"""What a hypothesis is, and how the words of a log bear on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

COMMON, UNUSUAL, RARE = 1.0, 1.03, 1.15  # odds
TWO = 1.15  # odds of two faults at once
WITHIN = 1.5  # the factor by which a curve may be off the log's, to be a cause


@dataclass(frozen=True)
class Case:
    """One way in which a system may be wrong.

    Attributes:
        what: in words.
        system: how it would be.
        kind: the hypothesis in one or two words.
        cause: what usually makes it so.
        check: what to type or read; without what the log has said.
        cure: what to do about it.
        stated: what the log says that proves it; empty where it does not.
        within: the factor by which its curve may be off, to be a cause: less for faults whose curves fit many others.
        odds: how seldom it is the cause: a fault of odds 1.15 comes behind a common one that is 15 % farther.
        shape: whether only a whole curve shows it, because any single number fits it.
    """

    what: str
    system: System
    kind: str
    cause: str
    check: str
    cure: str
    stated: str = ""
    within: float = WITHIN
    odds: float = COMMON
    shape: bool = False

    def on_top_of(self, other: Case) -> Case:
        """Both faults; this one's system has the other already."""
        return replace(
            self, what=f"{other.what}; and {self.what}", kind=f"{other.kind} + {self.kind}",
            cause=f"{other.cause}; and {self.cause}", check=checks(other.check, self.check),
            cure=checks(other.cure, self.cure), stated="; ".join(filter(None, (other.stated, self.stated))),
            within=min(self.within, other.within), shape=self.shape or other.shape,
            odds=self.odds if other.stated else self.odds * other.odds * TWO,
        )  # fmt: skip


@dataclass(frozen=True)
class Hypothesis:
    """A kind of fault, and its cases on a system: none where the log excludes it."""

    key: str
    summary: str
    cases: Callable[[System, Facts], Iterable[Case]]


def checks(*commands: str) -> str:
    """What to type, without what is empty or there already."""
    return "; ".join(dict.fromkeys(part for command in commands for part in command.split("; ") if part))


def unless(known: object, command: str) -> str:
    """A command that reads what a log has not said; nothing where it is known."""
    return "" if known not in (None, "", {}, ()) else command
