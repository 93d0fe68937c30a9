"""One run folder: `runs/<id>/`.

run.json            the request: suite, machines, options, seed, command; state `running` or `done`
suite.toml          copy of the suite
environment.json    what a sceptical reader needs to know about the machine
experiments.json    what was asked, where schedules of the user's are among it, and
schedules/*.lw      these schedules, by digest
journal.jsonl       while it runs, and after an interruption
results.parquet     tidy rows                    | written whole at the end,
samples.parquet     every raw sample             | also after an interruption
logs/*/*.gz         the logs that it was imported from
report/index.html
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkwright.base.errors import StoreError, UsageError, unknown
from linkwright.base.files import kept, make_folder, named, opened, read_text, write_text
from linkwright.base.rows import Rows

from . import documents, environment, journal, schema, tables
from .record import Record, counting

# Where run folders are, unless --runs says otherwise.
DEFAULT_ROOT = Path("runs")


@dataclass(frozen=True)
class Input:
    """A machine that a run began with: its name and, of a described one, the digest of its file."""

    machine: str
    digest: str | None = None

    @classmethod
    def of(cls, machine: str, text: str | None) -> Input:
        """The machine of this name; the `text` of its file is None if it is measured."""
        return cls(machine, None if text is None else _digest(text))

    def is_of(self, text: str | None) -> bool:
        """Whether this is the text of its file."""
        return text is not None and _digest(text) == self.digest


def _digest(text: str) -> str:
    import hashlib  # a command that runs nothing starts faster without

    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Run:
    """A run folder that exists."""

    folder: Path

    @property
    def id(self) -> str:
        """The folder's name."""
        return self.folder.name

    def begin(self, suite: str, plan: dict, about: dict | None = None) -> None:
        """Write what stands before the first result; `about` adds to the environment."""
        write_text(self.folder / "suite.toml", suite)
        write_text(self.folder / "environment.json", json.dumps(environment.collect() | (about or {}), indent=2) + "\n")
        head = {"format": schema.FORMAT, "id": self.id, "state": "running"}
        write_text(self.folder / "run.json", json.dumps({**head, **plan}, indent=2) + "\n")

    @property
    def journal_path(self) -> Path:
        """The journal, until the run is complete."""
        return self.folder / "journal.jsonl"

    @property
    def plan(self) -> dict:
        """What `run.json` says."""
        cure = f"so this is not a run; `{lists(self.folder.parent)}` shows those there are"
        return documents.read(self.folder / "run.json", documents.RUN, cure)

    @property
    def request(self) -> dict:
        """What was requested of a run of a suite, whole, so that it can be resumed."""
        path, plan = self.folder / "run.json", self.plan
        documents.check(plan, {"request": documents.REQUEST, "inputs": {...: documents.INPUT}}, path)
        return plan["request"]

    @property
    def environment(self) -> dict:
        """What `environment.json` says; empty if the run has none."""
        path = self.folder / "environment.json"
        return documents.read(path, documents.ENVIRONMENT) if path.exists() else {}

    def records(self) -> list[dict]:
        """The whole records of the journal."""
        return list(journal.read(self.journal_path))

    def open_journal(self) -> journal.Journal:
        """The journal, locked, for appending."""
        return journal.Journal(self.journal_path)

    def keep_machine(self, name: str, text: str) -> None:
        """Keep a machine file: results cannot be judged without its constants, and a resumed run must not mix two."""
        make_folder(self.folder / "machines")
        write_text(self.folder / "machines" / f"{name}.toml", text)

    def inputs(self) -> dict[str, Input]:
        """What the run began with, by target."""
        return {name: Input(one["machine"], one["digest"]) for name, one in self.plan["inputs"].items()}

    def machine(self, begun: Input) -> str:
        """The text of the copy of a machine file."""
        path = self.folder / "machines" / f"{begun.machine}.toml"
        text = read_text(path, "the copy that the run made of its machine file")
        if not begun.is_of(text):
            raise StoreError(
                f"{path}: was changed since the run began, so its rows would be of two machines; start a new run"
            )
        return text

    def keep_experiments(self, plan: object, schedules: Mapping[str, str]) -> None:
        """Keep what was asked, and the user's schedules, digest by digest: a resumed run must not make them again."""
        make_folder(self.folder / "schedules")
        for digest, text in schedules.items():
            write_text(self.folder / "schedules" / f"{digest}.lw", text)
        write_text(self.folder / "experiments.json", json.dumps(plan) + "\n")

    def experiments(self) -> dict[str, list[dict]] | None:
        """What `keep_experiments` kept, by target; None if it follows from the suite."""
        path = self.folder / "experiments.json"
        return documents.read(path, documents.EXPERIMENTS) if path.is_file() else None

    def schedule(self, digest: str) -> str:
        """The text of a schedule of the user's."""
        path = self.folder / "schedules" / f"{digest}.lw"
        try:
            return kept(path).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{path}: is gone or damaged, so its experiments cannot be repeated; start a new run"
            ) from error

    @property
    def logs(self) -> list[Path]:
        """The logs that the run was imported from, in their order."""
        return sorted((self.folder / "logs").glob("*/*.gz"))

    def keep_log(self, number: int, path: Path) -> None:
        """Keep a log, so that its numbers can be judged again; `number` is its place among those of the run."""
        import gzip  # a command that imports nothing starts faster without

        folder = self.folder / "logs" / f"{number:03}"
        make_folder(folder)
        kept = folder / f"{path.name.removesuffix('.gz')}.gz"
        with opened(path) as log, named(kept), kept.open("wb") as file, gzip.GzipFile("", "wb", 6, file, 0) as out:
            shutil.copyfileobj(log, out)

    def forget_machine(self) -> None:
        """Reduce the environment to time, command and versions, because the numbers come from elsewhere."""
        kept = {key: self.environment[key] for key in ("time", "command", "versions")}
        write_text(self.folder / "environment.json", json.dumps(kept, indent=2) + "\n")

    def write_results(self, rows: Iterable[dict], samples: Mapping[str, Sequence[Any]]) -> None:
        """Write both tables whole, and note their digests; `samples` are columns, as `samples_table` makes them."""
        results = tables.by_column(rows, schema.RESULTS)
        written = {
            "results.parquet": (results, schema.RESULTS, "snappy"),
            "samples.parquet": (samples, schema.SAMPLES, "zstd"),
        }
        noted = {name: tables.write(self.folder / name, *table) for name, table in written.items()}
        self._note(tables=noted)

    def mark(self, state: str) -> None:
        """Set the state in `run.json`; a finished run no longer needs its journal."""
        self._note(state=state)
        if state == "done":
            self.journal_path.unlink(missing_ok=True)

    def _note(self, **noted: object) -> None:
        """Add to `run.json`."""
        write_text(self.folder / "run.json", json.dumps({**self.plan, **noted}, indent=2) + "\n")

    def results(self) -> Rows:
        """The tidy rows."""
        return documents.results(self._table("results.parquet"))

    def samples(self) -> Rows:
        """Every raw sample."""
        return documents.samples(self._table("samples.parquet"))

    def _table(self, name: str) -> Path:
        """The path of a table that must be there."""
        path = self.folder / name
        if path.exists():
            return path
        if (self.folder / "study.json").is_file():
            raise StoreError(f"run {self.id}: is of a study and holds no results; name a run of `linkwright dissect`")
        if self.plan["state"] == "done":
            raise StoreError(f"{path}: is gone, although its run is complete; {tables.AGAIN}")
        raise StoreError(
            f"{path}: does not exist, so the run ended early; `linkwright dissect --resume {self.id}` goes on"
        )


