"""What others wrote that linkwright contains or installs, with its licence, and whether that licence is allowed.

    wheel       every crate that is linked into the library, from the lock file, by Cargo
    beside it   what the extras name, from pyproject.toml; the licences below are compared with
                what the installed packages say of themselves

`make lint` runs this file; it needs no network.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_TARGET = "x86_64-unknown-linux-gnu"

# Licences of what is in the wheel: none asks more of users than to keep a notice.
ALLOWED = {"0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "MIT",
           "Unicode-3.0", "Unlicense", "Zlib"}  # fmt: skip

# Crates of which the wheel contains more than one version, and who asks for the older one.
DUPLICATES = {
    "getrandom": "the hashes of parquet",
    "hashbrown": "petgraph",
}

# Packages that pyproject.toml names for users. What is not allowed above is not part of linkwright: users get it from
# the vendor.
PACKAGES = {
    "click": "BSD-3-Clause",
    "cuda-bindings": "Apache-2.0",
    "cupy-cuda12x": "MIT",
    "cupy-cuda13x": "MIT",
    "distributed": "BSD-3-Clause",
    "duckdb": "MIT",
    "jinja2": "BSD-3-Clause",
    "mpi4py": "BSD-3-Clause",
    "numpy": "BSD-3-Clause",
    "nvidia-cublas": "proprietary, NVIDIA",
    "nvidia-cublas-cu12": "proprietary, NVIDIA",
    "nvidia-cuda-nvrtc": "proprietary, NVIDIA",
    "nvidia-cuda-nvrtc-cu12": "proprietary, NVIDIA",
    "nvidia-curand": "proprietary, NVIDIA",
    "nvidia-curand-cu12": "proprietary, NVIDIA",
    "nvidia-ml-py": "BSD-3-Clause",
    "nvidia-nccl-cu12": "BSD-3-Clause",
    "nvidia-nccl-cu13": "BSD-3-Clause",
    "onnx": "Apache-2.0",
    "onnxruntime": "MIT",
    "pandas": "BSD-3-Clause",
    "pytz": "MIT",
    "pyyaml": "MIT",
    "resvg-py": "MIT",
    "scipy": "BSD-3-Clause",
    "torch": "BSD-3-Clause",
    "threadpoolctl": "BSD-3-Clause",
}
# Extras of those who work on linkwright.
_OURS = {"build", "dev", "docs", "release"}


# --- crates -----------------------------------------------------------------------------------------


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


def is_allowed(expression: str | None) -> bool:
    """Whether an SPDX expression leaves a choice of allowed licences; Cargo also writes `/` for OR."""
    words = re.sub(r"/", " OR ", expression or "")
    if inner := re.search(r"\(([^()]*)\)", words):
        first = next((one.strip() for one in inner.group(1).split(" OR ") if is_allowed(one)), "none")
        return is_allowed(words[: inner.start()] + first + words[inner.end() :])
    return any(all(one.strip() in ALLOWED for one in way.split(" AND ")) for way in words.split(" OR "))


def wrong_crates(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """A line for every crate with a licence that is not allowed, and for every version too many or no longer there."""
    rows = list(rows)
    names = [name for name, _, _ in rows]
    twice = {name for name in names if names.count(name) > 1}
    new, gone = sorted(twice - DUPLICATES.keys()), sorted(DUPLICATES.keys() - twice)
    return [
        *(f"{row[0]} {row[1]}: licence {row[2]!r} is not allowed" for row in rows if not is_allowed(row[2])),
        *(f"{name}: in the wheel more than once; use one version, or say in DUPLICATES why not" for name in new),
        *(f"{name}: no longer in the wheel more than once; take it out of DUPLICATES" for name in gone),
    ]


# --- Python packages --------------------------------------------------------------------------------


def packages() -> list[tuple[str, str, str]]:
    """(name, extras that install it, licence) of every package that pyproject.toml names for users."""
    return [(name, ", ".join(f"`{extra}`" for extra in extras), PACKAGES[name]) for name, extras in asked().items()]


def asked() -> dict[str, list[str]]:
    """Package -> extras and plug-in packages that ask for it, none for what is always installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, list[str]] = {_name(text): [] for text in project["dependencies"]}
    for extra, texts in project["optional-dependencies"].items():
        for name in map(_name, texts if extra not in _OURS else ()):
            if name != "linkwright":
                found.setdefault(name, []).append(extra)
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        plugin = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for name in map(_name, plugin["dependencies"]):
            if name != "linkwright":
                found.setdefault(name, []).append(plugin["name"])
    return dict(sorted(found.items()))


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def wrong_packages() -> list[str]:
    """A line for every package without a licence in PACKAGES, or with another one than it says of itself."""
    listed = asked().keys()
    new, gone = sorted(listed - PACKAGES.keys()), sorted(PACKAGES.keys() - listed)
    return [
        *(f"{name}: pyproject.toml asks for it; add its licence to PACKAGES" for name in new),
        *(f"{name}: pyproject.toml no longer asks for it; take it out of PACKAGES" for name in gone),
        *(problem for name, licence in PACKAGES.items() if (problem := disagreement(name, licence))),
    ]


# How packages spell their licence, where it is not the SPDX name: in a field, a classifier, or the text itself.
_SPELT = {
    "BSD-3-Clause": r"BSD",
    "MIT": r"MIT|Permission is hereby granted, free of charge",
    "Apache-2.0": r"Apache",
    "proprietary, NVIDIA": r"NVIDIA",
}


def disagreement(name: str, licence: str) -> str | None:
    """What an installed package says instead; `None` where it agrees or is not installed."""
    try:
        said = _said(metadata.metadata(name), metadata.files(name) or [])
    except metadata.PackageNotFoundError:
        return None
    return None if re.search(_SPELT[licence], said) else f"{name}: PACKAGES says {licence}, the package {said[:80]!r}"


def _said(fields: metadata.PackageMetadata, files: Iterable[metadata.PackagePath]) -> str:
    """Licence of a package in its own words: an expression, a field, a classifier, or else the text."""
    classifiers = [one for one in fields.get_all("Classifier") or () if one.startswith("License")]
    told = " ".join(filter(None, [fields.get("License-Expression"), fields.get("License"), *classifiers]))
    texts = (Path(str(file.locate())) for file in files if file.name.upper().startswith(("LICENSE", "COPYING")))
    return told or next((path.read_text(encoding="utf-8", errors="replace") for path in texts if path.is_file()), "")


def main() -> int:
    """Print what is wrong; the exit status."""
    wrong = wrong_crates(crates()) + wrong_packages()
    print("\n".join(wrong) or f"licences: {len(crates())} crates and {len(PACKAGES)} packages are allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
