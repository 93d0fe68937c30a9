"""Dumps of jobs that hang: what the readers state, and which rank the answer names."""

import gzip
import json
import os
import pickle
import pickletools
from pathlib import Path

import pytest

import hang_cases as cases
import mutants
from linkwright import schemas
from linkwright.advise.explain import hang
from linkwright.advise.explain.hang.findings import Behind, Busy, Cycle, Inside, Left, Mismatch, NoDump
from linkwright.advise.explain.hang.job import compact
from linkwright.base.errors import FileError, UsageError
from linkwright.formats.hangs import dumps_among, is_dump, read_dump, read_dumps, read_source
from linkwright.formats.hangs.unpickled import unpickled
from linkwright.formats.logs import Source
from linkwright.show.explanations.hang import of_hang
from linkwright_cases import invoke
from test_fuzz import judged, seeds

RAS = Path(__file__).parent.parent / "hangs/nccl-ras.txt"


def answer(folder):
    return hang.explain([read_dump(path) for path in dumps_among([str(folder)])[0]])


def of_text(text, name="log.txt"):
    return hang.explain([read_source(Source(Path(name), text))])


def said(found):
    return " ".join(" ".join(of_hang(found)).split())


# --- NCCL RAS ---


def test_ras_names_the_rank_that_has_not_come():
    result = invoke("explain", str(RAS))
    assert result.status == 0, result.err
    text = " ".join(result.out.split())
    assert "Rank 12 (GPU 4 of n2, process 1000) has not entered allreduce 641" in text
    assert "The other 31 wait for it." in text
    assert "Query again" in text


def test_the_answer_is_a_gate_and_a_document():
    result = invoke("explain", str(RAS), "--json", "--gate")
    assert result.status == 1
    found = json.loads(result.out)
    assert (found["format"], found["passes"], found["findings"][0]["kind"]) == (1, False, "behind")


