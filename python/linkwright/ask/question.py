"""What is asked of a machine: everything that determines a result, except the machine.

    Question
      Scheduled            a schedule answers it
        Collective           by a registered algorithm, or by a schedule of a library or of the user
        Pattern              traffic without a collective
        Program              a schedule of the user's that is not a collective
      Probe                what no schedule can answer

The key of a question is the same in every run and joins the results of two runs, machines or executors. It names only
what differs from the default:

    collectives/allreduce/ring/p2/64K/f32/sum
    latency/pattern/ping_pong/p2/8/u8/0->5
    memory/probe/memory_latency/working_set=64K/pages=2M
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from linkwright.ask.exchange import UnevenExchange
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
# Every field as files keep it, in their order, with its value for a kind of question that has no such field.
_KEPT: Mapping[str, object] = {
    "part": None, "collective": None, "algorithm": None, "ranks": None, "size_bytes": None, "dtype": None, "op": None,
    "root": 0, "grid": None, "placement": None, "issue": None, "path": None, "skew": None, "arithmetic": True,
    "messages": 1, "both_ways": False, "axes": None, "named": (), "own": None, "rising": None,
}  # fmt: skip
# Fields that are columns of the same name.
_SAME = ("part", "collective", "algorithm", "ranks", "size_bytes", "dtype", "op", *HOW)


@functools.cache
def collectives() -> Mapping[str, Any]:
    """Return every collective with its traits."""
    from linkwright import _native

    return {row["key"]: row for row in _native.collectives()}


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


@dataclass(frozen=True)
class Continued:
    """A schedule that represents a longer one: what two others differ by is added to its time.

    T = own + times (longer - shorter)
    """

    shorter: Schedule
    times: float
    least_ps: int = 0  # what it takes at least, apart from links
    longer: Schedule | None = None  # the schedule itself if None

    @property
    def others(self) -> tuple[Schedule, ...]:
        """What has to be simulated besides the schedule itself."""
        return (self.shorter, self.longer) if self.longer else (self.shorter,)

    def to_json(self) -> dict[str, str | float]:
        """Plain values for another process."""
        longer = {"longer": self.longer.text()} if self.longer else {}
        return {"shorter": self.shorter.text(), "times": self.times, "least_ps": self.least_ps, **longer}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Continued:
        """The inverse of `to_json`."""
        from linkwright import _native

        longer = _native.Schedule.parse(values["longer"]) if "longer" in values else None
        return cls(_native.Schedule.parse(values["shorter"]), values["times"], values.get("least_ps", 0), longer)


@dataclass(frozen=True)
class Own:
    """A schedule that no registry can build, or the error that building it gave; neither before a source is asked."""

    schedule: Schedule | None = None
    error: LinkwrightError | None = None
    launch_ps: int = 0  # time that its library needs to start it
    channels: int | None = None  # equal channels that each message represents; None: those of the path
    words: str | None = None  # what its library chose
    continued: Continued | None = None  # if it represents a longer one
    across: int | None = None  # bytes per second that a message carries from node to node at most
    sends: float | None = None  # messages of its library that each message stands for; None: one for each channel

    def given(self) -> Schedule:
        """Return the schedule, or raise the error."""
        if self.schedule is None:
            assert self.error is not None
            raise reported(str(self.error), self.error.code)
        return self.schedule

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
        if self.error:
            return {"reason": str(self.error), "code": self.error.code}
        line = self.continued.to_json() if self.continued else None
        about = {"launch_ps": self.launch_ps, "channels": self.channels, "words": self.words, "continued": line}
        # A key that is new is written only where it says something, so that questions of older runs stay the same.
        newer = {"across": self.across, "sends": self.sends}
        return {"text": self.text, **about, **{key: value for key, value in newer.items() if value}}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Own:
        """The inverse of `to_json`."""
        from linkwright import _native

        if "text" not in values:
            return cls(error=reported(values["reason"], values["code"]))
        line = values.get("continued")
        return cls(
            _native.Schedule.parse(values["text"]), None, values["launch_ps"], values["channels"], values.get("words"),
            Continued.from_json(line) if line else None, values.get("across"), values.get("sends"),
        )  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What all questions have.

    Attributes:
        part: of the suite.
        algorithm: name within the collective, or of the pattern, the program or the probe.
        ranks: that take part.
        size_bytes: the message size; of a probe, the size that it varies; None: there is none.
        placement: endpoint of each rank; None: topology order.
    """

    part: str
    algorithm: str
    ranks: int
    size_bytes: int | None
    _: KW_ONLY
    placement: tuple[int, ...] | None = None

    @property
    def what(self) -> str:
        """The collective, or the name of the pattern, the program or the probe."""
        return self.algorithm

    @property
    def own(self) -> Own | None:
        """The schedule that it brings with it; None: that of a registered algorithm or pattern, or none at all."""
        return None

    @property
    def chosen(self) -> str | None:
        """What a library chose, in words."""
        return self.own.words if self.own else None

    @property
    def op(self) -> str | None:
        """What combines; None if nothing does."""
        return None

    @property
    def rising(self) -> tuple[str, str, int] | None:
        """Keys of the question at two smaller sizes, and their ratio: it is measured only while the rate rises between
        them."""
        return None

    @property
    def key(self) -> str:
        """A readable and stable name, different for different questions."""
        raise NotImplementedError

    @property
    def _placed(self) -> list[str]:
        return ["->".join(map(str, self.placement))] if self.placement else []

    def _kept(self) -> dict[str, Any]:
        """The value of every field that any question has."""
        own = {name: value for name, value in vars(self).items() if name != "exchange" or value}
        own.pop("asked_bytes", None)
        return {**_KEPT, **own}

    def columns(self) -> dict[str, object]:
        """The columns of its rows, as `store.schema.RESULTS` names them; the inverse is `of_row`."""
        kept, traffic = self._kept(), isinstance(self, Pattern | Program)
        return {
            **{name: kept[name] for name in _SAME},
            "schedule": self.own.digest if self.own else None,
            "experiment": self.key,
            "endpoints": "".join(self._placed) or None,
            "root": kept["root"],
            "grid": format_grid(kept["grid"]) if kept["grid"] else None,
            "messages": kept["messages"] if traffic else None,
            "both_ways": kept["both_ways"] if traffic else None,
            **({"exchange": json.dumps(kept["exchange"])} if "exchange" in kept else {}),
        }

    def to_json(self) -> dict[str, object]:
        """Plain values for a launch's process and for run folders; the inverse is `of_json`."""
        return {**self._kept(), "own": self.own.to_json() if self.own else None}


