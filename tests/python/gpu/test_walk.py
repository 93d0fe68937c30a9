"""The instruction stream, its walk in Python, and the kernel that walks it, on CPU threads."""

from __future__ import annotations

import dataclasses

import cases
import emulator
import numpy as np
import pytest
from walk import walk

from linkwright import _native
from linkwright.base.errors import WaivedError, WrongResultError
from linkwright.executors.cuda import job
from linkwright.executors.cuda.merge import FOLD, FOLD_ELEMENTS, merged
from linkwright.executors.cuda.stream import CODES


@pytest.fixture(scope="module")
def schedules() -> list[cases.Case]:
    """Whole and ragged chunks, and more ranks than elements."""
    return [*cases.algorithms((5, 72)), *cases.patterns(24)]


def check(case: cases.Case, left: dict) -> None:
    assert job.trouble_of(left["trouble"]) is None, case.name
    case.memory.check(case.stream, left["memory"], f"the kernel, {case.name},")


def test_the_python_walk_agrees_with_reference(schedules):
    assert len(schedules) > 500
    for case in schedules:
        memory = case.memory
        memory.check(case.stream, walk(case.stream, memory.initial, case.dtype, case.op), case.name)


def test_the_kernel_agrees_with_reference_for_every_algorithm(schedules):
    left = emulator.run([cases.walk_of(case) for case in schedules], cases.SMS)
    for case, found in zip(schedules, left, strict=True):
        check(case, found)


@pytest.mark.parametrize("cluster", [False, True])
def test_blocks_of_several_threads_repeat(cluster):
    """Three threads share every copy; data of earlier repetitions stay, so the walk says what must come out."""
    wanted = [cases.build("allreduce/ring", 5, 512), cases.build("allreduce/swing_bandwidth", 4, 130),
              cases.build("alltoall/pairwise", 4, 70), cases.build("barrier/dissemination", 5, 0)]  # fmt: skip
    jobs = [cases.walk_of(case, repetitions=3, threads=3, cluster=cluster) for case in wanted]
    for case, left in zip(wanted, emulator.run(jobs, cases.SMS), strict=True):
        assert job.trouble_of(left["trouble"]) is None, case.name
        assert np.array_equal(left["memory"], walk(case.stream, case.memory.initial, case.dtype, case.op, epochs=3))


@pytest.mark.parametrize(("dtype", "op"), cases.TYPES)
def test_every_type_and_operator_wide_and_narrow(dtype, op):
    wanted = [cases.build("reduce/binomial", 3, elements, dtype, op) for elements in (1, 33, 256)]
    for case, left in zip(wanted, emulator.run([cases.walk_of(c) for c in wanted], cases.SMS), strict=True):
        check(case, left)


def test_a_program_too_long_for_shared_memory_is_linked_in_global_memory():
    case = cases.build("alltoall/pairwise", 9, 90)
    small = cases.walk_of(case, placement=cases.placement(9, most_shared_bytes=400))
    assert isinstance(small.words["linked"], np.ndarray)
    assert not isinstance(cases.walk_of(case).words["linked"], np.ndarray)
    check(case, emulator.run([small], cases.SMS)[0])


@pytest.mark.parametrize("ranks", [3, 6])
def test_combinations_into_one_place_are_one_instruction(ranks):
    """More threads than packs, so that groups of them share the vectors; and fewer."""
    wanted = [cases.build("allreduce/shared_memory", ranks, ranks * n, "f32", op) for n in (4, 40) for op in job.OPS]
    for case in wanted:
        short = merged(case.stream).instructions
        assert (short[:, 0] == FOLD).sum() == ranks
        assert len(short) == len(case.stream.instructions) - ranks * (ranks - 2)
    jobs = [cases.walk_of(case, threads=threads) for case in wanted for threads in (1, 3, 8)]
    left = emulator.run(jobs, cases.SMS)
    for case, found in zip(wanted, (left[i : i + 3] for i in range(0, len(left), 3)), strict=True):
        for each in found:
            check(case, each)
    emulator.run(jobs[1:3], cases.SMS, *emulator.TSAN, environment=emulator.TSAN_ENDS)


def test_what_flags_separate_is_not_folded():
    codes = merged(cases.build("allreduce/ring", 4, 64).stream).instructions[:, 0]
    assert not np.isin(codes, (FOLD, FOLD_ELEMENTS)).any()


def test_what_is_not_whole_packs_is_folded_by_elements():
    """Chunks of 5 elements of 4 bytes; of 8 they are two packs."""
    codes = merged(cases.build("allreduce/shared_memory", 4, 20).stream).instructions[:, 0]
    assert (codes == FOLD_ELEMENTS).any()
    assert not (codes == FOLD).any()
    codes = merged(cases.build("allreduce/shared_memory", 4, 32).stream).instructions[:, 0]
    assert (codes == FOLD).any()
    assert not (codes == FOLD_ELEMENTS).any()


def test_instructions_of_empty_chunks_are_left_out():
    """Two elements on 64 ranks: fold, arrive, copy, and what ends a rank."""
    assert np.diff(merged(cases.build("allreduce/all_pairs", 64, 2).stream).rank_first).max() <= 5


def test_reading_from_all_others_is_one_instruction():
    """Two exchanges: fold, arrive, copy."""
    wanted = [cases.build("allreduce/all_pairs", 6, n, dtype) for n in (96, 71, 600) for dtype in ("f32", "bf16")]
    assert np.diff(merged(wanted[0].stream).rank_first).max() <= 4
    for threads in (1, 3, 16):
        jobs = [cases.walk_of(case, threads=threads) for case in wanted]
        for case, left in zip(wanted, emulator.run(jobs, cases.SMS), strict=True):
            check(case, left)