def create(
    root: Path,
    suite_key: str,
    suite_text: str,
    plan: dict,
    about: dict | None = None,
    keep: Callable[[Run], None] | None = None,
) -> Run:
    """A new run folder below `root`, named after the time and the suite.

    `about` adds to the environment. `keep` writes what a resumed run needs; `run.json`, by which a folder is a run,
    comes behind it, so that a run can be resumed from its first moment on.
    """
    run = Run(_new_folder(root, suite_key))
    if keep is not None:
        keep(run)
    run.begin(suite_text, plan, about)
    return run


@contextlib.contextmanager
def whole(root: Path, key: str, plan: dict) -> Iterator[Run]:
    """A new run folder, built in a temporary one and moved into place when the block ends; an error leaves nothing."""
    is_new = not root.exists()
    place = _new_folder(root, key)  # empty, so no run; it keeps the name
    beside = Path(tempfile.mkdtemp(prefix=".", dir=root))
    try:
        run = Run(beside / place.name)
        with named(place):
            run.folder.mkdir()
        run.begin("", plan)
        yield run
        with named(place):
            run.folder.replace(place)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        with contextlib.suppress(OSError):
            place.rmdir()
            if is_new:
                root.rmdir()
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _new_folder(root: Path, key: str) -> Path:
    """A new empty folder below `root`, named after the time in UTC, so that names stay in the order of time."""
    make_folder(root)
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    with named(root):
        for attempt in itertools.count(1):
            folder = root / (f"{stamp}-{key}" if attempt == 1 else f"{stamp}-{key}-{attempt}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    raise AssertionError("unreachable")


def find(root: Path, name: str) -> Run:
    """The run called `name` below `root`, or at the path `name`; `latest` is the newest, `latest~1` the one before."""
    if match := re.fullmatch(r"latest(?:~(\d+))?", name):
        folders = _folders(root)
        back = int(match[1] or 0)
        if back >= len(folders):
            raise UsageError(f"{root}: holds {len(folders)} runs, so no `{name}`; create one with `linkwright dissect`")
        return _readable(Run(folders[-1 - back]))
    if not name:
        raise UsageError("RUN is empty; give an id, a path or `latest`")
    for folder in (root / name, Path(name)):
        if os.path.lexists(folder / "run.json"):
            return _readable(Run(folder))
    if Path(name).is_file():
        raise UsageError(
            f"{name}: is a file, not a run; `linkwright import {shlex.quote(name)}` makes one of a benchmark's log"
        )
    raise unknown("run", name, (folder.name for folder in _folders(root)), where=str(root), lists=lists(root))


def _readable(run: Run) -> Run:
    """The run, unless a later version of linkwright wrote it."""
    try:
        number = run.plan.get("format", 1)
    except StoreError:
        return run  # a damaged one has messages of its own
    if number > schema.FORMAT:
        raise StoreError(
            f"run {run.id}: has format {number}, but this linkwright reads formats 1 to {schema.FORMAT}; use the "
            "version that wrote it, or a later one"
        )
    return run


def entries(root: Path) -> list[dict[str, object]]:
    """The runs below `root`, the newest first, as `linkwright list runs` prints them."""
    found = [Run(folder) for folder in reversed(_folders(root))]
    return [{"key": run.id, "summary": _summary(run), "folder": str(run.folder)} for run in found]


def lists(root: Path) -> str:
    """The command that lists the runs below `root`."""
    return "linkwright list runs" + ("" if root == DEFAULT_ROOT else f" --runs {root}")


def _folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.glob("*/run.json"))