@dataclass(frozen=True)
class Scheduled(Question):
    """A question that a schedule answers; how it runs is up to the executor."""

    dtype: str = "f32"
    _: KW_ONLY
    root: int = 0
    grid: tuple[int, ...] | None = None
    issue: str | None = None
    path: str | None = None
    skew: str | None = None
    arithmetic: bool = True

    @property
    def key(self) -> str:
        """As `part/collective/algorithm/pRANKS/SIZE/DTYPE`, then what differs from the default."""
        words = [self.part, getattr(self, "collective", "pattern"), self.algorithm, f"p{self.ranks}"]
        words += [self.dtype] if self.size_bytes is None else [format_size(self.size_bytes), self.dtype]
        words += [self.op] if self.op else []
        words += [f"root{self.root}"] if self.root else []
        words += [format_grid(self.grid)] if self.grid else []
        words += self._placed
        words += [f"{name}={value}" for name in HOW if (value := getattr(self, name))]
        return "/".join(words if self.arithmetic else [*words, "no-arithmetic"])

    @property
    def algorithm_key(self) -> str:
        """The key of the algorithm or pattern in its registry."""
        return self.algorithm

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return DTYPES[self.dtype]

    @property
    def elements(self) -> int:
        """Elements of one vector."""
        return (self.size_bytes or 0) // self.element_bytes


