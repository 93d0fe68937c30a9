import errno
import json
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from linkwright.base import files
from linkwright.base.errors import StoreError, UsageError
from linkwright.base.files import write_text, write_whole
from linkwright.formats import interop
from linkwright.session.suite import session
from linkwright.store import journal, run, schema
from linkwright.store.record import Record

ROW = schema.row(
    run="r",
    experiment="latency/ping_pong/p2/8/u8",
    metric="time",
    value=12.5,
    unit="ns",
    status="ok",
    ranks=2,
)


@pytest.fixture
def folder(tmp_path):
    return run.create(tmp_path / "runs", "dissect", "[suite]\n", {"seed": 1})


# --- whole files ------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "results.json"
    write_text(path, "old")

    def full_disk(temporary):
        temporary.write_text("half of the n")
        raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(StoreError, match=r"results\.json: .*disk is full"):
        write_whole(path, full_disk)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_a_device_is_written_to_and_a_link_stays_a_link(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)

    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


def test_a_full_device_is_named():
    with pytest.raises(StoreError, match=r"/dev/full: .*disk is full"):
        write_text(Path("/dev/full"), "lost")


def test_a_full_disk_is_named_and_loses_no_finished_record(tmp_path, monkeypatch):
    def full_disk(_):
        raise OSError(errno.ENOSPC, "no space")

    path = tmp_path / "journal.jsonl"
    with journal.Journal(path) as j:
        j.append({"launch_done": 0})
        monkeypatch.setattr(os, "fsync", full_disk)
        with pytest.raises(StoreError, match=r"journal\.jsonl: .*disk is full"):
            j.append({"launch_done": 1})
    assert list(journal.read(path)) == [{"launch_done": 0}]


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(StoreError, match=r"runs: .*file"):
        run.create(tmp_path / "runs", "dissect", "", {})


def test_written_files_have_the_usual_permissions(tmp_path):
    path = tmp_path / "a.md"
    write_text(path, "x")
    (tmp_path / "b").write_text("x")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "b").stat().st_mode)


# --- journal ----------------------------------------------------------------------------------------


def test_a_torn_last_line_is_dropped_and_overwritten(tmp_path):
    path = tmp_path / "journal.jsonl"
    with journal.Journal(path) as j:
        j.append({"launch_done": 0})
    with path.open("ab") as file:
        file.write(b'{"launch_do')
    assert list(journal.read(path)) == [{"launch_done": 0}]
    with journal.Journal(path) as j:
        j.append({"launch_done": 1})
    assert list(journal.read(path)) == [{"launch_done": 0}, {"launch_done": 1}]


@pytest.mark.parametrize("late", [False, True])
def test_rows_whose_writing_is_interrupted_are_written_once_or_not_at_all(tmp_path, monkeypatch, late):
    """Ctrl-C while the disk works, or when it has; leaving writes what is collected."""
    path = tmp_path / "journal.jsonl"
    append, synced = journal.Journal.append, os.fsync

    def interrupted(*arguments):
        (append if late else synced)(*arguments)
        raise KeyboardInterrupt

    def add(j):
        with session._Bunch(j) as bunch, monkeypatch.context() as patched:
            patched.setattr(*((journal.Journal, "append") if late else (os, "fsync")), interrupted)
            bunch.add([ROW])

    monkeypatch.setattr(session, "JOURNAL_EVERY_S", -1)
    with journal.Journal(path) as j:
        j.append({"launch_done": 0})
        with pytest.raises(KeyboardInterrupt):
            add(j)
    assert list(journal.read(path)) == [{"launch_done": 0}, *([{"rows": [ROW]}] if late else [])]


def test_a_journal_cut_at_any_byte_gives_its_whole_lines(tmp_path):
    path = tmp_path / "journal.jsonl"
    whole = b"".join(json.dumps({"launch_done": i}).encode() + b"\n" for i in range(3))
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert len(list(journal.read(path))) == whole[:cut].count(b"\n")


