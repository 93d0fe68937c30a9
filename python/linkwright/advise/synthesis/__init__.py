"""Searches for schedules on described machines, and the files that they leave.

    Task (machine, collective, size, ...) -> _native.synthesize, an iterator of improvements -> Outcome -> FOLDER/*.lw

The search itself is native (`crates/linkwright-synthesis`). A `.lw` file states in comments where it comes from, so
that it can be made again: machine, size, method, recipe, time, bound, seed and version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkwright import _native
from linkwright.ask.answer import How, Limit, ask, limits_of
from linkwright.ask.exchange import UnevenExchange, uneven
from linkwright.ask.question import DTYPES, Collective, collectives
from linkwright.base.errors import ScheduleError, UsageError, check_known
from linkwright.base.files import check_page, check_place, make_folder, write_text
from linkwright.base.units import PS_PER_NS, format_size, format_time
from linkwright.executors import Target
from linkwright.executors.sim import ModelledTarget
from linkwright.libraries.questions import collective_question
from linkwright.session.insight import link_rows
from linkwright.session.suite.expand import algorithms_of

# The method that only prices known algorithms: its best is what others are compared with.
KNOWN = "library"
OWN_FORMAT = "lw"
_COLUMNS = "{:>8}  {:>10}  {:>10}  {:>7}  {:>12}  {:>10}  {:>8}  {}"
_HEADS = ("size", "best known", "found", "gain", "lasts", "bound", "method", "recipe")


@dataclass(frozen=True)
class Task:
    """One search: for the schedule that answers a question on one machine."""

    target: ModelledTarget
    question: Collective
    seed: int
    budget_s: float
    methods: tuple[str, ...]
    # Whether transfers of a rank start one after another, whatever their lanes.
    serial_starts: bool = False
    # Whether the fastest is the answer even where its gain does not last.
    fastest: bool = False

    @property
    def name(self) -> str:
        """Collective and size, such as `allreduce 1M`."""
        return f"{self.question.collective} {self.size}"

    @property
    def size(self) -> str:
        """The message size as people write it."""
        return format_size(self.question.size_bytes or 0)

    def search(self, heard: Callable[[dict[str, Any]], None] = lambda best: None) -> Outcome:
        """Search; `heard` gets each improvement. Ctrl-C ends the search with the best so far."""
        asked = self.question
        found = _native.synthesize(
            self.target.machine, asked.collective, asked.ranks, asked.size_bytes or 0,
            element_bytes=asked.element_bytes, root=asked.root, grid=list(asked.grid or ()), path=asked.path,
            seed=self.seed, budget_s=self.budget_s, methods=list(self.methods),
            serial_starts=self.serial_starts, fastest=self.fastest, **(asked.exchange.shape if asked.exchange else {}),
        )  # fmt: skip
        improvements, interrupted = [], False
        while True:
            try:
                improvement = next(found, None)
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                found.stop()
                continue
            if improvement is None:
                break
            improvements.append(improvement)
            heard(improvement)
        assert found.answer, "a search that ends well has found something"
        counts = (found.tried or 0, found.unseen or 0)
        # Known algorithms are looked at first, so the last of them is the fastest.
        known = next((one for one in reversed(improvements) if one["method"] == KNOWN), None)
        return Outcome(self, found.answer, known, self.bound(found.answer), *counts, interrupted, found.fastest)

    def binds(self, one: Mapping[str, Any]) -> dict[str, object]:
        """What its time goes on: shares of the critical path by cause, and the busiest link with its busy share."""
        how = How(
            path=one["path"] or self.question.path, issue=one["issue"], seed=self.seed, links=True,
            serial_starts=self.serial_starts,
        )  # fmt: skip
        answer = ask(self.target.machine, one["schedule"], how)
        links = link_rows(answer)
        shares = {cause: share for cause, share in answer.critical.items() if share}
        busiest = {name: links[0][name] for name in ("link", "busy_share")} if links else None
        return {"critical_path": shares, "busiest_link": busiest}

    def bound(self, best: Mapping[str, Any]) -> Limit | None:
        """What no schedule beats, of an uneven exchange none with the copies of `best`; None where nothing is known."""
        if self.question.exchange:
            how = How(path=best["path"] or self.question.path, issue=best["issue"])
            return ask(self.target.machine, best["schedule"], how).bound
        return next(iter(limits_of(self.target.machine, self.question)), None)


@dataclass(frozen=True)
class Lasting:
    """How much of a gain over the best known algorithm is left where the machine is not quite as its file says."""

    draws: int  # of the rates and times of the fabric
    wins: int  # draws in which it is a gain of 2 % or more
    least: float | None  # gain of any draw
    serial: float  # gain where the start-ups of a rank wait for each other
    lasts: bool  # in nearly all draws
    lasts_serial: bool

    @classmethod
    def of(cls, one: Mapping[str, Any]) -> Lasting | None:
        """That of an answer."""
        return cls(**one["lasting"]) if one["lasting"] else None

    @property
    def share(self) -> float | None:
        """Of the draws, those in which it is a gain; None without draws."""
        return self.wins / self.draws if self.draws else None

    @property
    def short(self) -> str:
        """As a column: the share of the draws, and the gain with serial starts."""
        return f"{'-' if self.share is None else f'{self.share:.0%}'}, {self.serial:.2f} x"

    @property
    def long(self) -> str:
        """In words."""
        drawn = "no draws of rates and times"
        if self.least is not None:
            drawn = f"in {self.wins} of {self.draws} draws of rates and times, {self.least:.2f} x at least"
        return f"{drawn}; with serial starts {self.serial:.2f} x"


@dataclass(frozen=True)
class Outcome:
    """What a search has found."""

    task: Task
    best: dict[str, Any]
    known: dict[str, Any] | None
    bound: Limit | None
    tried: int
    # Known algorithms at which nobody looked, because the time was over.
    unseen: int
    interrupted: bool
    # The fastest on the machine as described, where its gain does not last and `best` is another one.
    fastest: dict[str, Any] | None = None

    @property
    def gain(self) -> float | None:
        """The time of the best known algorithm over that of the best."""
        return self._gain(self.best)

    def _gain(self, one: Mapping[str, Any]) -> float | None:
        return self.known["time_ps"] / one["time_ps"] if self.known and one["time_ps"] else None

    @property
    def lasting(self) -> Lasting | None:
        """How the gain lasts; None where there is none, or where the time did not suffice to judge it."""
        return Lasting.of(self.best)

    @property
    def row(self) -> dict[str, object]:
        """All of it, as plain values; times in ns."""
        question, bound = self.task.question, self.bound
        return {
            "collective": question.collective, "machine": self.task.target.machine_name, "ranks": question.ranks,
            "size_bytes": question.size_bytes, "known_ns": self.known and self.known["time_ps"] / PS_PER_NS,
            "known": self.known and self.known["recipe"], "found_ns": self.best["time_ps"] / PS_PER_NS,
            "gain": self.gain, "bound_ns": bound and bound.time.ns, "bound": bound and bound.name,
            "method": self.best["method"], "recipe": self.best["recipe"], "issue": self.best["issue"],
            "path": self.best["path"] or self.task.question.path, "tried": self.tried, "known_unseen": self.unseen,
            "serial_starts": self.task.serial_starts, "seed": self.task.seed,
            "interrupted": self.interrupted, "lasting": self.best["lasting"],
            "fastest": self.fastest and {
                "time_ns": self.fastest["time_ps"] / PS_PER_NS, "gain": self._gain(self.fastest),
                **{name: self.fastest[name] for name in ("method", "recipe", "issue", "lasting")},
            },
        }  # fmt: skip

    @property
    def explained(self) -> dict[str, object]:
        """The row with what binds the best known algorithm, and what was found."""
        return {
            **self.row,
            "known_binds": self.known and self.task.binds(self.known),
            "found_binds": self.task.binds(self.best),
        }

    @property
    def line(self) -> str:
        """The line of the table."""
        row = self.row
        gain = f"{self.gain:.2f} x" if self.gain else ""
        return _COLUMNS.format(
            self.task.size, _time(row["known_ns"]), _time(row["found_ns"]), gain,
            self.lasting.short if self.lasting else "", _time(row["bound_ns"]), row["method"],
            f"{row['recipe']} ({row['issue']})",
        ).rstrip()  # fmt: skip

    @property
    def passed_over(self) -> str | None:
        """The fastest schedule, in words, where its gain does not last."""
        one, lasting = self.fastest, Lasting.of(self.fastest) if self.fastest else None
        if one is None or lasting is None:
            return None
        gain = f"{_time(one['time_ps'] / PS_PER_NS)}, {self._gain(one):.2f} x, lasts {lasting.short}"
        return f"passed over: {gain}: {one['method']}, {one['recipe']} ({one['issue']})"

    @property
    def remarks(self) -> list[str]:
        """What the line alone would conceal."""
        found = []
        if self.unseen:
            cure = "" if self.interrupted else "; allow a longer --budget"
            found.append(f"{self.unseen} known algorithms were not examined{cure}")
        if self.passed_over:
            found.append(f"{self.passed_over}; --fastest takes it")
        return found

    @property
    def text(self) -> str:
        """The schedule as text, with its provenance in comments."""
        row, version = self.row, _native.__version__
        told = {
            "machine": row["machine"], "size": f"{row['size_bytes']} B over {row['ranks']} ranks",
            "method": row["method"], "recipe": row["recipe"], "issue policy": row["issue"], "path": row["path"],
            "start-ups of a rank": "one after another" if row["serial_starts"] else None,
            "time": f"{row['found_ns']} ns", "best known": row["known"] and f"{row['known_ns']} ns, {row['known']}",
            "gain lasts": self.lasting and self.lasting.long,
            "bound": row["bound"] and f"{row['bound_ns']} ns, {row['bound']}", "seed": row["seed"],
            "made by": f"linkwright {version}",
        }  # fmt: skip
        first, rest = self.best["schedule"].text().split("\n", 1)
        return "\n".join([first, *(f"# {key}: {value}" for key, value in told.items() if value is not None), rest])


def _time(time_ns: object) -> str:
    return format_time(float(str(time_ns))) if time_ns is not None else ""


def described(target: Target) -> ModelledTarget:
    """The target, if it is a described machine."""
    if not isinstance(target, ModelledTarget):
        raise UsageError(
            f"--on {target.name}: synthesis needs a described machine; create one from a run with `linkwright fit`"
        )
    ranks = target.extent.ranks
    if target.seats(ranks) not in (None, tuple(range(ranks))):
        raise UsageError(
            f"{target.machine_name}: its ranks are not its first {ranks} endpoints in order, which a search takes; "
            "search for all ranks, on fewer --nodes, or without --place"
        )
    return target


def task(
    target: ModelledTarget, collective: str, size_bytes: int, *, dtype: str, op: str, root: int,
    grid: tuple[int, ...] | None, path: str | None, seed: int, budget_s: float, methods: tuple[str, ...],
    serial_starts: bool = False, fastest: bool = False, exchange: UnevenExchange | None = None,
) -> Task:  # fmt: skip
    """A search over all ranks of the target; refuses a collective or a method that does not exist."""
    check_known("collective", collective, collectives(), lists="linkwright list collectives")
    if collective in uneven() and exchange is None:
        raise UsageError(f"{collective}: blocks of any length are searched for their counts; state --counts or tokens")
    known = [method["key"] for method in _native.synthesis_methods()]
    for name in methods:
        check_known("method", name, known, lists="linkwright list methods")
    ranks = target.extent.ranks
    step = DTYPES[dtype] * (ranks if collectives()[collective]["blocked"] else 1)
    if collective != "barrier" and size_bytes < step:
        raise UsageError(
            f"{collective} of {size_bytes} B: less than one element for each of {ranks} ranks; ask for {step} B or more"
        )
    any_of_it = algorithms_of(collective)[0]
    made = collective_question(
        "synthesize", collective, any_of_it, ranks, size_bytes, dtype, op, root=root, grid=grid, path=path,
        exchange=exchange,
    )  # fmt: skip
    return Task(target, made, seed, budget_s, methods, serial_starts, fastest)


def heading(task: Task) -> str:
    """The lines above the table."""
    about = f"# {task.question.collective} over {task.question.ranks} ranks on {task.target.machine_name}"
    return f"{about}\n" + _COLUMNS.format(*_HEADS).rstrip()


def check_outputs(
    folder: Path | None, formats: tuple[str, ...], page: Path | None = None, table: Path | None = None
) -> None:
    """Refuse formats that do not exist, and files that have no place, before the search."""
    known = [entry["key"] for entry in _native.plan_formats()]
    for name in formats:
        check_known("format of schedules", name, known, lists="linkwright list plans")
    if formats and folder is None:
        raise UsageError(f"--as {formats[0]}: choose a folder for it with --out FOLDER")
    if folder:
        make_folder(folder)
        check_place(folder / "schedule.lw", f"--out {folder}")
    if page:
        check_page(page, "--report")
    if table:
        check_place(table, f"--json {table}")


def write(outcome: Outcome, folder: Path, formats: tuple[str, ...]) -> tuple[list[Path], list[str]]:
    """Write the schedule as `.lw` and in other formats: the files, and why a format cannot hold it."""
    task = outcome.task
    stem = f"{task.question.collective}-{task.target.machine_name}-{task.question.ranks}-{task.size}"
    files, refused = [], []
    for name in dict.fromkeys((OWN_FORMAT, *formats)):
        try:
            text = outcome.text if name == OWN_FORMAT else outcome.best["schedule"].export(name)
        except ScheduleError as error:
            refused.append(str(error))
            continue
        files.append(folder / f"{stem}.{name}")
        write_text(files[-1], text)
    return files, refused