@dataclass(frozen=True, kw_only=True)
class Collective(Scheduled):
    """A collective by one algorithm, at one size on some ranks."""

    collective: str
    op: str | None = None
    own: Own | None = None  # of a library or of the user
    exchange: UnevenExchange | None = None  # of an uneven one; None: every rank has as much for all
    # Bytes before they were rounded to whole elements of each rank; None: nothing was rounded. Not kept in runs.
    asked_bytes: int | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """That of its schedule, with its exchange."""
        return f"{super().key}/{self.exchange.word}" if self.exchange else super().key

    @property
    def what(self) -> str:
        """The collective."""
        return self.collective

    @property
    def algorithm_key(self) -> str:
        """Collective and algorithm, as the registry names it."""
        return f"{self.collective}/{self.algorithm}"


@dataclass(frozen=True, kw_only=True)
class Pattern(Scheduled):
    """A traffic pattern."""

    messages: int = 1  # per pair
    both_ways: bool = False
    rising: tuple[str, str, int] | None = None

    @property
    def key(self) -> str:
        """That of its schedule, with the messages of a pair."""
        words = [super().key, *([f"x{self.messages}"] if self.messages > 1 else [])]
        return "/".join([*words, "both-ways"] if self.both_ways else words)


@dataclass(frozen=True, kw_only=True)
class Program(Scheduled):
    """A schedule of the user's that is not a collective, or whose source failed before it stated its problem."""

    own: Own = Own()
    op: str | None = None  # of one that has an error: what would have combined


@dataclass(frozen=True, kw_only=True)
class Probe(Question):
    """A probe with a value for each of its axes."""

    axes: tuple[tuple[str, int | str], ...]
    named: tuple[str, ...] = ()  # axes as the key writes them

    @property
    def key(self) -> str:
        """The axes that are not at their defaults, and the placement."""
        return "/".join([self.part, "probe", self.algorithm, *self.named, *self._placed])


def changed(question: Question, **fields: object) -> Question:
    """Return a question with other values in some fields, of the kind that these make it."""
    return _of_kept({**question._kept(), **fields})


def of_row(row: Mapping[str, Any], own: Own | None = None) -> Question:
    """Read a collective or a pattern back from a row of results; `own` is the schedule that the row names in
    `schedule`."""
    grid, endpoints = row["grid"], row["endpoints"]
    return _of_kept(
        {
            **{name: row[name] for name in _SAME},
            "root": row["root"] or 0,
            "grid": tuple(map(int, grid.split("x"))) if grid else None,
            "exchange": _tuples(json.loads(row["exchange"])) if row.get("exchange") else None,
            "placement": tuple(map(int, endpoints.split("->"))) if endpoints else None,
            "arithmetic": "no-arithmetic" not in (row["flags"] or "").split(","),
            "messages": row["messages"] or 1,
            "both_ways": bool(row["both_ways"]),
            "own": own,
        }
    )


def of_json(values: Mapping[str, Any]) -> Question:
    """Read a question back from the plain values of `to_json`."""
    own = Own.from_json(values["own"]) if values.get("own") else None
    return _of_kept({**{name: _tuples(value) for name, value in values.items()}, "own": own})


def _of_kept(kept: Mapping[str, Any]) -> Question:
    if kept.get("axes") is not None:
        kind: type[Question] = Probe
    elif kept["collective"]:
        kind = Collective
    else:
        kind = Program if kept["own"] else Pattern
    if kept.get("exchange"):
        kept = {**kept, "exchange": UnevenExchange(*kept["exchange"])}
    names = {field.name for field in fields(kind)}
    surplus = [name for name, value in kept.items() if name not in names and value != _KEPT.get(name)]
    if surplus:
        raise ShapeError(
            f"{kept['algorithm']}: {', '.join(surplus)} does not apply to a {kind.__name__.lower()}; omit it"
        )
    return kind(**{name: value for name, value in kept.items() if name in names})


def _tuples(value: object) -> object:
    """Turn the lists of JSON back into tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
