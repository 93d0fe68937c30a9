"""Suite files: TOML in, checked parts out. Unknown keys are errors; docs/formats.md has an example."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from linkwright import units
from linkwright.errors import SuiteError, UsageError, unknown
from linkwright.experiment import DTYPES, OPS
from linkwright.store.files import read_text

FORMAT = 1
PLACEMENTS = ("topology", "every_pair", "doubling")
RANKS = ("all", "doubling")
# How thorough a run is; a part is run from its `level` on.
LEVELS = ("quick", "normal", "full")
# What a part may say differently for modelled and for measured machines.
KINDS = ("modelled", "measured")


@dataclass(frozen=True)
class Part:
    """One group of experiments with common axes."""

    name: str
    summary: str
    pattern: str | None = None
    probe: str | None = None
    axes: dict[str, object] = field(default_factory=dict)  # of a probe: axis -> values, or a sweep
    collectives: tuple[str, ...] = ()  # empty for a pattern; ("all",) for every one
    algorithms: tuple[str, ...] = ("all",)
    sizes: tuple[int, ...] = ()
    ranks: str | tuple[int, ...] = "all"
    placement: str = "topology"
    dtype: str = "f32"
    op: str = "sum"
    root: int = 0
    issue: str | None = None
    path: str | None = None
    skew: str | None = None
    arithmetic: bool = True
    messages: int = 1
    both_ways: bool = False
    metrics: tuple[str, ...] = ("time",)
    level: str = "quick"  # the least thorough run that has this part
    overrides: dict[str, dict] = field(default_factory=dict)

    def on(self, kind: str) -> Part:
        """The part as it stands for `modelled` or `measured` machines."""
        changed = self.overrides.get(kind, {})
        # Of the axes of a probe, those that are not named stay.
        axes = {**self.axes, **changed.get("axes", {})}
        return Part(**{**self.__dict__, **changed, "axes": axes})


@dataclass(frozen=True)
class Suite:
    """A suite file, read."""

    name: str
    summary: str
    text: str
    parts: tuple[Part, ...]
    machines: tuple[str, ...] = ()  # where --on names none

    def at(self, level: str) -> Suite:
        """The parts of a run of this level."""
        kept = tuple(part for part in self.parts if LEVELS.index(part.level) <= LEVELS.index(level))
        return replace(self, parts=kept)


def load(path: Path) -> Suite:
    """Read and check the suite file at `path`."""
    return parse(read_text(path, "a suite file"), path.name)


def parse(text: str, file: str) -> Suite:
    """Check the text of a suite file; `file` is its name, for messages."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{file}: no valid TOML: {error}") from error
    reader = _Reader(document, file, "")
    head = reader.table("suite")
    if head.take("format") != FORMAT:
        raise SuiteError(f"{file}: suite.format is not {FORMAT}, the only one this version reads")
    name, summary = head.take("name"), head.take("summary")
    head.take("description", "")
    machines = head.texts("machines") if head.has("machines") else ()
    head.end()
    parts = tuple(_part(reader.sub(table, f"part[{i}]")) for i, table in enumerate(reader.take("part")))
    reader.end()
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise SuiteError(f"{file}: two parts have the same name; every part needs its own")
    return Suite(name, summary, text, parts, machines)


def one_part(name: str, summary: str, part: str | None = None, **axes: object) -> Suite:
    """A suite of a single part, for a question asked on the command line; its text reads back."""
    lines = ["[suite]", f"format = {FORMAT}", f'name = "{name}"', f'summary = "{summary}"', "", "[[part]]"]
    axes = {"name": part or name, "summary": summary, **axes}
    lines += [f"{key} = {_toml(value)}" for key, value in axes.items() if value is not None]
    return parse("\n".join(lines) + "\n", f"{name}.toml")


