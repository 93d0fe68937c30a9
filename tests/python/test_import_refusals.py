"""Result files that lie: one message with file, line and cure, and no run folder; and what a cut file still tells."""

import time
from pathlib import Path

import pytest

from linkwright.base.errors import StoreError
from linkwright.show import report
from linkwright.store import run as runs
from linkwright_cases import invoke

OSU = "# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n4    1.46\n8    1.50\n16   1.61\n"
NCCL = """\
# Collective test starting: all_reduce_perf
#   Rank  0 Group  0
#   Rank  1 Group  0
#       size         count      type   redop    root     time   algbw   busbw #wrong
        1024           256     float     sum      -1    12.34    0.08    0.08      0
        2048           512     float     sum      -1    13.34    0.15    0.15      0
# Out of bounds values : 0 OK
"""


def imported(folder, text, *more, kind="osu"):
    (folder / "log.txt").write_text(text)
    words = ("import", "--as", kind, str(folder / "log.txt"), "--runs", str(folder / "runs"))
    return invoke(*words, *(("-p", "4") if kind == "osu" else ()), *more)


def test_the_good_ones_are_read(tmp_path):
    for kind, text in (("osu", OSU), ("nccl-tests", NCCL)):
        result = imported(tmp_path, text, kind=kind)
        assert result.status == 0, result.err
        assert Path(result.out.splitlines()[-1]).is_file()
    assert len(list((tmp_path / "runs").iterdir())) == 2


BAD_OSU = [
    *((find, put, f"log.txt:{line}: a size or a value is not a number") for find, put, line in (
        ("4    1.46", "1e300 1.46", 3), ("4    1.46", f"{1 << 63} 1.46", 3), ("4    1.46", "16.5 1.46", 3),
        ("8    1.50", "8 1e308", 4), ("8    1.50", "8 nan", 4), ("8    1.50", "8 1_0", 4), ("8    1.50", "8 ٣", 4),
        ("8    1.50", f"8 {'9' * 5000}", 4),
    )),
    ("16   1.61", f"{1 << 55} 1.61", f"log.txt:5: size {1 << 55} is beyond 1125899906842624"),
    ("Allreduce Latency", "Allfrobnicate Latency", "log.txt:1: the test `MPI Allfrobnicate"),
    ("16   1.61\n", "16   1.61", "log.txt:5: the last line is not terminated"),
    ("16   1.61\n", "4   1.61\n", "log.txt:5: size 4 follows 8"),
]  # fmt: skip
BAD_NCCL = [
    ("all_reduce_perf", "all_frob_perf", "log.txt:1: the collective `all_frob` is not known"),
    ("2048 ", "2048.5 ", "log.txt:6: the size is not a whole number"),
    (" sum ", " frob ", "log.txt:5: a time or a rate is not a number"),
    ("      -1    12.34", "  7    12.34", "log.txt:5: root 7 is none of 2 ranks"),
    ("12.34", "1e308", "log.txt:5: a time or a rate is not a number"),
    (
        "# Collective test starting: all_reduce_perf",
        f"# allreduce/ring, {'9' * 23} ranks, t on m",
        f"log.txt:5: {'9' * 23} ranks are more than",
    ),
    (
        "# Collective test starting: all_reduce_perf",
        f"# allreduce/ring, 2 ranks, t on {'m' * 300}",
        "log.txt:5: `mmm",
    ),
]


@pytest.mark.parametrize(
    ("kind", "find", "put", "message"),
    [("osu", *case) for case in BAD_OSU] + [("nccl-tests", *case) for case in BAD_NCCL],
)
def test_a_wrong_file_is_refused_with_its_line_and_leaves_nothing(tmp_path, kind, find, put, message):
    good = OSU if kind == "osu" else NCCL
    assert find in good
    result = imported(tmp_path, good.replace(find, put), kind=kind)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"linkwright: {tmp_path}/")
    assert message in result.err
    assert len(result.err) < 400
    assert not (tmp_path / "runs").exists()


def test_a_time_that_was_rounded_to_nothing_is_refused(tmp_path):
    result = imported(tmp_path, OSU.replace("1.46", "0.00"))
    assert (result.status, "log.txt:3: the value is 0" in result.err) == (2, True), result


def test_a_format_without_an_end_says_where_a_file_ends(tmp_path):
    result = imported(tmp_path, OSU.removesuffix("16   1.61\n"))
    assert result.status == 0
    assert "log.txt: ends at 8; the format marks no end" in result.err


def test_a_file_without_its_last_line_says_so(tmp_path):
    result = imported(tmp_path, NCCL.replace("# Out of bounds values : 0 OK\n", ""), kind="nccl-tests")
    assert result.status == 0
    assert "log.txt: ends at 2K without `# Out of bounds values`" in result.err


def test_control_characters_of_a_name_are_gone(tmp_path):
    title = "# allreduce/ring, 2 ranks, t on \x1b[2Jm"
    result = imported(tmp_path, NCCL.replace("# Collective test starting: all_reduce_perf", title), kind="nccl-tests")
    assert result.status == 0
    assert (
        invoke("query", "select distinct machine from results", "--runs", str(tmp_path / "runs")).out.split()[-1] == "m"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--collective", "frob"), "unknown collective `frob`"), (("--machine", "a\x1b[2Jb"), "printable characters")],
)
def test_what_the_user_states_is_checked(tmp_path, words, message):
    result = imported(tmp_path, OSU, *words)
    assert result.status == 2
    assert message in result.err
    assert "\x1b" not in result.err
    assert not (tmp_path / "runs").exists()


def test_an_import_that_fails_in_the_middle_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(report, "render", full)
    assert imported(tmp_path, OSU).status == 1
    assert not (tmp_path / "runs").exists()


def test_folders_of_one_second_have_names_of_their_own(tmp_path):
    names = set()
    for _ in range(3):
        with runs.whole(tmp_path, "x", {}) as run:
            names.add(run.id)
        assert (tmp_path / run.id / "run.json").is_file()
    assert len(names) == 3
    assert {path.name for path in tmp_path.iterdir()} == names


def test_the_newest_run_is_the_latest_in_every_time_zone(tmp_path, monkeypatch):
    ids = []
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        ids.append(runs.create(tmp_path, "x", "", {}).id)
    monkeypatch.undo()
    time.tzset()
    assert runs.find(tmp_path, "latest").id == ids[-1]
    assert [entry["key"] for entry in runs.entries(tmp_path)] == ids[::-1]
