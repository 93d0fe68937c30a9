"""What an export or import format is, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from linkwright.base.errors import UsageError
from linkwright.base.files import write_folder, write_whole

Rows = Sequence[dict[str, object]]


@dataclass(frozen=True)
class Content:
    """Result rows to export, and what is known about them."""

    rows: Rows
    run: str = ""
    # Machine -> its numbers, each with unit, status and source.
    constants: Mapping[str, list[dict[str, str]]] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)
    # The text of a schedule of the user's, by the digest in a row.
    schedule: Callable[[str], str] = str

    def only_machine(self, rows: Rows, what: str) -> str | None:
        """The machine that `rows` are about, for formats that hold a single one; `what` says what the rows are."""
        machines = list(dict.fromkeys(row["machine"] for row in rows))
        if len(machines) > 1:
            raise UsageError(f"{self.run}: holds {what} of {' and '.join(machines)}; choose one with --machine")
        return machines[0] if machines else None


@dataclass(frozen=True)
class Format:
    """A format, as `list` and `describe` print it."""

    key: str
    summary: str
    description: str
    source: str

    def described(self) -> dict[str, object]:
        """Everything but the function."""
        return {key: value for key, value in vars(self).items() if not callable(value)}


@dataclass(frozen=True)
class Exporter(Format):
    """A format that is written. `--out` chooses it by its suffix, if it has one, and `export` by its key.

    Attributes:
        render: the file, or the files of a folder by name.
        suffix: of its files, by which `--out` chooses it.
        needs: what the rows must hold.
        schedules: whether it also writes a schedule that is named in place of a run.
    """

    render: Callable[[Content], str | bytes | Mapping[str, bytes]]
    suffix: str | None = None
    needs: str = "any result row"
    schedules: bool = False

    def write(self, content: Content, path: Path) -> int:
        """Write `content` to `path`, whole or not at all; the number of bytes."""
        rendered = self.render(content)
        if isinstance(rendered, Mapping):
            write_folder(path, rendered)
            return sum(map(len, rendered.values()))
        data = rendered.encode("utf-8", "backslashreplace") if isinstance(rendered, str) else rendered
        write_whole(path, lambda temporary: temporary.write_bytes(data))
        return len(data)


@dataclass(frozen=True)
class Importer(Format):
    """A format that is read: the logs of a tool."""

    tool: str