def _summary(run: Run) -> str:
    try:
        plan = run.plan
    except StoreError:
        return "run.json cannot be read"
    request = plan.get("request", {})
    if "study" in plan:
        what = f"study {plan['study']}"
    elif "import" in request:
        what = f"imported from {', '.join(request['import'])}"
    else:
        what = f"on {request.get('on', 'an unknown machine')}"
    return what + ("" if plan["state"] == "done" else "; unfinished")


def samples_table(run: Run, records: Sequence[Record]) -> dict[str, list[Any]]:
    """The columns of `samples.parquet` from the launches of a run; per-rank samples follow the slowest rank's."""
    columns: dict[str, list[Any]] = {name: [] for name in schema.SAMPLES}
    aside = _set_aside(records)

    def add(record: Record, rank: int | None, starts: Sequence[float | None], values: Sequence[float]) -> None:
        n = len(values)
        before, after = record.canary_ns if rank is None else (None, None)
        columns["run"] += [run.id] * n
        columns["experiment"] += [record.experiment] * n
        columns["launch"] += [record.launch] * n
        columns["sample"] += range(n)
        columns["rank"] += [rank] * n
        columns["start_ns"] += starts
        columns["value_ns"] += values
        columns["set_aside"] += [aside.get((record.experiment, record.launch))] * n
        columns["canary_before_ns"] += [before] * n
        columns["canary_after_ns"] += [after] * n

    for record in records:
        add(record, None, [None] * len(record.values_ns), record.values_ns)
        for rank, (starts, values) in enumerate(record.ranks_ns):
            add(record, rank, starts, values)
    return columns


def _set_aside(records: Sequence[Record]) -> dict[tuple[str, int], str | None]:
    """Why the launches that do not count are set aside, by experiment and number."""
    by_experiment: dict[str, list[Record]] = {}
    for record in records:
        by_experiment.setdefault(record.experiment, []).append(record)
    return {(key, each.launch): each.disturbance for key, its in by_experiment.items() for each in counting(its)[1]}
