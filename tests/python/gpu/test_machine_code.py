"""What the times of the probes rest on: what the compiler makes of the kernels, read from PTX and its report."""

from __future__ import annotations

import re

import pytest

from linkwright.executors.cuda import compiler

pytest.importorskip("cuda.bindings.nvrtc", reason="no NVRTC: pip install -e '.[cuda]'")

UNROLLED = 8


def ptx(source: str, *defines: str) -> str:
    return compiler.compiled(source, compiler.CLUSTERS_FROM, defines).ptx


def of_kernel(text: str, kernel: str) -> list[str]:
    """Its instructions, without what separates inline ones."""
    body = text.partition(f".visible .entry {kernel}(")[2].partition("\n}\n")[0]
    return [line.strip() for line in body.splitlines() if line.strip() and not line.strip().startswith("//")]


def longest_chain(lines: list[str], load: str) -> int:
    """So many loads follow each other, each from the address that the one before gave, and nothing in between."""
    longest = length = 0
    value = None
    for line in lines:
        found = re.fullmatch(rf"{re.escape(load)} (%\w+), \[(%\w+)\];", line)
        length = 0 if not found else length + 1 if found[2] == value else 1
        value = found and found[1]
        longest = max(longest, length)
    return longest


@pytest.mark.parametrize(
    ("kernel", "load"),
    [
        ("pointer_chase", "ld.shared.u32"),
        ("pointer_chase", "ld.global.ca.u64"),
        ("pointer_chase", "ld.global.cg.u64"),
        ("pointer_chase_in_cluster", "ld.u64"),
    ],
)
def test_a_chase_is_loads_and_nothing_else(kernel, load):
    assert longest_chain(of_kernel(ptx("pointer_chase"), kernel), load) >= UNROLLED


def test_a_chain_with_arithmetic_in_it_is_seen():
    lines = ["ld.u64 %a, [%b];", "add.s64 %c, %a, %d;", "ld.u64 %e, [%c];"]
    assert longest_chain(lines, "ld.u64") == 1


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        *((name, name) for name in ("atomic_add", "block_barrier", "flag_handover", "memory_stream", "pointer_chase")),
        ("flag_handover", "flag_handover_in_cluster"),
        ("pointer_chase", "pointer_chase_in_cluster"),
        ("pair_stream", "pair_stream"),
    ],
)
def test_the_job_is_read_before_the_clock_is(source, kernel):
    """What an acquire has thrown out of the L1 would be fetched from the L2 in the middle of what is timed."""
    lines = of_kernel(ptx(source), kernel)
    assert any("%clock64" in line for line in lines)
    job = next(line.split()[1] for line in lines if line.startswith("ld.param")).rstrip(",")
    names = {job, *(line.split()[1].rstrip(",") for line in lines if line.startswith("cvta") and job in line)}
    read = re.compile(rf"\[({'|'.join(map(re.escape, names))})(\+\d+)?\]")
    reads = [n for n, line in enumerate(lines) if read.search(line)]
    assert reads[-1] < min(n for n, line in enumerate(lines) if "%clock64" in line or "bar.sync" in line)


def test_a_stream_moves_16_bytes_at_once_and_four_in_flight():
    text = "\n".join(line for line in of_kernel(ptx("memory_stream"), "memory_stream") if re.match(r"(ld|st)\.v", line))
    for width in (2, 4):
        assert re.search(rf"(ld\.v{width}\.u32 .*\n){{4}}(st\.v{width}\.u32 .*\n){{4}}", text)


def test_a_word_in_a_cluster_is_handed_over_without_order():
    lines = of_kernel(ptx("flag_handover"), "flag_handover_in_cluster")
    timed = [n for n, line in enumerate(lines) if "%clock64" in line]
    inner = lines[timed[1] : timed[2]]
    assert any("st.relaxed.cluster" in line for line in inner)
    assert any("ld.relaxed.cluster.shared::cta" in line for line in inner)
    assert not any(re.search(r"acquire|release|fence", line) for line in inner)


@pytest.mark.parametrize("source", ["grid_reduce", "schedule_walk"])
def test_the_loads_of_a_fold_are_in_flight_together(source):
    lines = of_kernel(ptx(source, "KNOWN_DTYPE=5", "KNOWN_OP=0"), source)
    moves = "\n".join(line.split()[0] for line in lines if re.match(r"ld\.v4|(st|fma|bra)|@%p\d+ bra|bar", line))
    assert re.search(r"(ld\.v4\.u32\n){7}", moves)  # the last one may stand apart


def test_bf16_is_summed_in_pairs():
    assert "fma.rn.bf16x2" in ptx("schedule_walk", "KNOWN_DTYPE=5", "KNOWN_OP=0")
    assert "fma.rn.bf16x2" not in ptx("schedule_walk", "KNOWN_DTYPE=5", "KNOWN_OP=1")
