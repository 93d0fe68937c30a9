"""What only some features need: the extras of `pyproject.toml`, and how to install them from where this runs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from linkwright.base.errors import UsageError

_OWN = "linkwright["
CHECKOUT = Path(__file__).resolve().parents[3] / "pyproject.toml"


def load(module: str, extra: str, what: str) -> ModuleType:
    """The module, which `what` needs; a message says how to install its extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{what} needs {module}, which is not installed; {install(extra)}") from error


def install(extra: str, instead: str | None = None) -> str:
    """What to type for `extra`, or for the extra that some need `instead`."""
    if not CHECKOUT.exists():
        return f"`{sys.executable} -m pip install {' '.join(_packages(extra))}`"
    told = f"`.venv/bin/pip install -e '.[{extra}]'`"
    return told + (f" (or `'.[{instead}]'`)" if instead else "") + " in the checkout"


def install_package(name: str) -> str:
    """What to type for a package of this repository that is not part of linkwright."""
    if CHECKOUT.exists():
        return "`make setup`"
    from importlib.metadata import version

    return f"`{sys.executable} -m pip install {name.replace('-', '_')}-{version('linkwright')}-py3-none-any.whl`"


def _packages(extra: str) -> list[str]:
    """The packages of an extra, by the metadata of the installed package; those of an extra inside it, too."""
    from importlib import metadata  # 30 ms

    needed = (found.split(";") for found in metadata.requires("linkwright") or ())
    named = [words[0].strip() for words in needed if f"extra == '{extra}'" in words[-1].replace('"', "'")]
    inner = [(_packages(name[len(_OWN) : -1]) if name.startswith(_OWN) else [f"'{name}'"]) for name in named]
    return [package for packages in inner for package in packages]