def test_two_processes_cannot_write_one_run(folder):
    with folder.open_journal(), pytest.raises(StoreError, match="another process"):
        folder.open_journal()


# --- run folder -------------------------------------------------------------------------------------


def test_a_run_folder_holds_what_is_needed_to_judge_it(folder):
    environment = json.loads((folder.folder / "environment.json").read_text())
    assert environment["affinity"]
    assert environment["versions"]["linkwright"]
    assert folder.plan["seed"] == 1
    assert folder.plan["state"] == "running"


def test_two_runs_in_one_second_get_two_folders(tmp_path):
    first, second = (run.create(tmp_path, "dissect", "", {}) for _ in range(2))
    assert first.id != second.id
    assert run.find(tmp_path, "latest").id == second.id


def test_results_come_back_as_written(folder):
    ranks = [[[0.0, 0.5], [1.0, 2.0]], [[0.25, 0.0], [3.0, 4.0]]]
    records = [Record(experiment="e", launch=2, values_ns=[3.0, 4.0], first_ns=1.0, ranks_ns=ranks)]
    folder.write_results([ROW], run.samples_table(folder, records))
    assert folder.results().records() == [ROW]
    samples = folder.samples().records()
    assert [s["value_ns"] for s in samples if s["rank"] is None] == [3.0, 4.0]
    assert [s["value_ns"] for s in samples if s["rank"] == 0] == [1.0, 2.0]
    assert [s["start_ns"] for s in samples] == [None, None, 0.0, 0.5, 0.25, 0.0]
    assert {s["launch"] for s in samples} == {2}


def test_a_run_without_results_says_how_to_go_on(folder):
    with pytest.raises(StoreError, match="--resume"):
        folder.results()


def test_a_run_of_a_study_says_that_it_is_none_of_measurements(folder):
    (folder.folder / "study.json").write_text("{}")
    with pytest.raises(StoreError, match="is of a study and holds no results"):
        folder.results()


def test_an_empty_name_is_no_run(tmp_path):
    with pytest.raises(UsageError, match="RUN is empty"):
        run.find(tmp_path, "")


# --- export -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [entry.suffix for entry in interop.EXPORTERS if entry.suffix])
def test_every_suffix_is_written(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    interop.write_output([ROW], path)
    if suffix == ".parquet":
        assert pd.read_parquet(path).replace({np.nan: None}).to_dict("records") == [ROW]
    else:
        assert "12.5" in path.read_text()


@pytest.mark.parametrize("place", ["/proc/a.json", "/sys/a.json"])
def test_a_place_that_nothing_can_be_written_to_is_refused_before_the_work(place):
    with pytest.raises(StoreError, match=f"{place}: cannot be written"):
        interop.check_output(Path(place))


def test_a_place_is_looked_at_without_a_trace(tmp_path):
    (tmp_path / "old.csv").write_text("kept")
    (tmp_path / "new.csv").symlink_to("old.csv")
    for place in (tmp_path / "none.csv", tmp_path / "old.csv", tmp_path / "new.csv"):
        interop.check_output(place)
    files.check_place(Path("/dev/stdout"), "--out /dev/stdout")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "old.csv"]
    assert (tmp_path / "old.csv").read_text() == "kept"


def test_a_misspelt_column_is_a_bug():
    with pytest.raises(KeyError, match="mertic"):
        schema.row(mertic="time", status="ok")


def test_latest_counts_back(tmp_path):
    folders = [run.create(tmp_path / "runs", key, "", {}) for key in ("a", "b")]
    newest = sorted(folders, key=lambda made: made.id)
    assert run.find(tmp_path / "runs", "latest") == newest[-1]
    assert run.find(tmp_path / "runs", "latest~1") == newest[0]
    with pytest.raises(UsageError, match="holds 2 runs, so no `latest~2`"):
        run.find(tmp_path / "runs", "latest~2")
