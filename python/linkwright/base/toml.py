"""TOML files whose keys are declared: one declaration reads a file, checks values made in Python and gives the schema.

    PART = {
        "name": Key(TEXT, "prefix of the keys of its experiments", required=True),
        "sizes": Key(Many(SIZE), "message sizes"),
        "root": Key(whole(0), "root of rooted collectives", default=0),
    }
    part = read(values, PART, Place("mine.toml", "part[0]"))
    part["sizes"], part["root"]                 # (8, 65536), 0

A `Kind` describes the values of a key. Reading turns `"64K"` into 65536 and a list into a tuple; `show` is the inverse.
An undeclared key is an error, so a misspelt optional key never falls back silently to its default. Every error names
file, table, key, the value and what to write.
"""

# `Kind` documents the methods that its subclasses override.
# ruff: noqa: D102

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from linkwright.base import units
from linkwright.base.errors import UsageError, check_known, nearest, unknown
from linkwright.base.units import NS_PER_S

Schema = dict[str, Any]
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"

# Limits of every file: what is larger is a mistake, or the work of somebody who wants to fill a memory.
MOST_ITEMS = 100_000  # of a list
MOST_WHOLE = 1 << 53  # a whole number that a float holds exactly
MOST_AMOUNT = 1e24  # of things counted, so that products of a few do not overflow
SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True)
class Place:
    """A file and a table in it, for messages; `error` is the class of its errors."""

    file: str
    path: str = ""
    error: type[UsageError] = UsageError

    @property
    def where(self) -> str:
        """The beginning of messages."""
        return f"{self.file}: {self.path}" if self.path else self.file

    def wrong(self, problem: object) -> UsageError:
        """The error for a `problem` here."""
        return self.error(f"{self.where}: {problem}")

    def inside(self, key: str) -> Place:
        """The place of a table within this one."""
        return replace(self, path=f"{self.path}.{key}" if self.path else key)


class Kind:
    """The values that a key may have."""

    words = ""  # completes "write ..."
    types: tuple[type, ...] = (str,)  # that TOML gives

    def fits(self, value: Any) -> bool:
        """Whether a Python value is of this kind."""
        raise NotImplementedError

    def parse(self, value: Any) -> object:
        """The Python value of a TOML value."""
        return value

    def show(self, value: Any) -> object:
        """The inverse of `parse`."""
        return value

    def schema(self) -> Schema:
        """The JSON schema of the TOML value."""
        raise NotImplementedError

    def read(self, key: str, value: object, place: Place) -> object:
        """The value of `key` in a file."""
        try:
            found = self.parse(value) if type(value) in self.types else None
        except UsageError as error:
            raise place.wrong(f"{key}: {error}") from error
        if found is None or not self.fits(found):
            raise self.refused(key, value, place)
        return found

    def check(self, key: str, value: object, place: Place) -> None:
        """Refuse a value, made in Python, that no file could hold."""
        if not self.fits(value):
            raise self.refused(key, value, place)

    def refused(self, key: str, value: object, place: Place) -> UsageError:
        """The error for a value of another kind."""
        return place.wrong(f"{key} is {_shown(value)}; write {self.words}")


def _shown(value: object) -> str:
    """A value in a message, cut if it is long."""
    if isinstance(value, int) and abs(value) > 10**SHOWN:
        return "a number of more than 80 digits"
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


@dataclass(frozen=True)
class Key:
    """A key of a table: its values, its meaning, and its default."""

    kind: Kind
    doc: str
    required: bool = False
    default: object = None


Keys = Mapping[str, Key]


class Table(dict):
    """The keys that a table states, read; absent ones give their defaults."""

    def __init__(self, keys: Keys, place: Place):
        super().__init__()
        self._keys, self._place = keys, place
        self.where, self.error = place.where, place.wrong

    def __missing__(self, key: str) -> Any:
        return self._keys[key].default


def load(text: str, place: Place) -> dict[str, Any]:
    """The values of a file, not yet checked."""
    import tomllib  # a command without such a file starts faster without

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise place.wrong("not valid TOML: its lists are nested too deeply; write them flat") from error
    except ValueError as error:  # also of a number of thousands of digits
        raise place.wrong(f"not valid TOML: {str(error).partition(';')[0]}") from error


@functools.cache
def data_file(module: str, name: str) -> Mapping[str, Any]:
    """Return the tables of a data file in the folder of a module, given by its `__file__`; cached, so read-only."""
    return MappingProxyType(load(Path(module).with_name(name).read_text(encoding="utf-8"), Place(name)))