def _toml(value: object) -> str:
    """JSON strings, numbers, booleans and lists of them are TOML; a table has `=`."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def _part(reader: _Reader) -> Part:
    name, summary = reader.take("name"), reader.take("summary")
    values = _axes(reader)
    overrides = {}
    for kind in KINDS:
        if reader.has(kind):
            inner = reader.table(kind)
            overrides[kind] = _axes(inner)
            inner.end()
    reader.end()
    part = Part(name=name, summary=summary, overrides=overrides, **values)
    if [bool(part.pattern), bool(part.collectives), bool(part.probe)].count(True) != 1:
        raise SuiteError(f"{reader.where}: name either a `pattern`, `collectives` or a `probe`")
    if part.probe:
        for stated in (values, *overrides.values()):
            _only_of_probes(reader, stated)
        return part
    if part.axes:
        raise SuiteError(f"{reader.where}: `axes` are those of a `probe`; name one, or leave them away")
    for kind in KINDS:
        if not part.on(kind).sizes:
            raise SuiteError(f"{reader.where}: no `sizes` for {kind} machines")
    return part


def _only_of_probes(reader: _Reader, values: dict[str, object]) -> None:
    """A probe varies its own axes; what only a schedule has would do nothing."""
    for key in values:
        if key not in ("probe", "axes", "placement", "level"):
            raise SuiteError(f"{reader.where}: `{key}` means nothing to a probe; state its `axes` instead")


def _axes(reader: _Reader) -> dict[str, object]:
    """The axes that a part or an override states; what it does not state keeps its default."""
    values: dict[str, object] = {}
    for key in ("pattern", "probe", "axes", "root", "issue", "path", "skew", "arithmetic", "messages", "both_ways"):
        if reader.has(key):
            values[key] = reader.take(key)
    for key in ("collectives", "algorithms", "metrics"):
        if reader.has(key):
            value = reader.take(key)
            values[key] = (value,) if isinstance(value, str) else tuple(value)
    if reader.has("sizes"):
        values["sizes"] = _sizes(reader)
    if reader.has("ranks"):
        ranks = reader.take("ranks")
        values["ranks"] = tuple(ranks) if isinstance(ranks, list) else reader.choice("ranks", ranks, RANKS)
    for key, known in (("placement", PLACEMENTS), ("dtype", tuple(DTYPES)), ("op", OPS), ("level", LEVELS)):
        if reader.has(key):
            values[key] = reader.choice(key, reader.take(key), known)
    return values


def _sizes(reader: _Reader) -> tuple[int, ...]:
    value = reader.take("sizes")
    try:
        if isinstance(value, dict):
            sweep = reader.sub(value, "sizes")
            low, high = units.parse_size(sweep.take("min")), units.parse_size(sweep.take("max"))
            factor = sweep.take("factor")
            sweep.end()
            return tuple(units.size_sweep(low, high, factor))
        return tuple(units.parse_size(text) for text in value)
    except UsageError as error:
        raise SuiteError(f"{reader.where}: sizes: {error}") from error


class _Reader:
    """A table whose keys are asked for one by one; what nobody asked for is an error."""

    def __init__(self, values: dict, file: str, path: str):
        self.values = values
        self.file, self.path = file, path
        self._known: set[str] = set()

    @property
    def where(self) -> str:
        """File and path, for messages."""
        return f"{self.file}: {self.path}" if self.path else self.file

    def has(self, key: str) -> bool:
        self._known.add(key)
        return key in self.values

    def take(self, key: str, default: object = None) -> object:
        self._known.add(key)
        if key not in self.values:
            if default is None:
                raise SuiteError(f"{self.where}: missing key `{key}`")
            return default
        return self.values[key]

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.take(key)
        if not isinstance(found, list) or not found or not all(isinstance(text, str) for text in found):
            raise SuiteError(f"{self.where}: {key} is {found!r}; write a list of names")
        return tuple(found)

    def table(self, key: str) -> _Reader:
        return self.sub(self.take(key), key)

    def sub(self, values: dict, name: str) -> _Reader:
        return _Reader(values, self.file, f"{self.path}.{name}" if self.path else name)

    def choice(self, key: str, value: str, known: tuple[str, ...]) -> str:
        if value not in known:
            raise unknown(f"{key}", str(value), known, where=self.where)
        return value

    def end(self) -> None:
        for key in self.values:
            if key not in self._known:
                raise unknown("key", key, self._known, where=self.where)
