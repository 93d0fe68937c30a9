"""Environments of the runtime: with its stand-ins, and the real one."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

import cores
import pytest

from linkwright.base.errors import LinkwrightError
from linkwright.executors.metalium import runtime

HERE = Path(__file__).resolve().parent


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """An environment with the stand-ins, as `make setup-metalium` makes one with the real packages."""
    if cores.compiler() is None:
        pytest.skip("no C++ compiler (g++): no cores on CPU threads")
    folder = tmp_path / "metalium"
    shutil.copytree(HERE / "stand_ins", folder / "site")
    (folder / "site/framework/simulators/wormhole").mkdir(parents=True)
    metadata = folder / "site/ttnn-0.0.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: ttnn\nVersion: 0.0\n", encoding="utf-8")
    executable(folder / "site/ttnn/runtime/sfpi/compiler/bin/riscv-tt-elf-g++", "exit 0")
    path = f"{folder / 'site'}:{HERE}"
    executable(folder / "bin/python", f'PYTHONPATH={path} exec {sys.executable} "$@"')
    monkeypatch.setenv(runtime.ENVIRONMENT, str(folder))
    monkeypatch.delenv("TT_METAL_SIMULATOR", raising=False)
    monkeypatch.chdir(tmp_path)
    runtime.runtime.cache_clear()
    yield folder
    if runtime.runtime.cache_info().currsize:
        runtime.runtime().close()
    runtime.runtime.cache_clear()


def executable(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def device():
    try:
        runtime.runtime.cache_clear()
        found = runtime.runtime()
    except LinkwrightError as error:
        pytest.skip(str(error))
    yield found
    found.close()
    runtime.runtime.cache_clear()