def read(values: dict[str, Any], keys: Keys, place: Place) -> Table:
    """The values of a table, each read by the kind of its key."""
    table = Table(keys, place)
    for name, key in keys.items():
        if name in values:
            table[name] = key.kind.read(name, values[name], place)
        elif key.required:
            # A similar key that is not declared may be a misspelling of this one.
            close = nearest(name, [other for other in values if other not in keys])
            raise place.wrong(f"missing key `{name}`; {f'did you mean it by `{close[0]}`?' if close else 'add it'}")
    for name in values:
        check_known("key", name, keys, where=place.where)
    return table


def schema(keys: Keys) -> Schema:
    """The JSON schema of a table."""
    properties = {name: {"description": key.doc, **key.kind.schema()} for name, key in keys.items()}
    required = [name for name, key in keys.items() if key.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


class Scalar(Kind):
    """A single value; the arguments are the members of `Kind`."""

    def __init__(
        self,
        words: str,
        types: tuple[type, ...],
        fits: Callable[[Any], bool],
        schema: Schema,
        parse: Callable[[Any], object] = lambda value: value,
        show: Callable[[Any], object] = lambda value: value,
    ):
        self.words, self.types, self.fits, self._schema = words, types, fits, schema
        self.parse, self.show = parse, show

    def schema(self) -> Schema:
        return self._schema


def whole(least: int, most: int = MOST_WHOLE) -> Scalar:
    """A whole number; `true`, an int to Python, is not one."""
    return Scalar(
        f"a whole number, at least {least}"
        if most == MOST_WHOLE
        else f"a whole number, at least {least} and at most {most}",
        (int,),
        lambda value: type(value) is int and least <= value <= most,
        {"type": "integer", "minimum": least, "maximum": most},
    )


def only(value: int | str) -> Scalar:
    """The one value that this version reads."""
    return Scalar(
        f"{value!r}, the only value that this version reads",
        (type(value),),
        lambda other: other == value,
        {"const": value},
    )


def _size(least: int) -> Scalar:
    """Bytes, as text with 1024-based K, M and G."""
    return Scalar(
        f'a {"size above 0" if least else "text"} such as "64K"',
        (str,),
        lambda value: type(value) is int and least <= value <= units.MAX_BYTES,
        {"type": "string", "pattern": r"^\s*[0-9]+([KMGT](iB)?)?\s*$"},
        units.parse_size,
        units.format_size,
    )


class Choice(Kind):
    """One of a closed list of words; a registry is consulted only on use."""

    def __init__(self, known: Iterable[str] | Callable[[], Iterable[str]]):
        self._known = known

    @property
    def words(self) -> str:
        """Lists all of them."""
        return "one of " + ", ".join(f'"{word}"' for word in self._all())

    def _all(self) -> list[str]:
        return list(self._known() if callable(self._known) else self._known)

    def fits(self, value: Any) -> bool:
        return isinstance(value, str) and value in self._all()

    def refused(self, key: str, value: object, place: Place) -> UsageError:
        if isinstance(value, str):
            return unknown(key, value, self._all(), where=place.where)
        return super().refused(key, value, place)

    def schema(self) -> Schema:
        return {"enum": self._all()}


class Many(Kind):
    """A list, as a tuple; with `single`, one item is read as a list of one."""

    def __init__(self, item: Kind, least: int = 1, most: int = MOST_ITEMS, single: bool = False, words: str = ""):
        self._item, self._least, self._most, self._single = item, least, most, single
        self.types = (list, *item.types) if single else (list,)
        self.words = words or f"a list, each item {item.words}"

    def _counts(self, value: Any, kind: type) -> bool:
        return isinstance(value, kind) and self._least <= len(value) <= self._most

    def read(self, key: str, value: object, place: Place) -> object:
        listed = [value] if self._single and not isinstance(value, list) else value
        if not self._counts(listed, list):
            raise self.refused(key, value, place)
        return tuple(self._item.read(f"{key}[{i}]", one, place) for i, one in enumerate(listed))

    def check(self, key: str, value: object, place: Place) -> None:
        if not self._counts(value, tuple):
            raise self.refused(key, value, place)
        for i, one in enumerate(value):
            self._item.check(f"{key}[{i}]", one, place)

    def fits(self, value: Any) -> bool:
        return self._counts(value, tuple) and all(map(self._item.fits, value))

    def show(self, value: Any) -> object:
        return [self._item.show(one) for one in value]

    def schema(self) -> Schema:
        limits = {"minItems": self._least, "maxItems": self._most}
        listed = {"type": "array", "items": self._item.schema(), **limits}
        return {"anyOf": [self._item.schema(), listed]} if self._single else listed


class Either(Kind):
    """One of several kinds: the first whose TOML type is that of the value."""

    def __init__(self, *kinds: Kind):
        self._kinds = kinds
        self.words = ", or ".join(kind.words for kind in kinds)
        self.types = tuple(kind_type for kind in kinds for kind_type in kind.types)

    def read(self, key: str, value: object, place: Place) -> object:
        for kind in self._kinds:
            if type(value) in kind.types:
                return kind.read(key, value, place)
        raise self.refused(key, value, place)

    def fits(self, value: Any) -> bool:
        return any(kind.fits(value) for kind in self._kinds)

    def show(self, value: Any) -> object:
        return next(kind for kind in self._kinds if kind.fits(value)).show(value)

    def schema(self) -> Schema:
        return {"anyOf": [kind.schema() for kind in self._kinds]}


class OneTable(Kind):
    """A table with declared keys."""

    words = "a table"
    types: tuple[type, ...] = (dict,)

    def __init__(self, keys: Keys):
        self._keys = keys

    def read(self, key: str, value: object, place: Place) -> Table:
        if not isinstance(value, dict):
            raise self.refused(key, value, place)
        return read(value, self._keys, place.inside(key))

    def fits(self, value: Any) -> bool:
        return isinstance(value, dict) and all(k in self._keys and self._keys[k].kind.fits(v) for k, v in value.items())

    def show(self, value: Any) -> object:
        return {key: self._keys[key].kind.show(one) for key, one in value.items()}

    def schema(self) -> Schema:
        return schema(self._keys)


class Tables(OneTable):
    """`[[key]]`: a list of tables."""

    words = "a list of tables, `[[...]]`"
    types = (list,)

    def read(self, key: str, value: object, place: Place) -> list[Table]:
        if not isinstance(value, list) or not 0 < len(value) <= MOST_ITEMS:
            raise self.refused(key, value, place)
        return [super(Tables, self).read(f"{key}[{i}]", one, place) for i, one in enumerate(value)]

    def schema(self) -> Schema:
        return {"type": "array", "items": super().schema(), "minItems": 1, "maxItems": MOST_ITEMS}


class Named(Kind):
    """A table whose keys are names."""

    words = "a table"
    types = (dict,)

    def __init__(self, kind: Kind):
        self._kind = kind

    def read(self, key: str, value: object, place: Place) -> dict[str, object]:
        if not isinstance(value, dict):
            raise self.refused(key, value, place)
        return {name: self._kind.read(name, one, place.inside(key)) for name, one in value.items()}

    def fits(self, value: Any) -> bool:
        return isinstance(value, dict) and all(map(self._kind.fits, value.values()))

    def show(self, value: Any) -> object:
        return {name: self._kind.show(one) for name, one in value.items()}

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self._kind.schema()}


