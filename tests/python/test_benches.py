"""Every bench runs: its smallest case, without regard to times."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.mark.parametrize(
    "bench", [file.name for file in sorted(BENCHES.glob("*.py")) if "__main__" in file.read_text(encoding="utf-8")]
)
def test_a_bench_runs(bench, tmp_path):
    command = [sys.executable, BENCHES / bench, "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    if done.stdout.startswith("skipped"):
        pytest.skip(done.stdout.strip())
    assert done.stdout
