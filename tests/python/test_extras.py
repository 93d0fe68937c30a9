"""Advice to install something works: it names an extra that exists, and no package that is not published."""

import re
import tomllib
from pathlib import Path

from linkwright.extras import install

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def texts(*globs):
    found = [path.read_text(encoding="utf-8") for pattern in globs for path in ROOT.glob(pattern)]
    assert found
    return found


def test_the_sentence_says_what_to_type_and_where():
    assert install("dask") == "`.venv/bin/pip install -e '.[dask]'` in the checkout"
    assert install("cuda", "cuda13") == "`.venv/bin/pip install -e '.[cuda]'` (or `'.[cuda13]'`) in the checkout"


def test_every_extra_that_is_advised_exists():
    called = [
        names for text in texts("python/linkwright/**/*.py") for names in re.findall(r"\binstall\(([^)]*)\)", text)
    ]
    written = [name for text in texts("docs/**/*.md", "README.md") for name in re.findall(r"'\.\[([\w-]+)\]'", text)]
    advised = {name for names in called for name in re.findall(r"""["']([\w-]+)["']""", names)} | set(written)
    assert {"cuda", "dask", "mpi", "compute"} <= advised <= set(EXTRAS)


def test_no_package_is_advised_that_is_not_published():
    for text in texts(
        "python/linkwright/**/*.py", "crates/*/src/**/*.rs", "docs/**/*.md", "*.md", "tests/python/**/*.py"
    ):
        assert not re.search(r"pip install (-\w+ )?['\"]?link" + "wright", text)
