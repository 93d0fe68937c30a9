"""What a communication runtime is to `tune`: its algorithms by our names, and the file that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .rules import Table


@dataclass(frozen=True)
class About:
    """What the tables are from."""

    title: str  # `hgx-h100, predicted` or `run 20250102-...`
    # What a library would use, by collective, algorithm, ranks and size in bytes, where that is known.
    channels: Callable[[str, str, int, int], int | None] = lambda *_: None
    nodes: int | None = None  # of the machine, where it is made of equal ones
    base: Path | None = None  # the runtime's own file, which is extended


@dataclass(frozen=True)
class Written:
    """The file for a runtime and, where its format has no comments, the reasons for a separate file."""

    text: str
    reasons: str | None = None


@dataclass(frozen=True)
class Runtime:
    """A communication runtime.

    Attributes:
        key: after `--for`.
        summary: one line.
        description: what the file holds, how it is used, and what it leaves out.
        source: of the format and the names.
        algorithms: by collective, our algorithm -> the runtime's name or number.
        render: the file, from tables that hold only algorithms of the runtime.
        library: whether the algorithms are those of a described machine's library, such as `nccl-2.27/ring/ll`.
        needs_base: whether the file extends one of the runtime's own.
    """

    key: str
    summary: str
    description: str
    source: str
    algorithms: Mapping[str, Mapping[str, object]]
    render: Callable[[Sequence[Table], About], Written]
    library: str | None = None
    needs_base: bool = False

    def word(self, collective: str, algorithm: str, ranks: int) -> object | None:
        """The runtime's name of one of our algorithms; None where it has none."""
        name = algorithm
        if self.library:
            stem, _, name = algorithm.partition("/")
            if not stem.startswith(f"{self.library}-"):
                return None
        if name in NEED_POWERS_OF_TWO and ranks & (ranks - 1):
            return None
        return self.algorithms.get(collective, {}).get(name)

    def described(self) -> dict[str, object]:
        """As `list` and `describe` print it."""
        return {
            "key": self.key, "summary": self.summary, "description": self.description,
            "algorithms": {name: ", ".join(known) for name, known in self.algorithms.items()}, "source": self.source,
        }  # fmt: skip


# Beyond powers of two, a runtime's algorithm of this kind is another one, or none.
NEED_POWERS_OF_TWO = frozenset({"recursive_doubling", "recursive_halving"})


def reasons(tables: Sequence[Table], about: About) -> str:
    """Reasons for the tables, for a separate file if a format has no comments."""
    lines = [f"from {about.title}"]
    for table in tables:
        lines += [
            f"{table.collective}, {table.ranks} ranks, from {rule.size_bytes} B: {rule.algorithm}, {rule.why}"
            for rule in table.rules
        ]
    return "\n".join(lines) + "\n"
