"""What a hypothesis is, and how the words of a log bear on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from linkwright.advise.explain.links import FINE
from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

COMMON, UNUSUAL, RARE = 1.0, 0.25, 0.05  # how often a kind is the cause, to each other
TWO = 0.03  # how much seldomer two faults are at once
# How well the strength of a fault is known, as a share of ln(fault / healthy): of a choice of the library, of another
# path of the data, and of links that carry a part, whatever it is.
KNOWN, ROUGH, FREE = 0.15, 0.3, 0.5
# Shares of the rate of a NIC's way through its processor. Machine files state each way alone and assume what the memory
# behind all of them carries; two nodes of H100 without GPUDirect were posted at a sixth (72 of 456 GB/s).
# The second share is assumed: it lies between.
THROUGH_HOST = (1.0, 0.25)
STEADY, UNSTEADY = 0.1, 0.2  # what differs from size to size, as a share of the time


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
        common: how often it is the cause, in comparison with others.
        strength: how well its strength is known, as a share of ln(fault / healthy).
        noise: what differs from size to size, as a share of the time.
    """

    what: str
    system: System
    kind: str
    cause: str
    check: str
    cure: str
    stated: str = ""
    common: float = COMMON
    strength: float = KNOWN
    noise: float = STEADY

    def on_top_of(self, other: Case) -> Case:
        """Both faults; this one's system has the other already."""
        return replace(
            self, what=f"{other.what}; and {self.what}", kind=f"{other.kind} + {self.kind}",
            cause=f"{other.cause}; and {self.cause}", check=checks(other.check, self.check),
            cure=checks(other.cure, self.cure), stated="; ".join(filter(None, (other.stated, self.stated))),
            common=self.common if other.stated else self.common * other.common * TWO,
            strength=max(self.strength, other.strength), noise=max(self.noise, other.noise),
        )  # fmt: skip


@dataclass(frozen=True)
class Hypothesis:
    """A kind of fault, and its cases on a system: none where the log excludes it."""

    key: str
    summary: str
    cases: Callable[[System, Facts], Iterable[Case]]


def is_full(facts: Facts, links: str) -> bool:
    """Whether a test in the same log measured all links of a class at their rate."""
    return facts.measured.get(links, (0.0, 0.0))[1] >= FINE["port" if links == "port" else "pair"]


def measured_slow(facts: Facts, links: str) -> float | None:
    """The share of its rate at which a test in the same log measured a class of links, if that is low; else None."""
    usual, _ = facts.measured.get(links, (1.0, 1.0))
    return usual if usual < FINE["port" if links == "port" else "pair"] else None


def through_host(system: System, part: float) -> System:
    """Return the system with a part of the rate of each NIC's way through its processor."""
    return system if part == 1 else system.slowed("host", part)


def checks(*commands: str) -> str:
    """What to type, without what is empty or there already."""
    return "; ".join(dict.fromkeys(part for command in commands for part in command.split("; ") if part))


def unless(known: object, command: str) -> str:
    """A command that reads what a log has not said; nothing where it is known."""
    return "" if known not in (None, "", {}, ()) else command
