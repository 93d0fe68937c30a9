"""Every kernel compiles for real GPUs, and is given what its struct names."""

from __future__ import annotations

import re

import cases
import emulator
import numpy as np
import pytest

from linkwright.base.errors import CudaError
from linkwright.executors.cuda import compiler, native

pytest.importorskip("cuda.bindings.nvrtc", reason="no NVRTC: pip install -e '.[cuda]'")

WALK = ("KNOWN_DTYPE=0", "KNOWN_OP=0")
VARIANTS = [
    *((source, (), "sm_80") for source in compiler.sources() if source not in ("schedule_walk", "grid_reduce")),
    *((source, WALK, "sm_80") for source in ("schedule_walk", "grid_reduce")),
    ("schedule_walk", ("WALK_IN_CLUSTER", *WALK), compiler.CLUSTERS_FROM),
]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(("source", "defines", "least"), VARIANTS)
def test_kernels_compile(source, defines, least, architecture):
    if compiler.number(architecture) < compiler.number(least):
        pytest.skip(f"{source} with {defines} needs {least}")
    made = compiler.compiled(source, architecture, defines, ("--ptxas-options=-v",))
    assert made.cubin.startswith(b"\x7fELF")
    # Memory of a thread lies behind the L1, which every acquire empties.
    assert "bytes stack frame" in made.log
    assert set(re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", made.log)) == {"0"}


def test_all_kernels_are_compiled():
    assert {source for source, _, _ in VARIANTS} == set(compiler.sources())


def test_an_empty_log_is_not_written_over_what_python_shares():
    compiler.compiled.cache_clear()
    compiler.compiled("pair_stream", "sm_90")
    assert [bytes([number])[0] for number in range(256)] == list(range(256))


def test_what_was_compiled_once_is_kept(monkeypatch):
    compile_again = compiler.code.__wrapped__
    first = compile_again("clocks", "sm_90")
    monkeypatch.setattr(compiler, "compiled", None)
    assert compile_again("clocks", "sm_90") == first
    with pytest.raises(TypeError):
        compile_again("clocks", "sm_80")
    with pytest.raises(TypeError):
        compile_again("clocks", "sm_90", ("OTHER",))


def test_of_a_gpu_newer_than_nvrtc_there_is_ptx():
    assert b".target sm_" in compiler.code("clocks", "sm_199")
    with pytest.raises(CudaError, match=r"compiles for sm_\d+ and newer, and this GPU is sm_30"):
        compiler.code("clocks", "sm_30")


def test_what_does_not_compile_says_where(monkeypatch, tmp_path):
    (tmp_path / "broken.cu").write_text("__global__ void broken( {}", encoding="utf-8")
    monkeypatch.setattr(compiler, "KERNELS", tmp_path)
    with pytest.raises(CudaError, match=r"kernel broken\.cu does not compile for sm_90 .*broken\.cu\(1\)"):
        compiler.code("broken", "sm_90")


@pytest.mark.parametrize(
    ("file", "struct", "more"),
    [
        ("schedule_walk.cu", "Walk", {}),
        ("schedule_walk.cu", "Walk", {"cluster": True}),
        ("grid_reduce.cu", "Reduction", {"make": native.job}),
    ],
)
def test_words_are_the_fields_of_the_struct(file, struct, more):
    job = cases.walk_of(cases.build("allreduce/ring", 3, 9), **more)
    (first, _), *own = emulator.fields(file, struct)
    assert first == "run"
    wanted = [*emulator.fields("ranks.cuh", "Ranks"), *own]
    assert [name for name, _ in wanted] == list(job.words)
    for name, pointer in wanted:
        given = job.words[name]
        assert pointer == isinstance(given, np.ndarray) or (name == "linked" and given == 0), name
