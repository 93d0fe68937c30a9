"""The script for a GPU that is new to the project, rehearsed with a clock of its own and a stand-in for Python."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benches" / "first_contact.sh"


def contact(folder: Path, *steps: str, seconds: int, tick: int) -> subprocess.CompletedProcess:
    """Run it where every look at the clock takes `tick` seconds, and where `list executors` fails."""
    python = folder / "python"
    python.write_text('#!/bin/sh\ncase "$*" in *sm_count*) echo 12;; *executors*) exit 3;; *) echo "$@";; esac\n')
    python.chmod(0o755)
    clock = folder / "clock"
    clock.write_text("0")
    look = f'n=$(($(cat "{clock}") + {tick})); echo $n | tee "{clock}"'
    more = {"PYTHON": str(python), "FIRST_CONTACT_CLOCK": look, "FIRST_CONTACT_SECONDS": str(seconds)}
    command = ["bash", str(SCRIPT), str(folder / "out"), *steps]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **more})


def summary(folder: Path) -> list[str]:
    return (folder / "out" / "summary.txt").read_text().splitlines()


def test_a_failure_stops_nothing_and_is_told(tmp_path):
    done = contact(tmp_path, "executors", "ring-2", seconds=1000, tick=1)
    assert done.returncode == 1
    first, second, last = summary(tmp_path)
    assert first.split()[:3] == ["executors", "status", "3"]
    assert second.split()[:3] == ["ring-2", "status", "0"]
    assert last == "steps failed: see above"


def test_what_is_known_is_packed_after_each_step(tmp_path):
    assert contact(tmp_path, "rivals", seconds=1000, tick=1).returncode == 0
    with tarfile.open(tmp_path / "out" / "results.tar.gz") as packed:
        log = packed.extractfile("results/rivals.log").read().decode()
    assert "--ranks 8,12" in log  # the largest power of two, and all SMs
    assert "--on cuda" in log


def test_what_does_not_fit_is_skipped(tmp_path):
    done = contact(tmp_path, "hbm", "loads", "suite", seconds=100, tick=20)
    assert done.returncode == 0
    assert [line.split()[0] for line in summary(tmp_path)] == ["hbm", "loads", "skipped", "every"]


def test_every_step_of_a_whole_contact_has_a_name_of_its_own(tmp_path):
    contact(tmp_path, seconds=100_000, tick=1)
    names = [line.split()[0] for line in summary(tmp_path)[:-1]]
    assert len(names) == len(set(names)) > 20


def test_a_step_that_does_not_exist_is_refused(tmp_path):
    for name in ("hbn", "ring", "ring-.", "."):
        done = contact(tmp_path, name, seconds=100, tick=1)
        assert (done.returncode, f"has no step called {name}" in done.stderr) == (2, True)
