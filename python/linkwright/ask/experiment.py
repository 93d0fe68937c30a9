"""One experiment: everything that determines its result, except the machine.

Its key is the same in every run and joins the results of two runs, machines or executors. A key names only what
differs from the default:

    collectives/allreduce/ring/p2/64K/f32/sum
    latency/pattern/ping_pong/p2/8/u8/0->5
    memory/probe/memory_latency/working_set=64K/pages=2M
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from linkwright.base.errors import LinkwrightError, ShapeError, reported
from linkwright.base.units import format_grid, format_size

if TYPE_CHECKING:
    from linkwright._native import Schedule

# Data type -> bytes of one element.
DTYPES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "u8": 1, "bf16": 2}
# Words in place of an algorithm: all that are registered or the machine's own; those that run by default.
ALL, DEFAULT = "all", "default"
OPS = ("sum", "max", "min", "prod")
# Tables for each rank must fit into memory; the native half has the same limit.
MAX_RANKS = 1 << 22
# Maximum messages of one pair of a traffic pattern.
MOST_MESSAGES = 1 << 20
# How a schedule runs: fields that a key writes as `name=value`.
HOW = ("issue", "path", "skew")
# Fields that are columns of the same name.
_SAME = ("part", "collective", "algorithm", "ranks", "size_bytes", "dtype", "op", *HOW)


def check_whole(size_bytes: int, dtype: str) -> None:
    """Reject a size that is not a whole number of elements: part of it would be reported without being moved."""
    element = DTYPES[dtype]
    if size_bytes % element:
        below = size_bytes // element * element
        raise ShapeError(
            f"size {size_bytes} is not a whole number of {dtype} elements of {element} bytes; "
            f"use {below or element} or another data type"
        )


def check_size(collective: str, size_bytes: int, dtype: str) -> None:
    """Reject the same, and a size of 0 except for a barrier."""
    if size_bytes == 0 and collective != "barrier":
        raise ShapeError(f"size 0: {collective} moves at least one element; a barrier has no size")
    check_whole(size_bytes, dtype)


def dtype_of(element_bytes: int) -> str:
    """Return the default data type of this size; reject a size that no data type has."""
    usual = {1: "u8", 2: "bf16", 4: "f32", 8: "f64"}
    if element_bytes not in usual:
        raise ShapeError(f"elements of {element_bytes} bytes: no data type has that size; use 1, 2, 4 or 8")
    return usual[element_bytes]


def continued(shorter: float, longer: float, times: float) -> float:
    """Extrapolate a time linearly from two: `times` the difference beyond the longer one."""
    return longer + times * (longer - shorter)


@dataclass(frozen=True)
class Continued:
    """A schedule that represents a longer one, whose time is extrapolated linearly from a shorter schedule."""

    shorter: Schedule
    times: float  # the difference between both, added to the time of the longer one

    def to_json(self) -> dict[str, str | float]:
        """Plain values for another process."""
        return {"shorter": self.shorter.text(), "times": self.times}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Continued:
        """The inverse of `to_json`."""
        from linkwright import _native

        return cls(_native.Schedule.parse(values["shorter"]), values["times"])


@dataclass(frozen=True)
class Own:
    """A schedule that no registry can build, or the error that building it gave."""

    schedule: Schedule | None = None
    error: LinkwrightError | None = None
    launch_ps: int = 0  # time that its library needs to start it
    channels: int | None = None  # equal channels that each message represents; None: those of the path
    words: str | None = None  # what its library chose
    continued: Continued | None = None  # if it represents a longer one

    def given(self) -> Schedule:
        """Return the schedule, or raise the error."""
        if self.schedule is None:
            assert self.error is not None
            raise reported(str(self.error), self.error.code)
        return self.schedule

    @property
    def about(self) -> dict[str, object]:
        """All but the schedule, as plain values."""
        line = self.continued.to_json() if self.continued else None
        about = {"launch_ps": self.launch_ps, "channels": self.channels, "words": self.words}
        return {**about, "continued": line}

    @functools.cached_property
    def text(self) -> str | None:
        """The schedule as text."""
        return None if self.schedule is None else self.schedule.text()

    @functools.cached_property
    def digest(self) -> str | None:
        """A unique name for the schedule; None for an error."""
        import hashlib

        return None if self.text is None else hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, object]:
        """Plain values for another process."""
        if self.error is None:
            return {"text": self.text, **self.about}
        return {"reason": str(self.error), "code": self.error.code}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Own:
        """The inverse of `to_json`."""
        from linkwright import _native

        if "text" not in values:
            return cls(error=reported(values["reason"], values["code"]))
        line = values.get("continued")
        return cls(
            _native.Schedule.parse(values["text"]), None, values["launch_ps"], values["channels"], values.get("words"),
            Continued.from_json(line) if line else None,
        )  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """A collective by one algorithm, a traffic pattern, or a probe, at one size on some ranks."""

    part: str
    collective: str | None  # None: a traffic pattern or a probe
    algorithm: str  # name within the collective, or of the pattern or probe
    ranks: int
    size_bytes: int | None  # None: a probe without a size
    dtype: str | None = "f32"  # None: a probe
    op: str | None = None  # None if nothing is reduced
    root: int = 0
    grid: tuple[int, ...] | None = None
    placement: tuple[int, ...] | None = None  # endpoint of each rank; None: topology order
    issue: str | None = None
    path: str | None = None
    skew: str | None = None
    arithmetic: bool = True
    messages: int = 1  # per pair of a pattern
    both_ways: bool = False
    axes: tuple[tuple[str, int | str], ...] | None = None  # of a probe, one value each; None: a schedule
    named: tuple[str, ...] = ()  # axes of a probe as the key writes them
    own: Own | None = None  # a schedule of the user's or of a library; None: what the registered algorithm makes
    # Keys of the experiment at two smaller sizes, and their ratio: measured only while the rate rises between them.
    rising: tuple[str, str, int] | None = None

    @property
    def probe(self) -> str | None:
        """The key of the probe, if it is one."""
        return None if self.axes is None else self.algorithm

    @property
    def algorithm_key(self) -> str:
        """The key of the algorithm or pattern in its registry."""
        return f"{self.collective}/{self.algorithm}" if self.collective else self.algorithm

    @property
    def key(self) -> str:
        """A readable and stable name, different for different experiments."""
        if self.probe:
            placed = ["->".join(map(str, self.placement))] if self.placement else []
            return "/".join([self.part, "probe", self.probe, *self.named, *placed])
        words = [self.part, self.collective or "pattern", self.algorithm, f"p{self.ranks}"]
        words += [format_size(self.size_bytes), self.dtype]
        words += [self.op] if self.op else []
        words += [f"root{self.root}"] if self.root else []
        words += [format_grid(self.grid)] if self.grid else []
        words += ["->".join(map(str, self.placement))] if self.placement else []
        words += [f"{name}={getattr(self, name)}" for name in HOW if getattr(self, name)]
        words += [] if self.arithmetic else ["no-arithmetic"]
        words += [f"x{self.messages}"] if self.messages > 1 else []
        words += ["both-ways"] if self.both_ways else []
        return "/".join(words)

    def columns(self) -> dict[str, object]:
        """The columns of its rows, as `store.schema.RESULTS` names them; the inverse is `of_row`."""
        pattern = not (self.collective or self.probe)
        return {
            **{name: getattr(self, name) for name in _SAME},
            "schedule": self.own.digest if self.own else None,
            "experiment": self.key,
            "endpoints": "->".join(map(str, self.placement)) if self.placement else None,
            "root": self.root,
            "grid": format_grid(self.grid) if self.grid else None,
            "messages": self.messages if pattern else None,
            "both_ways": self.both_ways if pattern else None,
        }

    @classmethod
    def of_row(cls, row: Mapping[str, object], own: Own | None = None) -> Experiment:
        """Read an experiment back from a row of results, for a collective or a pattern; `own` is the schedule that the
        row names in `schedule`."""
        grid, endpoints = row["grid"], row["endpoints"]
        return cls(
            **{name: row[name] for name in _SAME},
            root=row["root"] or 0,
            grid=tuple(map(int, grid.split("x"))) if grid else None,
            placement=tuple(map(int, endpoints.split("->"))) if endpoints else None,
            arithmetic="no-arithmetic" not in (row["flags"] or "").split(","),
            messages=row["messages"] or 1,
            both_ways=bool(row["both_ways"]),
            own=own,
        )

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return DTYPES[self.dtype]

    @property
    def elements(self) -> int:
        """Elements of one vector."""
        return self.size_bytes // self.element_bytes

    def to_json(self) -> dict[str, object]:
        """Plain values for a launch's process."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "own": self.own.to_json() if self.own else None}

    @classmethod
    def from_json(cls, values: dict) -> Experiment:
        """The inverse of `to_json`."""
        as_tuple = {k: _tuples(v) for k, v in values.items()}
        as_tuple["own"] = Own.from_json(values["own"]) if values.get("own") else None
        return cls(**{f.name: as_tuple[f.name] for f in fields(cls) if f.name in as_tuple})


def _tuples(value: object) -> object:
    """Turn the lists of JSON back into tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