def test_copies_that_overlap_stay_apart():
    case = cases.build("allgather/linear", 4, 16)
    code = CODES["copy"]
    instructions = np.array([[code, 0, 1, 0], [code, 0, 2, 0], [code, 0, 3, 0]])
    for second, left in ((8, 1), (4, 3)):
        pieces = np.array([[1, 0, 0, 0, 8], [2, 0, 0, second, 8], [3, 0, 0, 16, 8]])
        made = dataclasses.replace(case.stream, rank_first=np.array([0, 3]), instructions=instructions, pieces=pieces)
        assert len(merged(made).instructions) == left


def test_ranks_run_on_the_sms_that_the_host_gave_them():
    case = cases.build("allreduce/ring", 6, 60)
    left = emulator.run([cases.walk_of(case)], cases.SMS)[0]
    wanted = [int(np.flatnonzero(cases.placement(6).rank_of_sm == rank)[0]) for rank in range(6)]
    assert (left["sm_of_rank"] - 1).tolist() == wanted


def test_times_are_in_order_and_delays_are_kept():
    delays = np.array([[0, 3e6, 0], [0, 0, 5e6]])
    case = cases.build("allreduce/ring", 3, 30)
    left = emulator.run([cases.walk_of(case, delays=delays)], cases.SMS)[0]
    start_cycles, finish_cycles, start_ns, finish_ns = (left["times"][..., i].astype(float) for i in range(4))
    assert (finish_cycles >= start_cycles).all()
    assert (finish_ns >= start_ns).all()
    late = start_ns - start_ns.min(axis=1, keepdims=True)
    assert late[0, 1] > 2.5e6
    assert late[1, 2] > 4.5e6


def test_a_raise_that_never_comes_ends_the_kernel_and_names_the_wait():
    case = cases.build("allreduce/ring", 4, 64)
    instructions = case.stream.instructions.copy()
    instructions[:, 3] = 0
    silent = dataclasses.replace(case.stream, instructions=instructions, raises=case.stream.raises[:0])
    left = emulator.run([cases.walk_of(case, stream=silent, patience_ns=10**8)], cases.SMS)[0]
    assert "waited too long for the counter" in job.trouble_of(left["trouble"])
    with pytest.raises(WrongResultError, match="no rank can proceed; rank 0 waits for counter"):
        walk(silent, case.memory.initial, "f32", "sum")


def test_two_blocks_on_one_sm_are_refused():
    case = cases.build("allreduce/ring", 4, 64)
    crowded = dataclasses.replace(cases.placement(4), blocks=cases.SMS + 1)
    left = emulator.run([cases.walk_of(case, placement=crowded, patience_ns=10**8)], cases.SMS)[0]
    assert "two blocks share an SM" in job.trouble_of(left["trouble"]) or (left["sm_of_rank"] == 0).any()


def test_a_wrong_byte_is_an_error_that_names_the_place():
    case = cases.build("allreduce/ring", 2, 64)
    spoiled = case.memory.reference.copy()
    spoiled[int(case.stream.participant_first[1]) + 3] ^= 1
    with pytest.raises(WrongResultError, match="rank 1: byte 3 of output is wrong, and 1 bytes in all, after cuda"):
        case.memory.check(case.stream, spoiled, "cuda")


def test_what_does_not_fit_into_a_cluster_is_waived():
    case = cases.build("allreduce/ring", 2, 30_000)
    with pytest.raises(WaivedError, match="a rank holds 1"):
        cases.walk_of(case, cluster=True)


def test_thread_sanitizer_finds_no_race_in_any_algorithm():
    """Flags are all that orders the copies of different ranks; here it is proved for what ran."""
    keys = [algorithm["key"] for algorithm in _native.algorithms()]
    jobs = [cases.walk_of(case) for key in keys for case in cases.buildable(key, (4, 6), 72)]
    assert len(jobs) > 50
    emulator.run(jobs, cases.SMS, *emulator.TSAN, environment=emulator.TSAN_ENDS)


@pytest.mark.parametrize(("threads", "cluster"), [(3, False), (1, True), (3, True)])
def test_thread_sanitizer_finds_no_race_within_blocks_and_between_repetitions(threads, cluster):
    wanted = [cases.build(f"allreduce/{name}", 4, 72) for name in ("ring", "swing_latency", "swing_bandwidth")]
    wanted += [cases.build("broadcast/binomial", 5, 40), cases.build("alltoall/pairwise", 4, 40)]
    jobs = [cases.walk_of(case, repetitions=2, threads=threads, cluster=cluster) for case in wanted]
    emulator.run(jobs, cases.SMS, *emulator.TSAN, environment=emulator.TSAN_ENDS)


def test_thread_sanitizer_finds_the_race_where_nobody_waits():
    case = cases.build("allreduce/ring", 4, 72)
    instructions = case.stream.instructions.copy()
    instructions[:, 1] = 0
    careless = dataclasses.replace(case.stream, instructions=instructions, waits=case.stream.waits[:0])
    with pytest.raises(AssertionError, match="status 66"):
        emulator.run([cases.walk_of(case, stream=careless)], cases.SMS, *emulator.TSAN, environment=emulator.TSAN_ENDS)


def test_codes_are_those_of_the_kernel():
    text = (emulator.KERNELS / "schedule_walk.cu").read_text(encoding="utf-8")
    names = text.partition("enum Code : u32 {")[2].partition("}")[0]
    assert {name.strip().lower(): number for number, name in enumerate(names.split(","))} == {
        **CODES,
        "fold": FOLD,
        "fold_elements": FOLD_ELEMENTS,
    }
