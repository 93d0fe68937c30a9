"""The command that takes the pictures of README.md works, and the pictures there are of its kind."""

import struct
import subprocess
import sys
from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).parents[3]
NAMES = ("measured", "simulated", "study", "picture")


def size_of(picture):
    """Width and height in pixels, from the header of a PNG file."""
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


def sane(folder):
    for name in NAMES:
        width, height = size_of(folder / f"{name}.png")
        assert 300 <= width <= 1400
        assert 300 <= height <= 1400
        assert 5_000 < (folder / f"{name}.png").stat().st_size <= 200_000


@pytest.mark.browser
def test_one_command_takes_all_pictures(browser, tmp_path):
    run = pages.run(tmp_path / "run").parent.parent
    words = ["--measured", run, "--simulated", run, "--out", tmp_path / "images"]
    command = [sys.executable, ROOT / "benches/pictures.py", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "images" / f"{name}.png") for name in NAMES]
    sane(tmp_path / "images")


def test_pictures_of_the_readme_are_those_of_the_command():
    sane(ROOT / "docs/images")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/images/{name}.png" in text for name in NAMES)
