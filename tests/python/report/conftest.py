from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pages
import pytest

from linkwright.show import report
from linkwright.show.report import model
from linkwright_cases import invoke

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def run_page(tmp_path_factory) -> Path:
    """The report of a made-up run on two machines."""
    return pages.run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def study_page(tmp_path_factory) -> Path:
    """The report of a made-up study, with a box plot and hostile names."""
    return pages.study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def machines_page(tmp_path_factory) -> Path:
    """Two described machines."""
    path = tmp_path_factory.mktemp("machines") / "two.html"
    done = invoke("compare", "hgx-h100", "mi300x", "--sizes", "1K,64K,4M,256M", "--report", str(path))
    assert done.status == 0, done.err
    return path


@pytest.fixture(scope="session")
def big_map_page(tmp_path_factory) -> Path:
    """One heat map of 1,500 x 1,500 cells, its diagonal missing."""
    side = 1500
    rows, columns = np.mgrid[0:side, 0:side]
    values = 1e-9 * (100 + 9 * ((columns - rows) % 64) + (rows // 300 != columns // 300) * 400)
    values[rows == columns] = np.nan
    names = [f"tile {i}" for i in range(side)]
    section = model.Section("map", [model.HeatMap("all pairs", "s", names, names, values)])
    return report.render(model.Report("big", sections=[section]), tmp_path_factory.mktemp("map") / "index.html")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Debian's Chromium under Playwright, with a profile of its own."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make setup-dev")
    with api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=chromium, headless=True, args=FLAGS
        )
        yield context
        context.close()
