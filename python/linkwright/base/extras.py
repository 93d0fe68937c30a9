"""Optional dependencies: load those of an extra in `pyproject.toml`, or tell users how to install them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from linkwright.base.errors import UsageError

_OWN = "linkwright["
CHECKOUT = Path(__file__).resolve().parents[3] / "pyproject.toml"


def load(module: str, extra: str, what: str) -> ModuleType:
    """Import the module that `what` needs, or raise an error that says how to install its extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{what} needs {module}, which is not installed; {install(extra)}") from error


def install(extra: str, instead: str | None = None) -> str:
    """Return the command that installs `extra`, or the extra that some users need `instead`."""
    if not CHECKOUT.exists():
        return f"`{sys.executable} -m pip install {' '.join(_packages(extra))}`"
    told = f"`.venv/bin/pip install -e '.[{extra}]'`"
    return told + (f" (or `'.[{instead}]'`)" if instead else "") + " in the checkout"


def install_package(name: str) -> str:
    """Return the command that installs a package of this repository that is not part of linkwright."""
    if CHECKOUT.exists():
        return "`make setup`"
    from importlib.metadata import version

    return f"`{sys.executable} -m pip install {name.replace('-', '_')}-{version('linkwright')}-py3-none-any.whl`"


def _packages(extra: str) -> list[str]:
    """Return the packages of an extra, nested extras included, from the metadata of the installed package."""
    from importlib import metadata  # 30 ms

    needed = (found.split(";") for found in metadata.requires("linkwright") or ())
    named = [words[0].strip() for words in needed if f"extra == '{extra}'" in words[-1].replace('"', "'")]
    inner = [(_packages(name[len(_OWN) : -1]) if name.startswith(_OWN) else [f"'{name}'"]) for name in named]
    return [package for packages in inner for package in packages]
