"""A folder that runs schedules without linkwright: `export --as tt-metalium`."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import walks

from linkwright.executors.metalium import runtime
from linkwright_cases import invoke

RING = ("export", "allreduce/ring", "--ranks", "4", "--size", "1K", "--as", "tt-metalium")


@pytest.fixture
def folder(tmp_path) -> Path:
    result = invoke(*RING, "--out", str(tmp_path / "folder"))
    assert result.status == 0, result.err
    return tmp_path / "folder"


def ran(python: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the host program does where no variable leads to linkwright."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [str(python), str(folder / "run.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=variables, cwd=folder.parent)


def test_the_folder_holds_all_that_it_names(folder):
    known = json.loads((folder / "cases.json").read_text())
    (case,) = known["cases"]
    assert case["name"] == "allreduce/ring/p4/1K/f32/sum"
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"README.md", "cases.json", "run.py", "serve.py", known["kernel"], case["data"]}
    arrays = np.load(folder / case["data"])
    assert arrays["rows"].shape == (4, case["words"])
    assert sum(case["memory_bytes"]) == len(arrays["expected"])
    assert (folder / known["kernel"]).read_bytes() == runtime.KERNEL.read_bytes()
    for program in ("run.py", "serve.py"):
        assert not re.search(r"^\s*(?:import|from) linkwright", (folder / program).read_text(), re.M)


def test_the_same_schedule_gives_the_same_bytes(folder, tmp_path):
    assert invoke(*RING, "--out", str(tmp_path / "again")).status == 0
    for path in folder.rglob("*.*"):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "again" / path.relative_to(folder)).read_bytes()


def test_the_folder_runs(environment, folder, tmp_path):
    done = ran(environment / "bin/python", folder, "--repetitions", "3", "--csv", str(tmp_path / "times.csv"))
    assert done.returncode == 0, done.stderr
    assert "4096 bytes of 4 ranks, all right; slowest rank" in done.stdout
    assert "3 repetitions, simulated by wolfpine, not measured" in done.stdout
    rows = (tmp_path / "times.csv").read_text().splitlines()
    assert rows[0] == "case,repetition,rank,start_cycles,cycles,from"
    assert len(rows) == 1 + 3 * 4


def test_clocks_of_a_board_are_compared(environment, folder):
    """The stand-in of a simulator with another name is functional; one with none is a board."""
    (environment / "site/framework/sim.py").write_text("def simulator_dir(chip):\n    return '/nowhere'\n")
    text = (folder / "serve.py").read_text().replace("    return simulator\n", "    return None\n")
    (folder / "serve.py").write_text(text)
    done = ran(environment / "bin/python", folder)
    assert done.returncode == 0, done.stderr
    assert "all right; slowest rank" in done.stdout
    assert "(1 repetitions, measured)" in done.stdout


def test_a_functional_simulator_gives_no_times(environment, folder, monkeypatch, tmp_path):
    (tmp_path / "functional.so").touch()
    monkeypatch.setenv("TT_METAL_SIMULATOR", str(tmp_path / "functional.so"))
    assert "all right; functional is functional and has no times" in ran(environment / "bin/python", folder).stdout


def test_a_wrong_byte_is_found(environment, folder):
    path = folder / json.loads((folder / "cases.json").read_text())["cases"][0]["data"]
    arrays = dict(np.load(path))
    arrays["expected"][17] ^= 1
    np.savez(path, **arrays)
    done = ran(environment / "bin/python", folder)
    assert done.returncode == 1
    assert "1 of 4096 bytes are WRONG" in done.stdout


def test_a_missing_notice_is_named(environment, folder):
    """Instruction 4 of rank 3 is its first notice; without it the first rank waits in vain."""
    path = folder / (case := json.loads((folder / "cases.json").read_text())["cases"][0])["data"]
    arrays = dict(np.load(path))
    first = case["arguments"][0][2] // 4
    assert arrays["rows"][3, first] & 255 == walks.lower.RAISE
    arrays["rows"][3, first] = walks.lower.LANDED
    np.savez(path, **arrays)
    text = (folder / "cases.json").read_text()
    (folder / "cases.json").write_text(re.sub(r'"simulator": \d+', '"simulator": 10000', text))
    done = ran(environment / "bin/python", folder)
    assert done.returncode == 1
    assert "processor 0, waited too long for notice 1 of rank 3, processor 0; 0 have come" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cases",), "unrecognized arguments"),
        (("nothing",), "no such case; cases.json lists them"),
        (("--repetitions", "0"), "--repetitions: at least 1"),
    ],
)
def test_what_does_not_exist_is_refused(environment, folder, words, said):
    done = ran(environment / "bin/python", folder, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_where_there_is_no_runtime_it_says_so(environment, folder):
    (environment / "site/ttnn").rename(environment / "gone")
    done = ran(environment / "bin/python", folder)
    assert done.returncode == 2
    assert "has no ttnn" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_is_a_folder_of_cases(tmp_path):
    asked = ("run", "allreduce", "--algorithm", "ring,swing_bandwidth", "--on", "crossbar", "--ranks", "4")
    assert invoke(*asked, "--sizes", "1K,4M", "--runs", str(tmp_path / "runs")).status == 0
    result = invoke("export", "--as", "tt-metalium", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out"))
    assert result.status == 0, result.err
    names = [case["name"] for case in json.loads((tmp_path / "out/cases.json").read_text())["cases"]]
    assert names == [f"allreduce/{key}/p4/1K/f32/sum" for key in ("ring", "swing_bandwidth")]  # 4M fits no core


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("allreduce/ring",), "writes a folder; name it with --out FOLDER"),
        (("allreduce/ring", "--ranks", "1", "--out", "x"), "a single rank sends nothing"),
        (("allreduce/ring", "--ranks", "73", "--out", "x"), "73 ranks, and a Wormhole n150 has 72 workers"),
        (("allreduce/ring", "--ranks", "9", "--grid", "9x1", "--out", "x"), "a grid of 9 x 1, and a Wormhole n150"),
        (("allreduce/ring", "--size", "16M", "--out", "x"), "bytes of L1"),
        (("allreduce/shared_memory", "--out", "x"), "memories beside its ranks"),
        (("allreduce/ring", "--out", "full"), "full: is a folder that is not empty; choose another name"),
        (("nothing", "--out", "x"), "unknown run `nothing`"),
    ],
)
def test_what_cannot_be_exported_is_refused(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    result = invoke("export", *words, "--as", "tt-metalium", "--runs", "runs")
    assert result.status != 0
    assert said in result.err
    assert not (tmp_path / "x").exists()


def test_the_folder_runs_on_the_real_runtime(device, folder):
    done = ran(runtime.python(), folder)
    assert done.returncode == 0, done.stderr
    assert "4096 bytes of 4 ranks, all right" in done.stdout
