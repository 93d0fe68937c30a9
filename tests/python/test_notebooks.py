"""The notebooks of `examples/notebooks`: one for each role, without outputs, and every cell runs."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


def test_there_is_one_for_each_role_of_the_readme():
    assert [path.stem for path in NOTEBOOKS] == ["cluster", "collective", "log", "machine", "model"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), "strip the outputs"
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
