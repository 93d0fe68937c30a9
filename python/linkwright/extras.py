"""How to install what only some features need: the extras of `pyproject.toml`, from a checkout."""

from __future__ import annotations


def install(extra: str, instead: str | None = None) -> str:
    """What to type for `extra`, or for the extra that some need `instead`."""
    told = f"`.venv/bin/pip install -e '.[{extra}]'`"
    return told + (f" (or `'.[{instead}]'`)" if instead else "") + " in the checkout"
