"""Advice to install something works: it names an extra that exists, and no package that is not published."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from linkwright.base import extras
from linkwright.base.errors import UsageError
from linkwright.base.extras import install

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
NEEDED = [f"{package}; extra == '{extra}'" for extra, its in EXTRAS.items() for package in its]


def texts(*globs):
    found = [path.read_text(encoding="utf-8") for pattern in globs for path in ROOT.glob(pattern)]
    assert found
    return found


def test_the_sentence_says_what_to_type_and_where():
    assert install("dask") == "`.venv/bin/pip install -e '.[dask]'` in the checkout"
    assert install("cuda", "cuda13") == "`.venv/bin/pip install -e '.[cuda]'` (or `'.[cuda13]'`) in the checkout"


def test_outside_a_checkout_the_packages_are_named(monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: NEEDED)
    monkeypatch.setattr(extras, "CHECKOUT", Path("/nowhere"))
    assert install("fit") == f"`{sys.executable} -m pip install 'scipy>=1.14'`"
    assert [word.split(">")[0] for word in install("analysis").split("'")[1::2]] == ["duckdb", "pandas", "pytz"]


def test_an_extra_of_an_extra_is_named_by_its_packages(monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: NEEDED)
    monkeypatch.setattr(extras, "CHECKOUT", Path("/nowhere"))
    named = [word.split(">")[0] for word in install("cuda-libraries").split("'")[1::2]]
    assert named[:2] == ["cuda-bindings", "nvidia-cuda-nvrtc-cu12"]
    assert "cupy-cuda12x" in named
    assert not [name for name in named if name.startswith("linkwright")]


def test_what_is_missing_is_named_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"^a data frame needs pandas, which is not installed; `.*\[analysis\]"):
        extras.load("pandas", "analysis", "a data frame")


def test_every_extra_that_is_advised_exists():
    called = [
        names
        for text in texts("python/linkwright/**/*.py")
        for names in re.findall(r"\b(?:install|extras\.load)\(([^)]*)\)", text)
    ]
    named = {name for names in called for name in re.findall(r"""["']([\w-]+)["']""", names)}
    written = [name for text in texts("docs/**/*.md", "README.md") for name in re.findall(r"'\.\[([\w-]+)\]'", text)]
    advised = (named - {"pandas", "duckdb", "scipy", "resvg_py"}) | set(written)
    assert {"cuda", "dask", "mpi", "compute", "analysis", "fit"} <= advised <= set(EXTRAS)


def test_no_package_is_advised_that_is_not_published():
    for text in texts(
        "python/linkwright/**/*.py", "crates/*/src/**/*.rs", "docs/**/*.md", "*.md", "tests/python/**/*.py"
    ):
        assert not re.search(r"pip install (-\w+ )?['\"]?link" + "wright", text)


@pytest.mark.parametrize(
    ("lock", "its"),
    [
        ("requirements.lock", ["build"]),  # `make setup` builds with what this file pins
        ("requirements-dev.lock", ["build", "compute", "dev", "analysis", "fit", "png"]),
        ("requirements-docs.lock", ["docs"]),
        ("requirements-release.lock", ["release"]),
    ],
)
def test_a_lock_pins_what_its_step_uses(lock, its):
    pinned = {canonical(line) for line in (ROOT / lock).read_text(encoding="utf-8").splitlines() if "==" in line}
    needed = {canonical(package) for extra in its for package in EXTRAS[extra]} - {"linkwright"}
    assert needed - pinned == set()


def canonical(requirement):
    return re.split(r"[^A-Za-z0-9_.-]", requirement)[0].lower().replace("_", "-")


def test_the_page_of_packages_names_each_once_with_its_extra():
    page = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    core, extras_ = page.split("## Extras")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {canonical(package) for package in project["dependencies"]} <= set(re.findall(r"^\| `(\w+)`", core, re.M))
    listed = {name for row in re.findall(r"^\| (`[^|]*) \|", extras_, re.M) for name in re.findall(r"`([\w-]+)`", row)}
    assert listed == set(EXTRAS) - {"build", "dev", "docs", "release"}
