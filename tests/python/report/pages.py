"""The pages that the tests look at; run as a program it writes their golden words again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import synthetic
from reading import words

from linkwright.show import report
from linkwright.show.report import model
from linkwright_evidence.report import render_study

GOLDEN = Path(__file__).parents[2] / "golden" / "report"


def run(folder: Path) -> Path:
    return report.render(synthetic.folder(folder / "demo"))


def study(folder: Path) -> Path:
    box = model.Box(synthetic.NASTY, 1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 64)
    extra = model.Section(synthetic.NASTY, [model.BoxPlot("spread", model.Axis("time", "s"), [box])])
    return render_study(synthetic.study(), folder / "index.html", [extra])


def glance(folder: Path) -> str:
    return "".join(f"{line}\n" for line in report.conclude(synthetic.folder(folder / "demo"))[0])


def regenerate() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for build in (run, study):
        with tempfile.TemporaryDirectory() as folder:
            text = words(build(Path(folder)).read_text(encoding="utf-8"))
        (GOLDEN / f"{build.__name__}.txt").write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        (GOLDEN / "glance.txt").write_text(glance(Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    regenerate()
