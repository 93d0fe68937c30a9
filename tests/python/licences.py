"""What the wheel contains that others wrote, with its licence: from the lock file, by Cargo."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TARGET = "x86_64-unknown-linux-gnu"


def crates() -> list[tuple[str, str, str]]:
    """(name, version, licence) of every crate that is linked into the library."""
    told = json.loads(subprocess.check_output(_METADATA, cwd=ROOT, text=True))
    packages = {package["id"]: package for package in told["packages"]}
    needs = {node["id"]: [dep["pkg"] for dep in node["deps"] if _linked(dep)] for node in told["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] == "linkwright-py"]
    found: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key not in found and not _is_macro(packages[key]):
            found.add(key)
            waiting += needs[key]
    rows = [(p["name"], p["version"], p["license"]) for p in map(packages.__getitem__, found) if p["source"]]
    return sorted(rows)


_METADATA = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", _TARGET]


def _linked(dependency: dict) -> bool:
    """Whether a dependency is part of what is built, not only needed to build or to test it."""
    return any(kind["kind"] is None for kind in dependency["dep_kinds"])


def _is_macro(package: dict) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])
