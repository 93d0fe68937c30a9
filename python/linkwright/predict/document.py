"""Program files: TOML tables whose keys are asked for one by one; what nobody asked for is an error.

Sizes are texts such as `64K` (K, M and G are 1024-based), times are texts such as `12us`.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path

from linkwright import units
from linkwright.errors import FileError, UsageError, unknown
from linkwright.store.files import read_text


def read(file: Path) -> Table:
    """The program file at `file`."""
    return parse(read_text(file, "a program file"), file.name)


def parse(text: str, name: str) -> Table:
    """The text of a program file; `name` is the file's, for messages."""
    try:
        return Table(tomllib.loads(text), name)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{name}: no valid TOML: {error}") from error


class Table:
    """One table of the file; `end` reports keys that nobody asked for."""

    def __init__(self, values: dict, where: str):
        self.where = where
        self._values = values
        self._known: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self._known.add(key)
        return key in self._values

    def error(self, problem: str) -> FileError:
        """The error of this table that says `problem`."""
        return FileError(f"{self.where}: {problem}")

    def expect(self, key: str, value: object) -> None:
        """The key has this value, the only one that this version reads."""
        found = self._take(key, object)
        if found != value:
            raise self.error(f"{key} is {found!r}; this version reads {value!r} only")

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty."""
        found = self._take(key, str, default)
        if not found.strip():
            raise self.error(f"{key} is empty; write a text")
        return found

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        """One of a closed list of words."""
        found = self.text(key, default)
        if found not in known:
            raise unknown(key, found, known, where=self.where)
        return found

    def count(self, key: str, default: int | None = None, least: int = 1) -> int:
        """A whole number."""
        found = self._take(key, int, default)
        if found < least:
            raise self.error(f"{key} is {found}; give at least {least}")
        return found

    def flag(self, key: str) -> bool:
        """`true` or `false`, false where it is absent."""
        return self._take(key, bool, False)

    def amount(self, key: str, default: float | None = None) -> float:
        """A number that is not negative, such as 2e9."""
        found = self._take(key, (int, float), default)
        if not 0 <= found < float("inf"):
            raise self.error(f"{key} is {found}; give a finite number that is not negative")
        return float(found)

    def size(self, key: str, default: str | None = None) -> int:
        """Bytes from a text such as `64K`."""
        text = self._take(key, str, default)
        try:
            return units.parse_size(text)
        except UsageError as error:
            raise self.error(f"{key}: {error}") from error

    def time_ns(self, key: str) -> float:
        """Nanoseconds from a text such as `12us`."""
        text = self._take(key, str)
        try:
            return units.parse_duration_s(text, with_unit=True) * 1e9
        except UsageError as error:
            raise self.error(f"{key}: {error}") from error

    def values(self, key: str, default: list | None = None) -> list:
        """A list, whatever its items are."""
        return self._take(key, list, default)

    def is_text(self, key: str) -> bool:
        """Whether the key is there and is a text."""
        return isinstance(self._values.get(key), str)

    def is_table(self, key: str) -> bool:
        """Whether the key is there and is a table."""
        return isinstance(self._values.get(key), dict)

    def table(self, key: str) -> Table:
        """The table `[key]`."""
        return Table(self._take(key, dict), f"{self.where}: {key}")

    def tables(self, key: str, default: list | None = None) -> list[Table]:
        """The tables of `[[key]]` in order."""
        found = self._take(key, list, default)
        if not all(isinstance(item, dict) for item in found):
            raise self.error(f"{key} is no list of tables; write [[{key}]]")
        return [Table(item, f"{self.where}: {key}[{i}]") for i, item in enumerate(found)]

    def end(self) -> None:
        """No key is left that nobody asked for."""
        for key in self._values:
            if key not in self._known:
                raise unknown("key", key, self._known, where=self.where)

    def _cure(self, missing: str) -> str:
        """A key that nobody asks for and that is close may be a misspelt one."""
        close = difflib.get_close_matches(missing, set(self._values) - self._known, n=1)
        return f"did you mean it by `{close[0]}`?" if close else "add it"

    def _take(self, key: str, kind: type | tuple[type, ...], default: object = None) -> object:
        self._known.add(key)
        found = self._values.get(key, default)
        if found is None:
            raise self.error(f"missing key `{key}`; {self._cure(key)}")
        # A boolean is an int to Python, not to the file.
        if not isinstance(found, kind) or (isinstance(found, bool) and kind in (int, (int, float))):
            words = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}
            raise self.error(f"{key} is {found!r}; write {words.get(kind, 'a number')}")
        return found
