"""One run folder: `runs/<id>/`.

run.json            the request: suite, machines, options, seed, command; state `running` or `done`
suite.toml          copy of the suite
environment.json    what a sceptical reader needs to know about the machine
experiments.json    what was asked, where schedules of the user's are among it, and
schedules/*.lw      these schedules, by digest
journal.jsonl       while it runs, and after an interruption
results.parquet     tidy rows                    | written whole at the end,
samples.parquet     every raw sample             | also after an interruption
report/index.html
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from linkwright.errors import StoreError, UsageError, unknown

from . import environment, journal, schema, upgrade
from .files import make_folder, named, write_text, write_whole
from .record import Record, counting

# Where run folders are, unless --runs says otherwise.
DEFAULT_ROOT = Path("runs")


@dataclass(frozen=True)
class Run:
    """A run folder that exists."""

    folder: Path

    @property
    def id(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def journal_path(self) -> Path:
        """The journal, until the run is complete."""
        return self.folder / "journal.jsonl"

    @property
    def plan(self) -> dict:
        """What `run.json` says."""
        path = self.folder / "run.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise StoreError(
                f"{path}: cannot be read, so this is no run; `{lists(self.folder.parent)}` shows those there are"
            ) from error

    def records(self) -> list[dict]:
        """The whole records of the journal."""
        return list(journal.read(self.journal_path))

    def open_journal(self) -> journal.Journal:
        """The journal, locked, for appending."""
        return journal.Journal(self.journal_path)

    def keep_machine(self, name: str, path: Path) -> None:
        """Copy a machine file, because results cannot be judged without its constants."""
        make_folder(self.folder / "machines")
        write_text(self.folder / "machines" / f"{name}.toml", path.read_text(encoding="utf-8"))

    def keep_experiments(self, plan: object, schedules: Mapping[str, str]) -> None:
        """Keep what was asked, and the user's schedules, digest by digest: a resumed run must not make them again."""
        make_folder(self.folder / "schedules")
        for digest, text in schedules.items():
            write_text(self.folder / "schedules" / f"{digest}.lw", text)
        write_text(self.folder / "experiments.json", json.dumps(plan) + "\n")

    def experiments(self) -> dict[str, list[dict]] | None:
        """What `keep_experiments` kept, by target; None if it follows from the suite."""
        path = self.folder / "experiments.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def schedule(self, digest: str) -> str:
        """The text of a schedule of the user's."""
        path = self.folder / "schedules" / f"{digest}.lw"
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{path}: is gone, so its experiments cannot be run again; make the run again") from error

    def forget_machine(self) -> None:
        """Reduce the environment to time, command and versions, because the numbers come from elsewhere."""
        path = self.folder / "environment.json"
        known = json.loads(path.read_text(encoding="utf-8"))
        write_text(path, json.dumps({key: known[key] for key in ("time", "command", "versions")}, indent=2) + "\n")

    def write_results(self, rows: Iterable[dict], samples: pa.Table) -> None:
        """Write both tables whole."""
        table = pa.Table.from_pylist(list(rows), schema=schema.arrow_schema(schema.RESULTS))
        write_whole(self.folder / "results.parquet", lambda path: pq.write_table(table, path))
        write_whole(self.folder / "samples.parquet", lambda path: pq.write_table(samples, path, compression="zstd"))

    def mark(self, state: str) -> None:
        """Set the state in `run.json`; a finished run no longer needs its journal."""
        write_text(self.folder / "run.json", json.dumps({**self.plan, "state": state}, indent=2) + "\n")
        if state == "done":
            self.journal_path.unlink(missing_ok=True)

    def results(self) -> pa.Table:
        """The tidy rows."""
        return upgrade.results(_read(self.folder / "results.parquet"))

    def samples(self) -> pa.Table:
        """Every raw sample."""
        return upgrade.samples(_read(self.folder / "samples.parquet"))


def create(root: Path, suite_key: str, suite_text: str, plan: dict, about: dict | None = None) -> Run:
    """A new run folder below `root`, named after the time and the suite; `about` adds to the environment."""
    make_folder(root)
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = root / f"{stamp}-{suite_key}"
    attempt = 1
    with named(root):
        while True:
            try:
                folder.mkdir()
                break
            except FileExistsError:
                attempt += 1
                folder = root / f"{stamp}-{suite_key}-{attempt}"
    run = Run(folder)
    write_text(folder / "suite.toml", suite_text)
    write_text(folder / "environment.json", json.dumps(environment.collect() | (about or {}), indent=2) + "\n")
    write_text(
        folder / "run.json",
        json.dumps({"format": schema.FORMAT, "id": run.id, "state": "running", **plan}, indent=2) + "\n",
    )
    return run


def find(root: Path, name: str) -> Run:
    """The run called `name` below `root`, or at the path `name`; `latest` is the newest, `latest~1` the one before."""
    if match := re.fullmatch(r"latest(?:~(\d+))?", name):
        folders = _folders(root)
        back = int(match[1] or 0)
        if back >= len(folders):
            raise UsageError(f"{root}: holds {len(folders)} runs, so no `{name}`; make one with `linkwright dissect`")
        return Run(folders[-1 - back])
    if not name:
        raise UsageError("RUN is empty; give an id, a path or `latest`")
    for folder in (root / name, Path(name)):
        if (folder / "run.json").is_file():
            return Run(folder)
    raise unknown("run", name, (folder.name for folder in _folders(root)), where=str(root), lists=lists(root))


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


def samples_table(run: Run, records: Sequence[Record]) -> pa.Table:
    """`samples.parquet` from the launches of a run; per-rank samples follow the slowest rank's."""
    columns: dict[str, list] = {name: [] for name in schema.SAMPLES}
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
    return pa.table(columns, schema=schema.arrow_schema(schema.SAMPLES))


def _set_aside(records: Sequence[Record]) -> dict[tuple[str, int], str | None]:
    """Why the launches that do not count are set aside, by experiment and number."""
    by_experiment: dict[str, list[Record]] = {}
    for record in records:
        by_experiment.setdefault(record.experiment, []).append(record)
    return {(key, each.launch): each.disturbance for key, its in by_experiment.items() for each in counting(its)[1]}


def _read(path: Path) -> pa.Table:
    if not path.is_file():
        if (path.parent / "study.json").is_file():
            raise StoreError(
                f"run {path.parent.name}: is of a study and holds no results; name a run of `linkwright dissect`"
            )
        raise StoreError(
            f"{path}: does not exist, so the run ended early; `linkwright dissect --resume {path.parent.name}` goes on"
        )
    try:
        return pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise StoreError(f"{path}: is not a Parquet file ({error}); make the run again") from error