def test_two_queries_of_ras_tell_whether_the_job_moves(tmp_path):
    later = cases.ALONE.replace("641", "643").replace("640", "642")
    for second, says in ((cases.ALONE, "the job hangs"), (later, "the job is running")):
        for name, text in (("1.txt", cases.ALONE), ("2.txt", second)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        found = answer(tmp_path)
        assert len(found.findings) == 1
        assert says in said(found)


def test_ras_states_a_rank_that_stands_alone_in_one_line():
    found = of_text(cases.KINDS["ras"][1])
    (behind,) = found.findings
    assert behind.members[0].rank == 12
    assert behind.waiting == (*range(12), *range(13, 32))


def test_ras_of_224_counts_all_operations_together():
    text = "#0-0 (27a0) MISMATCH\n  Communicator ranks have different collective operation counts\n" + (
        "  30 ranks have launched up to operation 6650\n  2 ranks have launched up to operation 6649\n"
        "  Rank 0 -- GPU 0 managed by process 5 on node n0\n"
        "  Rank 2 -- GPU 2 (NVML 3) managed by process 7 on node n0\n"
    )
    (behind,) = of_text(cases.ras(text)).findings
    assert [(one.rank, one.gpu) for one in behind.members] == [(0, "0"), (2, "2 (NVML 3)")]
    assert behind.place.operation == "operation"


def test_ras_without_a_list_says_so():
    text = "#0-0 (27a0) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n" + (
        "  17 ranks have launched up to operation 10\n  15 ranks have launched up to operation 9\n"
    )
    found = of_text(cases.ras(text))
    assert found.findings[0].members == ()
    assert "15 ranks have not entered allreduce 10" in said(found)
    assert "ncclras -v" in said(found)


def test_ras_names_a_dead_rank_with_its_process():
    found = of_text(cases.RAS_DEAD)
    (absent,) = found.findings
    assert absent.condition.status == "dead"
    assert "Rank 21 (GPU 5 of 10.0.0.3, process 3487)" in said(found)
    assert "dead" in said(found)


def test_ras_reports_errors_and_states():
    errors = (
        "#0-0 (1a) ERROR\n  Asynchronous error on 1 rank\n  Rank 3 reported Remote process error -- GPU 3 managed by "
    )
    errors += "process 9 on node n1\n\n"
    warnings = "#0-0 (1a) MISMATCH\n  Communicator ranks have different status\n  30 ranks have status RUNNING\n" + (
        "  2 ranks have status FINALIZE\n  Rank 4 -- GPU 4 managed by process 1 on node n0\n"
        "  Rank 20 -- GPU 4 managed by process 2 on node n2\n"
    )
    found = of_text(cases.ras(warnings, errors))
    assert [one.condition.status for one in found.findings] == ["error", "finalize"]
    assert "Rank 3 (GPU 3 of n1, process 9) of communicator #0-0 (1a) reports Remote process error" in said(found)
    assert "30 running" in said(found)


def test_ras_of_a_healthy_job_finds_nothing():
    rows = "    0         8         4         1         4        32   RUNNING      OK\n"
    found = of_text(cases.ras(rows=rows))
    assert found.findings == ()
    assert "No rank is behind" in said(found)
    assert not found.complaints


def test_ras_that_is_cut_does_not_pass_for_healthy():
    found = of_text(cases.ras())
    assert "the output is cut" in found.complaints[0][2]
    assert "not all of the input was understood" in said(found)


def test_ras_names_a_communicator_that_is_being_made():
    rows = "    0         1         4         8        32        32      INIT      OK\n"
    assert "32 ranks of a communicator of group 0 (INIT) are still initializing" in said(of_text(cases.ras(rows=rows)))


@pytest.mark.parametrize("key", ["collective_counts", "ranks_count", "communicators_count", "missing_ranks", "rank"])
def test_ras_json_with_another_key_is_not_taken_for_healthy(key):
    text = cases.ras_json([{0: {"AllReduce": 5}, 1: {"AllReduce": 5}}]).replace(f'"{key}"', f'"{key}x"', 1)
    found = of_text(text, "ras.json")
    assert found.complaints
    assert "No rank is behind" not in said(found)


def test_ras_names_lines_that_it_does_not_know():
    found = of_text(cases.ras("#0-0 (1a) MISMATCH\n  Ranks 1 and 2 are green\n"))
    assert "Ranks 1 and 2 are green" in found.complaints[0][2]


def test_ras_says_when_a_list_is_cut():
    text = "#0-0 (27a0) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n" + (
        "  30 ranks have launched up to operation 7\n  2 ranks have launched up to operation 6\n"
        "  Rank 0 -- GPU 0 managed by process 5 on node n0\n"
    )
    assert "says 2 ranks or processes and lists 1" in of_text(cases.ras(text)).complaints[0][2]


def test_ras_json_names_the_rank_and_missing_ones():
    counts = [{0: {"AllReduce": 5}, 1: {"AllReduce": 4}, 2: {"AllReduce": 5}}]
    found = of_text(cases.ras_json(counts, [(3, True)]), "ras.json")
    absent, behind = found.findings
    assert absent.condition.members[0].rank == 3
    assert absent.condition.status == "dead"
    assert (behind.members[0].rank, behind.place.sequence, behind.waiting) == (1, 5, (0, 2))


def test_ras_json_sees_other_orders():
    counts = [
        {0: {"AllReduce": 5, "AllGather": 2}, 1: {"AllReduce": 4, "AllGather": 3}, 2: {"AllReduce": 5, "AllGather": 2}}
    ]
    (found,) = of_text(cases.ras_json(counts), "ras.json").findings
    assert isinstance(found, Mismatch)
    assert [ranks for _, ranks in found.values] == [(0, 2), (1,)]


def test_ras_json_sees_communicators_that_wait_for_one_another():
    world = {rank: {} for rank in range(2)}
    one = {0: {"AllReduce": 5}, 1: {"AllReduce": 4}}
    two = {0: {"AllGather": 8}, 1: {"AllGather": 9}}
    (found,) = of_text(cases.ras_json([world, one, two]), "ras.json").findings
    assert isinstance(found, Cycle)
    assert {wait.rank for wait in found.waits} == {0, 1}
    assert not found.certain


# --- the flight recorder ---


@pytest.mark.parametrize("as_json", [False, True])
def test_the_recorder_names_the_rank_that_has_not_come(tmp_path, as_json):
    found = answer(cases.write(tmp_path, cases.behind(), as_json))
    (behind,) = found.findings
    assert isinstance(behind, Behind)
    assert ([one.rank for one in behind.members], behind.launched, behind.waiting) == ([2], 6, (0, 1, 3))
    assert "Rank 2 has not entered allreduce 7 of group 0 (default_pg)" in said(found)
    assert "ranks 0-1, 3 in allreduce 7 of group 0 (default_pg): rank 2, in no operation" in said(found)


def test_a_folder_and_files_are_explained_alike(tmp_path):
    cases.write(tmp_path, cases.behind())
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    whole = invoke("explain", str(tmp_path))
    assert whole.status == 0, whole.err
    assert "not dumps, left out: notes.txt" in whole.out
    files = invoke("explain", *(str(tmp_path / f"nccl_trace_rank_{rank}") for rank in range(4)))
    assert files.out.partition("\n\n")[2] == whole.out.partition("\n\n")[2]


@pytest.mark.parametrize("as_json", [False, True])
def test_dumps_may_be_compressed(tmp_path, as_json):
    cases.write(tmp_path, cases.behind(), as_json)
    for file in list(tmp_path.iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    (behind,) = answer(tmp_path).findings
    assert [one.rank for one in behind.members] == [2]


def test_a_missing_dump_is_asked_for(tmp_path):
    dumps = cases.behind()
    del dumps[2]
    (found,) = answer(cases.write(tmp_path, dumps)).findings
    assert isinstance(found, NoDump)
    assert found.ranks == (2,)


def test_a_rank_that_is_behind_is_named_though_a_dump_is_missing(tmp_path):
    dumps = cases.behind()
    del dumps[3]
    (found,) = answer(cases.write(tmp_path, dumps)).findings
    assert isinstance(found, Behind)
    assert [one.rank for one in found.members] == [2]


@pytest.mark.parametrize(
    ("change", "what", "values"),
    [
        ({"sizes": (512,)}, "elements", ["1,024 elements", "512 elements"]),
        ({"dtype": "BFloat16"}, "dtype", ["Float", "BFloat16"]),
        ({"name": "broadcast"}, "operation", ["allreduce", "broadcast"]),
    ],
)
def test_calls_that_differ_are_shown_with_their_ranks(tmp_path, change, what, values):
    dumps = {
        rank: cases.dump([cases.entry(1), cases.entry(2, state="started", **(change if rank == 3 else {}))])
        for rank in range(4)
    }
    found = answer(cases.write(tmp_path, dumps))
    (mismatch,) = found.findings
    assert (mismatch.what, mismatch.place.sequence) == (what, 2)
    assert mismatch.values == ((values[0], (0, 1, 2)), (values[1], (3,)))


def test_sizes_that_may_differ_are_no_fault(tmp_path):
    """Parts of a list of tensors, and those of an alltoall."""
    for name in ("all_gather", "all_to_all", "gather"):
        dumps = {
            rank: cases.dump([cases.entry(1, name, sizes=(10 + rank,), out=(46,), state="started")])
            for rank in range(4)
        }
        if name == "all_to_all":
            for rank, its in dumps.items():
                its["entries"][0]["output_sizes"] = [[13 - rank]]
        (found,) = answer(cases.write(tmp_path, dumps)).findings
        assert isinstance(found, Inside), name


def test_an_alltoall_that_sends_more_than_it_receives(tmp_path):
    dumps = {
        rank: cases.dump([cases.entry(1, "all_to_all", sizes=(10,), out=(9,), state="started")]) for rank in range(4)
    }
    (found,) = answer(cases.write(tmp_path, dumps)).findings
    assert "40 elements sent and 36 received" in found.values[0][0]


def test_the_first_difference_counts(tmp_path):
    """A rank that leaves out a call differs from there on."""
    good = [cases.entry(1), cases.entry(2, "broadcast"), cases.entry(3, state="started")]
    short = [cases.entry(1), cases.entry(2, state="started")]
    dumps = {rank: cases.dump(list(map(dict, short if rank == 1 else good))) for rank in range(4)}
    (found,) = answer(cases.write(tmp_path, dumps)).findings
    assert (found.place.sequence, found.what) == (2, "operation")


def test_two_groups_wait_for_one_another(tmp_path):
    found = answer(cases.write(tmp_path, cases.cycle()))
    (cycle,) = found.findings
    assert cycle.certain
    assert [(wait.rank, wait.place.operation, wait.on) for wait in cycle.waits] == [
        (0, "allreduce", 1), (1, "allgather", 0),
    ]  # fmt: skip
    assert "Ranks 0, 1 wait for one another in a cycle" in said(found)


def test_without_timing_a_cycle_is_only_probable(tmp_path):
    dumps = cases.cycle()
    for its in dumps.values():
        for one in its["entries"]:
            one |= {"state": "scheduled", "time_discovered_started_ns": None}
    (cycle,) = answer(cases.write(tmp_path, dumps)).findings
    assert not cycle.certain


def test_waits_are_followed_to_the_rank_that_waits_for_nobody(tmp_path):
    """Rank 0 waits for 1 in one group, and 1 for 2 in another; 2 is not in any call."""
    one, two = ("1", "dp"), ("2", "tp")
    groups = {one: [0, 1], two: [1, 2]}
    dumps = {
        0: cases.dump([cases.entry(1, group=one, state="started")], {one: [0, 1]}),
        1: cases.dump(
            [cases.entry(1, group=two, state="started"), cases.entry(1, group=one, state="scheduled")], groups
        ),
        2: cases.dump([], {two: [1, 2]}),
    }
    found = answer(cases.write(tmp_path, dumps))
    (behind,) = found.findings
    assert ([one.rank for one in behind.members], behind.place.group) == ([2], "group 2 (tp)")
    assert "rank 0 in allreduce 1 of group 1 (dp): rank 1, now in allreduce 1 of group 2 (tp)" in said(found)


def test_a_rank_that_several_groups_wait_for_is_named_once(tmp_path):
    """Four ranks in pairs both ways: rank 3 comes to neither of its groups."""
    pairs = {("1", "tp"): [0, 1], ("2", "tp"): [2, 3], ("3", "dp"): [0, 2], ("4", "dp"): [1, 3]}
    dumps = {}
    for rank in range(4):
        groups = {name: its for name, its in pairs.items() if rank in its}
        tp, dp = groups
        late = {1: [(tp, "completed"), (dp, "started")], 2: [(tp, "started")], 0: [(tp, "completed"), (dp, "started")]}
        dumps[rank] = cases.dump([cases.entry(1, group=one, state=state) for one, state in late.get(rank, [])], groups)
    found = answer(cases.write(tmp_path, dumps))
    (behind,) = found.findings
    assert [one.rank for one in behind.members] == [3]
    assert {behind.place.group, behind.also[0].group} == {"group 2 (tp)", "group 4 (dp)"}
    assert behind.waiting == (1, 2)
    assert ", nor allreduce 1 of group" in said(found)


def test_groups_of_one_name_with_other_ranks_are_two(tmp_path):
    dumps = {
        rank: cases.dump([cases.entry(1, state="started")], {cases.GROUP: [0, 1] if rank < 2 else [2, 3]})
        for rank in range(4)
    }
    del dumps[3]
    inside, missing = answer(cases.write(tmp_path, dumps)).findings
    assert isinstance(inside, Inside)
    assert inside.ranks == (0, 1)
    assert isinstance(missing, NoDump)
    assert missing.ranks == (3,)


def test_all_ranks_inside_is_no_fault_of_the_program(tmp_path):
    dumps = {rank: cases.dump([cases.entry(1, state="started")]) for rank in range(4)}
    found = answer(cases.write(tmp_path, dumps))
    assert isinstance(found.findings[0], Inside)
    assert "All 4 ranks have entered allreduce 1" in said(found)


def test_a_kernel_that_has_not_begun_is_seen(tmp_path):
    dumps = {
        rank: cases.dump([cases.entry(1), cases.entry(2, state="scheduled" if rank == 1 else "started")])
        for rank in range(4)
    }
    (found,) = answer(cases.write(tmp_path, dumps)).findings
    assert isinstance(found, Busy)
    assert [one.rank for one in found.members] == [1]


def test_a_rank_in_a_call_that_others_completed(tmp_path):
    dumps = {rank: cases.dump([cases.entry(1, state="started" if rank == 1 else "completed")]) for rank in range(4)}
    (found,) = answer(cases.write(tmp_path, dumps)).findings
    assert isinstance(found, Left)
    assert found.passed == (0, 2, 3)


def test_a_receive_without_its_send(tmp_path):
    dumps = {0: cases.dump([cases.entry(1, "recv 0<-1", p2p=True, state="started")]), 1: cases.dump([cases.entry(1)])}
    (found,) = answer(cases.write(tmp_path, dumps)).findings
    assert isinstance(found, Behind)
    assert [one.rank for one in found.members] == [1]
    assert found.place.operation == "recv with rank 1"


def test_sends_that_wait_for_one_another(tmp_path):
    dumps = {
        rank: cases.dump([cases.entry(1, f"send {rank}->{1 - rank}", p2p=True, state="started")], {cases.GROUP: [0, 1]})
        for rank in range(2)
    }
    found = answer(cases.write(tmp_path, dumps))
    assert isinstance(found.findings[0], Cycle)
    assert "Pair each send with a receive" in said(found)


def test_a_batch_of_sends_and_receives_has_the_state_of_the_batch(tmp_path):
    """PyTorch never completes the entries within a batch."""
    for state, findings in (("completed", 0), ("started", 1)):
        dumps = {
            rank: cases.dump(
                [
                    cases.entry(1, f"send {rank}->{1 - rank}", p2p=True, state="scheduled"),
                    cases.entry(1, f"recv {rank}<-{1 - rank}", p2p=True, state="scheduled"),
                    cases.entry(1, "coalesced", p2p=True, state=state),
                ],
                {cases.GROUP: [0, 1]},
            )
            for rank in range(2)
        }
        found = answer(cases.write(tmp_path, dumps)).findings
        assert [type(one) for one in found] == [Inside] * findings


def test_a_finished_job_does_not_hang(tmp_path):
    found = answer(cases.write(tmp_path, {rank: cases.dump([cases.entry(1)]) for rank in range(4)}))
    assert found.findings == ()
    assert "Nothing hangs here" in said(found)


def test_a_ring_that_lost_its_beginning_does_not_prove_that_a_rank_is_behind(tmp_path):
    other = ("1", "tp")
    groups = {cases.GROUP: [0, 1], other: [0, 1]}
    dumps = {
        0: cases.dump([cases.entry(7, state="started")], groups),
        1: cases.dump([cases.entry(9, group=other)], groups),
    }
    dumps[1]["entries"][0]["record_id"] = 4000
    found = answer(cases.write(tmp_path, dumps)).findings
    assert [type(one) for one in found] == [NoDump]


def test_a_ring_that_lost_its_beginning_does_not_prove_that_a_rank_went_on(tmp_path):
    """Rank 1 enqueues far ahead: its call 640 may be open, too, and is no longer in the ring."""
    full = {
        0: cases.dump([cases.entry(640, state="started")], {cases.GROUP: [0, 1]}),
        1: cases.dump(
            [cases.entry(700, state="scheduled"), cases.entry(701, state="scheduled")], {cases.GROUP: [0, 1]}
        ),
    }
    for place, one in enumerate(full[1]["entries"]):
        one["record_id"] = 4000 + place
    found = answer(cases.write(tmp_path, full)).findings
    assert [type(one) for one in found if one.place.sequence == 640] == [NoDump], found


def test_a_stated_rank_precedes_the_name_of_the_file(tmp_path):
    for rank in range(2):
        its = cases.dump([cases.entry(1)], {cases.GROUP: [0, 1]}, rank=rank)
        (tmp_path / f"trace.2025-11-2{rank + 7}.json").write_text(json.dumps(its))
    assert answer(tmp_path).ranks == (0, 1)


def test_a_dump_of_active_calls_does_not_prove_that_a_rank_is_behind(tmp_path):
    dumps = cases.behind()
    dumps[2] = cases.dump([], pg_status={"0": {"last_enqueued_collective": 7, "last_completed_collective": 7}})
    found = answer(cases.write(tmp_path, dumps))
    (missing,) = found.findings
    assert missing.given == (2,)
    assert "In the dump of rank 2 older calls" in said(found)


def test_two_dumps_of_one_rank_are_refused(tmp_path):
    cases.write(tmp_path, cases.behind())
    cases.write(tmp_path, cases.behind(), as_json=True)
    with pytest.raises(UsageError, match="both of rank 0"):
        answer(tmp_path)


def test_a_dump_whose_rank_nothing_says_is_refused(tmp_path):
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(cases.behind()[0]), encoding="utf-8")
    with pytest.raises(FileError, match="which rank"):
        read_dump(file)


def test_the_answer_is_a_document(tmp_path):
    document = answer(cases.write(tmp_path, cases.cycle())).document()
    assert json.loads(json.dumps(document))["findings"][0]["kind"] == "cycle"


# --- pickles ---


class Evil:
    def __reduce__(self):
        return (os.system, ("touch /tmp/never",))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_that_calls_is_refused(protocol):
    with pytest.raises(FileError, match="nothing else is read"):
        unpickled(pickle.dumps({"entries": [Evil()]}, protocol=protocol), "x")


@pytest.mark.parametrize("value", [{1}, frozenset([1]), b"x", bytearray(b"x"), Path("x"), 1j, range(3), 2**80])
@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_of_anything_else_is_refused(value, protocol):
    with pytest.raises(FileError):
        unpickled(pickle.dumps([value], protocol=protocol), "x")


@pytest.mark.parametrize("protocol", range(2, 6))
def test_plain_pickles_are_read(protocol):
    value = {
        "a": [1, -1, 300, 70000, 2**40, -(2**62), 2.5, True, False, None, "é" * 300],
        3: ((), (1,), (1, 2, 3, 4), [[]]),
    }
    value["b"] = value["a"]
    assert unpickled(pickle.dumps(value, protocol=protocol), "x") == value


def test_every_instruction_is_known_or_refused():
    """All that pickletools knows, with nothing to work on: an error of ours."""
    for code in pickletools.opcodes:
        for tail in (b"", b"\x00" * 9, b"\xff" * 9):
            with pytest.raises(FileError):
                unpickled(b"\x80\x02" + code.code.encode("latin-1") + tail, "x")


# --- the watchdog ---


def test_the_watchdog_names_the_rank_that_has_not_come():
    log = "step 12\n" + cases.watchdog(0) + cases.watchdog(1) + cases.signalled(2) + cases.watchdog(3)
    found = of_text(log)
    (behind,) = found.findings
    assert ([one.rank for one in behind.members], behind.launched, behind.waiting) == ([2], 640, (0, 1, 3))


def test_the_watchdog_shows_sizes_that_differ():
    (found,) = of_text(cases.watchdog(0) + cases.watchdog(1, numel=7)).findings
    assert found.values == (("1,024 elements", (0,)), ("7 elements", (1,)))


def test_the_watchdog_keeps_groups_apart():
    found = of_text(cases.watchdog(0, 5) + cases.watchdog(1, 5, "BROADCAST", group="3(tp)")).findings
    assert [type(one) for one in found] == [Inside, Inside]
    assert not found[0].complete


def test_the_watchdog_asks_for_ranks_that_print_nothing():
    found = of_text(cases.watchdog(0) + cases.watchdog(3))
    assert found.unseen == (1, 2)
    assert "nothing in these files is from ranks 1-2" in said(found)
    assert "do not tell whether the group has other ranks" in said(found)


def test_the_report_of_desync_debug_is_read():
    log = cases.watchdog(0) + (
        "\t   - [0] joined but didn't finish collective #641 (count from 1)\n"
        "\t     [1, 2] finished collective #640, but didn't join collective #641 (count from 1)\n"
    )
    (behind,) = of_text(log).findings
    assert [one.rank for one in behind.members] == [1, 2]


def test_old_logs_without_groups_are_hedged():
    line = "[rank{0}]:[E ProcessGroupNCCL.cpp:523] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL("
    line += "SeqNum=16349, OpType={1}, NumelIn=1, NumelOut=2, Timeout(ms)=600000) ran for 600341 milliseconds\n"
    found = of_text(line.format(0, "ALLGATHER") + line.format(1, "ALLREDUCE"))
    assert "does not name groups" in said(found)


def test_errors_of_ranks_are_one_finding():
    line = "[rank{0}]:[E ProcessGroupNCCL.cpp:1]  [PG ID 0 PG GUID 0(default_pg) Rank {0}] Watchdog: NCCL error: {1}\n"
    log = "".join(line.format(rank, "remote process exited or there was a network error") for rank in range(3))
    first, *_ = of_text(log + cases.watchdog(3)).findings
    assert [one.rank for one in first.condition.members] == [0, 1, 2]
    assert first.condition.text == "NCCL error: remote process exited or there was a network error"


@pytest.mark.parametrize(
    ("prefix", "name"),
    [("PG 1 ", "group 1"), ("PG 0 (default_pg) ", "group 0 (default_pg)"), ("PG ID 2 PG GUID 3(tp) ", "group 3 (tp)"),
     ("PG ID 2 PG GUID 3 ", "group 3")],
)  # fmt: skip
def test_groups_of_all_versions_are_known(prefix, name):
    line = (
        f"[rank2]:[E ProcessGroupNCCL.cpp:1537] [{prefix}Rank 1] Timeout at NCCL work: 5, last enqueued NCCL work: 6, "
    )
    line += "last completed NCCL work: 4.\n[rank2]: [Rank 1] x WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1)\n"
    dump = read_source(Source(Path("log"), line))
    assert [group.name for group in dump.groups] == [name]
    assert [(one.ranks, one.launched, one.completed) for one in dump.progress] == [((2,), 6, 4)]


def test_numbers_that_nobody_wrote_are_passed_over():
    line = (
        "[rank2]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 2] Timeout at NCCL work: 1, last enqueued NCCL work: 1, last "
    )
    line += "completed NCCL work: 76280750235782912.\n"
    dump = read_source(Source(Path("log"), cases.watchdog(2, 1) + line))
    assert all(one.launched <= 1 for one in dump.progress)


def test_a_time_out_without_a_rank_is_refused():
    """As people quote it in their own words."""
    with pytest.raises(FileError, match="no rank that has it; give its unedited lines"):
        of_text("04:34:46 WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1) TIMEOUT\n")


def test_one_file_may_hold_ras_and_the_watchdog(tmp_path):
    """RAS saw a healthy job before one of its ranks timed out; fences are of a post."""
    rows = "    0         1         4         8        32        32   RUNNING      OK\n"
    file = tmp_path / "post.txt"
    file.write_text(f"```\n{cases.ras(rows=rows)}\n{cases.watchdog(3)}```\n", encoding="utf-8")
    found = hang.explain(read_dumps(file))
    assert (found.tools, len(found.paths), found.complaints) == (("NCCL RAS", "PyTorch watchdog"), 1, ())
    assert "Rank 3 has entered allreduce" in said(found)
    assert [dump.tool for dump in read_dumps(RAS)] == ["NCCL RAS"]


def test_other_files_are_no_dumps(tmp_path):
    from log_cases import KINDS

    for name, text in KINDS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert not is_dump(tmp_path / name), name


def test_a_dump_takes_no_options_of_a_log():
    result = invoke("explain", str(RAS), "--on", "hgx-h100")
    assert result.status == 2
    assert "--on does not apply to a dump of a job that hangs" in result.err


def test_several_logs_are_refused(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("x", encoding="utf-8")
    result = invoke("explain", str(tmp_path / "a"), str(tmp_path / "b"))
    assert result.status == 2
    assert "is neither a log nor a dump of a rank" in result.err


def test_no_file_is_left_out_in_silence(tmp_path):
    for names in ((RAS, tmp_path / "missing"), (tmp_path / "missing", RAS)):
        result = invoke("explain", *map(str, names))
        assert result.status == 2
        assert "missing: there is no such file" in result.err


def test_ranks_are_written_as_people_do():
    assert compact([3, 1, 2, 7, 9, 10]) == "1-3, 7, 9-10"


def test_a_large_job_is_answered(tmp_path):
    """1,024 ranks: what follows from the dumps takes less than what reading them does."""
    ranks = 1024
    dumps = cases.behind(rank=1000, ranks=ranks, last=3)
    (found,) = answer(cases.write(tmp_path, dumps, as_json=True)).findings
    assert [one.rank for one in found.members] == [1000]


# --- mutants ---


@pytest.mark.parametrize("kind", cases.KINDS)
def test_mutants_are_read_or_refused(kind):
    """A value or a message, never another exception."""
    name, good = cases.KINDS[kind]
    for seed, rng in seeds(300):
        if name.endswith("json") and seed % 2:
            text = json.dumps(mutants.tree(rng, json.loads(good)))
        else:
            text = "".join(mutant(rng, list(good)))
        with judged(kind, seed, text):
            found = of_text(text, name)
            said(found)
            json.dumps(found.document())


def mutant(rng, text):
    for _ in range(rng.randrange(1, 6)):
        at, change = rng.randrange(len(text)), rng.randrange(6)
        if change == 0:
            del text[at:]
        elif change == 1:
            text[at] = rng.choice('0189-.eE,"{}[]<>()#\\\n\x00\ud7ff# ')
        elif change == 2:
            text[at:at] = text[at : at + 200]
        elif change == 3:
            text[at:at] = rng.choice(["NaN", "1e999", "9" * 50, "-1", "null", '{"a":' * 50, "true", '"x"', "[]"])
        elif change == 4:
            other = rng.randrange(len(text))
            text[at : at + 30] = text[other : other + 30]
        else:
            del text[at : at + rng.randrange(1, 80)]
        text = text or ["x"]
    return text


def test_mutants_of_pickles_are_read_or_refused(tmp_path):
    good = pickle.dumps(cases.cycle()[0], protocol=2)
    file = tmp_path / "nccl_trace_rank_0"
    for seed, rng in seeds(300):
        tree = mutants.tree(rng, cases.cycle()[0]) if seed % 4 == 1 else cases.behind()[0]
        data = bytearray(good if seed % 4 == 3 else pickle.dumps(tree, protocol=rng.randrange(2, 6)))
        for _ in range(rng.randrange(0 if seed % 4 == 1 else 1, 5)):
            at = rng.randrange(len(data))
            if rng.random() < 0.8:
                data[at] = rng.choice([rng.randrange(256), ord("r"), ord("("), ord("u"), ord("s"), ord("j"), 0x85])
            else:
                del data[at : at + rng.randrange(1, 20)]
        file.write_bytes(data)
        with judged("pickle", seed, bytes(data)):
            said(hang.explain([read_dump(file)]))


@pytest.mark.parametrize("dumps", [cases.behind(), cases.cycle()])
def test_the_document_follows_its_schema(tmp_path, dumps):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(schemas.path("hang").read_text(encoding="utf-8"))
    cases.write(tmp_path, dumps)
    document = json.loads(invoke("explain", str(tmp_path), "--json").out)
    jsonschema.Draft7Validator(schema).validate(document)
    assert not jsonschema.Draft7Validator(schema).is_valid(document | {"findings": [{"kind": "unknown"}]})
