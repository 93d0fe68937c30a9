"""The pictures of README.md, as PNG files in docs/images: `make pictures`.

    measured.png     the first screen of this machine's page
    simulated.png    the first screen of a described machine's page
    study.png        what a study predicts over what was published, cell by cell
    picture.png      two schedules on a described machine, at one moment

Needs Chromium and the tools of `make setup-dev`. Runs in about two minutes; `--measured` and `--simulated` take
finished runs instead of making them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import quick

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT = 1400, 900
SCALE = 0.8  # README shows them at a third of their width
MOST_BYTES = 200_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
MEASURED = ("dissect", "--level", "quick", "--on", "threads")
SIMULATED = ("dissect", "--on", "wormhole-n150")
STUDY = ("reproduce", "vollo")
DRAWN = ("draw", "allreduce/ring", "allreduce/recursive_doubling_latency", "--on", "dgx1-p100", "--size", "1M")
MOMENT = 0.2  # of the time of the slower one


@dataclass(frozen=True)
class Picture:
    """One picture: a page, and the section whose first chart it shows; None: the top of the page."""

    name: str
    page: Path
    section: str | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, metavar="RUN", help="folder of a run on this machine")
    parser.add_argument("--simulated", type=Path, metavar="RUN", help="folder of a run on a described machine")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images", metavar="FOLDER", help="where they go")
    asked = quick.arguments(parser, ("chromium", "playwright"))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if asked.quick:
            take([Picture("picture", drawn(folder / "picture.html"))], folder)
            return
        pictures = [
            Picture("measured", page_of(asked.measured, MEASURED, folder / "measured")),
            Picture("simulated", page_of(asked.simulated, SIMULATED, folder / "simulated")),
            Picture("study", page_of(None, STUDY, folder / "study"), "how-close"),
            Picture("picture", drawn(folder / "picture.html")),
        ]
        asked.out.mkdir(parents=True, exist_ok=True)
        take(pictures, asked.out)


def page_of(run: Path | None, command: tuple[str, ...], folder: Path) -> Path:
    """The page of a finished run, or of one that this command makes in `folder`."""
    if run is None:
        subprocess.run(
            [sys.executable, "-m", "linkwright", *command, "--runs", folder], check=True, stdout=subprocess.DEVNULL
        )
        (run,) = (path.parent.parent for path in folder.glob("*/report/index.html"))
    return run / "report" / "index.html"


def drawn(file: Path) -> Path:
    """The page of two schedules in step."""
    subprocess.run([sys.executable, "-m", "linkwright", *DRAWN, "--out", file], check=True, stdout=subprocess.DEVNULL)
    return file


def picture_of_section(page: Page, section: str, file: Path) -> None:
    """The first chart of a section; charts are drawn once they are on the screen, hence a tall one."""
    page.set_viewport_size({"width": WIDTH, "height": 6000})
    page.wait_for_timeout(1000)
    page.screenshot(path=file, clip=page.locator(f"#{section} figure").first.bounding_box())


def take(pictures: list[Picture], out: Path) -> None:
    """Write every picture, and refuse one that is too large for a repository."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("pictures: no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for picture in pictures:
            file = out / f"{picture.name}.png"
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE, color_scheme="light"
            )
            page.goto(picture.page.resolve().as_uri())
            page.wait_for_selector("body[data-ready], figure.lwp[data-ready]")
            page.evaluate(
                f"typeof LWPicture != 'undefined' && LWPicture.decks[0].seek({MOMENT} * LWPicture.decks[0].whole)"
            )
            page.wait_for_timeout(200)
            if picture.section:
                picture_of_section(page, picture.section, file)
            else:
                page.screenshot(path=file)
            page.close()
            if file.stat().st_size > MOST_BYTES:
                sys.exit(f"pictures: {file} has {file.stat().st_size} B, more than {MOST_BYTES}; take a smaller screen")
            print(file)
        browser.close()


if __name__ == "__main__":
    main()
