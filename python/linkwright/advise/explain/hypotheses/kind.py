"""What a hypothesis is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from linkwright.advise.explain.system import System


@dataclass(frozen=True)
class Case:
    """One way in which a system may be wrong.

    Attributes:
        what: in words.
        system: how it would be.
        kind: the hypothesis in one or two words.
        cause: what usually makes it so.
        check: what to type or read.
        cure: what to do about it.
    """

    what: str
    system: System
    kind: str
    cause: str
    check: str
    cure: str


@dataclass(frozen=True)
class Hypothesis:
    """A kind of fault, and its cases on a system."""

    key: str
    summary: str
    cases: Callable[[System], Iterable[Case]]