# More would be no name and no description.
MOST_CHARACTERS = 10_000
TEXT = Scalar(
    f"a text that is not empty, of at most {MOST_CHARACTERS} characters",
    (str,),
    lambda value: isinstance(value, str) and bool(value.strip()) and len(value) <= MOST_CHARACTERS,
    {"type": "string", "pattern": r"\S", "maxLength": MOST_CHARACTERS},
)
# A line of a title or table, in which no character moves the cursor or hides others.
LINE_MOST = 200
LINE = Scalar(
    f"a line of at most {LINE_MOST} printable characters",
    (str,),
    lambda value: isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= LINE_MOST,
    {"type": "string", "pattern": r"\S", "maxLength": LINE_MOST},
)
# A name that is also that of a file or folder.
NAME = Scalar(
    "1 to 100 letters, digits, dots, dashes and underscores that begin with a letter or digit",
    (str,),
    lambda value: isinstance(value, str) and re.fullmatch(_NAME, value, re.ASCII) is not None,
    {"type": "string", "pattern": f"^{_NAME}$"},
)
FLAG = Scalar("true or false", (bool,), lambda value: isinstance(value, bool), {"type": "boolean"})
SIZE = _size(0)
POSITIVE_SIZE = _size(1)
# A number such as 2e9, as a float.
AMOUNT = Scalar(
    "a finite number, at least 0 and at most 1e24",
    (int, float),
    lambda value: isinstance(value, float) and 0 <= value <= MOST_AMOUNT,
    {"type": "number", "minimum": 0, "maximum": MOST_AMOUNT},
    lambda value: float(min(value, 2 * MOST_AMOUNT)),  # a whole number of 400 digits is no float
)
# Nanoseconds, as a text with a unit.
TIME = Scalar(
    'a text such as "12us"',
    (str,),
    lambda value: isinstance(value, float) and value > 0,
    {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|min|h)\s*$"},
    lambda text: units.parse_duration_s(text, with_unit=True) * NS_PER_S,
)
