"""Recorded executions: when everything takes place, where the time goes, and what people read."""

import json
import random
import re
from pathlib import Path

import pytest

import chakra
import linkwright as lw
from chakra import collective, compute, node, receive, send
from linkwright.advise import predict
from linkwright.advise.predict import trace as kind
from linkwright.advise.predict.trace import files
from linkwright.advise.predict.trace.groups import meetings
from linkwright.advise.predict.trace.order import settled
from linkwright.advise.predict.trace.outcome import CAUSES, outcome
from linkwright.advise.predict.trace.price import Price
from linkwright.advise.predict.trace.replay import Replayed, replay, works
from linkwright.machines import load
from linkwright_cases import invoke

US = 1_000_000  # ps


def replayed(ranks, once_us=10, groups=None):
    """The outcome if computation takes what was recorded and every transfer `once_us`."""
    traces = [files.parse(chakra.binary(nodes), f"step.{rank}.et") for rank, nodes in enumerate(ranks)]
    both = [settled(one) for one in traces]
    found = meetings(traces, [order for _, order in both], groups or {}, "x.toml")
    program = Replayed(traces, [order for _, order in both], [before for before, _ in both], found)
    work = [
        one.duration_us * US if works(trace, place) else 0 for trace in traces for place, one in enumerate(trace.nodes)
    ]
    times = replay(program, work, [once_us * US] * len(found))
    return outcome("x", "m", program, times, [Price(once_us * US, "ring")] * len(found), ())


def causes_us(found):
    """For each rank, its causes in us."""
    return [{cause: time / US for cause, time in zip(CAUSES, own, strict=True) if time} for own in found.ranks]


def path_us(found):
    return [(one.what, one.detail, one.count, one.time_ps / US) for one in found.path]


def test_a_collective_waits_for_the_last_and_is_exposed():
    # Ranks compute 10 and 14 us, then meet for 10: it begins at 14 and ends at 24. Rank 0 waits for 14 - 10 = 4.
    found = replayed([[compute(1, us), collective(2, "allreduce", 64, [1])] for us in (10, 14)])
    assert found.step_ps == 24 * US
    assert causes_us(found) == [
        {"computation": 10, "communication": 10, "waiting": 4},
        {"computation": 14, "communication": 10},
    ]
    assert path_us(found) == [("computation", "rank 1", 1, 14), ("allreduce", "64 B, 2 ranks", 1, 10)]


def test_computation_hides_what_it_overlaps():
    # After 5 us, the allreduce (10 us, from 5 to 15) and 8 us of computation (from 5 to 13) begin together; 2 us of the
    # allreduce are exposed. The last node waits for both: 15 + 1 = 16.
    nodes = [compute(1, 5), collective(2, "allreduce", 64, [1]), compute(3, 8, [1]), compute(4, 1, [2, 3])]
    found = replayed([nodes, nodes])
    assert found.step_ps == 16 * US
    assert causes_us(found) == [{"computation": 14, "communication": 2}] * 2
    assert [one.what for one in found.path] == ["computation", "allreduce", "computation"]


def test_computation_that_hides_all_is_the_critical_path():
    nodes = [compute(1, 5), collective(2, "allreduce", 64, [1]), compute(3, 30, [1])]
    found = replayed([nodes, nodes])
    assert found.step_ps == 35 * US
    assert path_us(found) == [("computation", "rank 0", 2, 35)]
    assert found.rows[0].share == pytest.approx(10 / 35)


def test_a_straggler_delays_everybody_once():
    # Rank 2 takes 20 instead of 5: the first allreduce is from 20 to 30, the second from 35 to 45.
    def nodes(us):
        first = [compute(1, us), collective(2, "allreduce", 64, [1])]
        return [*first, compute(3, 5, [2]), collective(4, "allreduce", 64, [3])]

    found = replayed([nodes(us) for us in (5, 5, 20, 5)])
    assert found.step_ps == 45 * US
    assert found.causes()["waiting"] == (15 * 3 / 4 * US, 0, 15 * US)
    # All compute from 30 to 35; the path goes through the last.
    assert [one.detail for one in found.path] == ["rank 2", "64 B, 4 ranks", "rank 3", "64 B, 4 ranks"]


def test_one_device_does_one_thing_at_a_time_in_the_order_of_issue():
    # Both are free at 0. The recorded start, not the place in the file, says that node 2 goes first.
    nodes = [compute(1, 3, start=9), compute(2, 4, start=5), collective(3, "allreduce", 64, [2])]
    found = replayed([nodes, nodes])
    # Node 2 from 0 to 4, node 1 from 4 to 7, the allreduce from 4 to 14.
    assert found.step_ps == 14 * US
    assert causes_us(found) == [{"computation": 7, "communication": 7}] * 2


def test_a_processor_chooses_when_all_that_ends_has_ended():
    # At 4 us the device is free, and the host's node 2 lets node 4 run, which the trace issued before node 3.
    nodes = [
        compute(1, 4, is_cpu_op=False), compute(2, 4, is_cpu_op=True), compute(4, 1, [2]), compute(3, 6, start=1),
        compute(5, 9, [4], is_cpu_op=True),
    ]  # fmt: skip
    found = replayed([nodes])
    # Node 4 from 4 to 5, node 5 on the host from 5 to 14, node 3 from 5 to 11.
    assert found.step_ps == 14 * US
    assert causes_us(found) == [{"computation": 11, "host": 3}]


def test_host_device_and_memory_work_side_by_side():
    nodes = [compute(1, 10, is_cpu_op=True), compute(2, 4), node(3, "load", 6)]
    found = replayed([nodes])
    # The device for 4, then memory for 2 more, then the host for 4 more.
    assert causes_us(found) == [{"computation": 4, "memory": 2, "host": 4}]


def test_collectives_of_one_group_take_turns_and_others_do_not():
    two = [collective(1, "allreduce", 64, pg_name="a"), collective(2, "allreduce", 64, pg_name="a")]
    assert replayed([two, two]).step_ps == 20 * US
    apart = [collective(1, "allreduce", 64, pg_name="a"), collective(2, "allreduce", 64, pg_name="b")]
    assert replayed([apart, apart]).step_ps == 10 * US


def test_groups_are_stated_recorded_or_inferred():
    pair = [collective(1, "allreduce", 64, pg_name="7")]
    # Inferred: the ranks that use it.
    assert [row.ranks for row in replayed([pair, [compute(1, 1)], pair]).rows] == [2]
    # Recorded by PyTorch, where no ranks are all ranks.
    for ranks, size in (("[0, 2]", 2), ("[]", 3)):
        text = f'[\'[{{"pg_name": "7", "ranks": {ranks}}}]\']'
        init = node(9, "label", name="## process_group:init ##", inputs=text)
        everyone = [[init, *pair], [init, *(pair if size == 3 else [compute(1, 1)])], [init, *pair]]
        assert [row.ranks for row in replayed(everyone).rows] == [size]
    # Stated in the program, which counts more.
    assert [row.ranks for row in replayed([pair, pair], groups={"7": (1, 0)}).rows] == [2]
    # A stated group of one costs nothing more than a price that says so.
    alone = replayed([pair, [compute(1, 1)]], groups={"7": (0,)})
    assert [row.ranks for row in alone.rows] == [1]


def test_a_message_leaves_when_its_sender_has_it():
    # Rank 0 sends at 3 us, it takes 10. Rank 1 receives from 8 on: exposed from 8 to 13.
    found = replayed([[compute(1, 3), send(2, 1, 64, [1])], [compute(1, 8), receive(2, 0, 64, [1])]])
    assert found.step_ps == 13 * US
    assert causes_us(found)[1] == {"computation": 8, "communication": 5}
    assert path_us(found) == [("computation", "rank 0", 1, 3), ("message", "64 B, 0 to 1", 1, 10)]


def test_a_receive_before_its_message_waits_and_one_after_it_does_not():
    early = replayed([[compute(1, 6), send(2, 1, 64, [1])], [receive(2, 0, 64)]])
    assert causes_us(early)[1] == {"communication": 10, "waiting": 6}
    # The data are there at 10; the receiver asks at 30 and goes on at once, for 2 us.
    late = replayed([[send(2, 1, 64)], [compute(1, 30), receive(2, 0, 64, [1]), compute(3, 2, [2])]])
    assert late.step_ps == 32 * US
    assert path_us(late) == [("computation", "rank 1", 2, 32)]


def test_messages_meet_by_tag_and_order():
    sends = [send(1, 1, 8, comm_tag=5), send(2, 1, 64, comm_tag=6), send(3, 1, 128, [1], comm_tag=5)]
    receives = [receive(1, 0, 64, comm_tag=6), receive(2, 0, 8, comm_tag=5), receive(3, 0, 128, [2], comm_tag=5)]
    found = replayed([sends, receives])
    assert found.step_ps == 20 * US
    assert sorted(row.size_bytes for row in found.rows) == [8, 64, 128]


def test_both_sides_may_send_before_they_receive():
    ranks = [[send(1, 1 - rank, 64), receive(2, 1 - rank, 64, [1])] for rank in (0, 1)]
    assert replayed(ranks).step_ps == 10 * US


def test_labels_and_nodes_without_a_time_only_order():
    nodes = [node(1, "label", 50), compute(2, 5, [1]), compute(3, 0, [2]), compute(4, 1, [3])]
    assert replayed([nodes]).step_ps == 6 * US


def test_control_dependencies_order_too_unless_they_make_a_circle():
    assert replayed([[compute(1, 5), compute(2, 5, control=[1], is_cpu_op=True)]]).step_ps == 10 * US
    # Node 1 follows node 2, which waits for it; node 9 is not in the file.
    wrong = [compute(1, 5, control=[2, 9]), compute(2, 5, [1], is_cpu_op=True)]
    assert replayed([wrong]).step_ps == 10 * US
    (one,) = (files.parse(chakra.binary(wrong), "a.0.et"),)
    settled(one)
    assert one.control_circle == "node 1 (n1) -> node 2 (n2) -> node 1 (n1)"
    missing = files.parse(chakra.binary([compute(1, 5, control=[9])]), "a.0.et")
    settled(missing)
    assert (missing.absent, missing.control_circle) == (1, "")


def test_any_step_adds_up():
    """Causes of every rank and the critical path add up to the step, which no shuffled file changes."""
    chance = random.Random(1)
    for _ in range(40):
        ranks = []
        for rank in range(4):
            nodes = [compute(i, chance.randrange(20), chance.sample(range(i), min(i, 2))) for i in range(12)]
            for i in range(12, 16):
                nodes.append(collective(i, "allreduce", 64, [chance.randrange(12), *range(12, i)], pg_name="a"))
            nodes += [send(20, (rank + 1) % 4, 8, [3]), receive(21, (rank - 1) % 4, 8, [5]), compute(22, 7, [21, 15])]
            ranks.append(nodes)
        found = replayed(ranks, once_us=chance.randrange(1, 30))
        assert {sum(own) for own in found.ranks} == {found.step_ps}
        assert sum(one.time_ps for one in found.path) == found.step_ps
        assert replayed(ranks, once_us=found.rows[0].price.time_ps // US).as_dict() == found.as_dict()


def on(machine, ranks, tmp_path, head="", tables="", form="et"):
    """The outcome of files on a described machine."""
    names = json.dumps([name.rpartition("/")[2] for name in chakra.write(tmp_path, ranks, form)])
    text = f'[app]\nformat = 1\nkind = "trace"\nname = "x"\nfiles = {names}\n{head}\n{tables}'
    (found,) = kind.forecasts(predict.parse(text, "x.toml", tmp_path), [load(machine)])
    return found


@pytest.mark.parametrize(
    ("name", "factor"), [("allreduce", 1), ("reduce_scatter", 1), ("alltoall", 1), ("broadcast", 1), ("allgather", 4)]
)
def test_prices_are_those_of_the_simulation(name, factor, tmp_path):
    # comm_size is what a rank gives: the whole of S, or of an allgather one block of it.
    algorithm = {"broadcast": "binomial", "alltoall": "pairwise"}.get(name, "ring")
    ranks = [[collective(1, name, 65536)]] * 4
    found = on("dgx1-p100", ranks, tmp_path, tables=f'[algorithms]\n{name} = "{algorithm}"\n')
    schedule = lw.schedule(name, algorithm, ranks=4, size=65536 * factor)
    assert found.step_ps / US == pytest.approx(lw.simulate(schedule, "dgx1-p100").time_us)
    assert found.rows[0].price.algorithm == algorithm


def test_a_group_stands_where_its_ranks_do(tmp_path):
    # 4 GPUs of one half are nearer to each other than two of each half.
    def took(members):
        ranks = [
            [collective(1, "allreduce", 1 << 22, pg_name="a")] if r in members else [compute(1, 0)] for r in range(8)
        ]
        return on("gx8-p100", ranks, tmp_path, tables='[algorithms]\nallreduce = "ring"\n').step_ps

    assert took((0, 1, 2, 3)) < took((0, 4, 1, 5))


def test_a_message_takes_what_loggp_says(tmp_path):
    # L + 2 o + (n - 1) G = 1000 + 2 x 200 + 7 x 0.08 ns.
    found = on("loggp", [[send(1, 1, 8)], [receive(1, 0, 8)]], tmp_path)
    assert found.step_ps == 1_400_560


def test_the_best_algorithm_is_no_slower_than_any(tmp_path):
    ranks = [[collective(1, "allreduce", 1 << 20)]] * 8
    best = on("dgx1-p100", ranks, tmp_path, tables='[algorithms]\nallreduce = "best"\n')
    for name in ("ring", "recursive_doubling_latency"):
        assert best.step_ps <= on("dgx1-p100", ranks, tmp_path, tables=f'[algorithms]\nallreduce = "{name}"').step_ps


def test_an_algorithm_of_your_own_is_found_from_the_program(tmp_path):
    ring = lw.schedule("allreduce", "ring", ranks=2, size=64)
    (tmp_path / "own.lw").write_text(ring.text())
    ranks = [[collective(1, "allreduce", 64)]] * 2
    own = on("loggp", ranks, tmp_path, tables='[algorithms]\nallreduce = "own.lw"\n')
    named = on("loggp", ranks, tmp_path, tables='[algorithms]\nallreduce = "ring"\n')
    assert own.step_ps == named.step_ps
    assert own.rows[0].price.algorithm == "own.lw"


def test_the_three_forms_and_gzip_say_the_same(tmp_path):
    import gzip

    ranks = [
        [
            compute(1, 10 + rank, is_cpu_op=False), compute(5, 3, control=[1], is_cpu_op=True),
            collective(2, "allreduce", 4096, [1], pg_name="0", is_cpu_op=False), node(3, "store", 4, [2]),
            send(7, 1, 64, [2], comm_tag=3) if rank == 0 else receive(7, 0, 64, [2], comm_tag=3),
        ]
        for rank in range(2)
    ]  # fmt: skip
    found = {form: on("loggp", ranks, tmp_path, form=form).as_dict() for form in ("et", "json", "graph")}
    assert found["et"] == found["json"] == found["graph"]
    path = tmp_path / "step.0.et"
    packed = gzip.compress(path.read_bytes())
    assert len(files.parse(path.read_bytes(), "a").nodes) == 5
    path.write_bytes(packed)
    assert on_files(tmp_path) == found["et"]["step_ns"]


def on_files(folder):
    names = [str(folder / f"step.{rank}.et") for rank in range(2)]
    return json.loads(invoke("predict", *names, "--on", "loggp", "--json").out)["step_ns"]


def test_scales_are_of_device_and_host(tmp_path):
    nodes = [[compute(1, 10), node(2, "load", 4, [1]), compute(3, 8, [2], is_cpu_op=True)]]
    assert on("loggp", nodes, tmp_path).step_ps == 22 * US
    assert on("loggp", nodes, tmp_path, "compute_scale = 0.5\nhost_scale = 2.0").step_ps == (7 + 16) * US
    assert on("loggp", nodes, tmp_path, "compute_scale = 0").step_ps == 8 * US


def test_operations_without_a_time_are_on_the_roofline(tmp_path):
    # 4e6 operations at 1e12/s take 4 us, 1,000,000 B at 1e11 B/s take 10 us.
    nodes = [[compute(1, 0, num_ops=4_000_000, tensor_size=1_000_000), compute(2, 0, [1], num_ops=6_000_000)]]
    found = on("loggp", nodes, tmp_path, "flops_per_s = 1e12\nbytes_per_s = 1e11")
    assert found.step_ps == 16 * US
    assert found.notes == ("2 computations without a recorded time: the longer of operations and bytes",)
    # A recorded time counts more.
    timed = [[compute(1, 3, num_ops=4_000_000)]]
    assert on("loggp", timed, tmp_path).step_ps == 3 * US


def test_one_file_may_stand_for_all(tmp_path):
    one = [[compute(1, 10), collective(2, "allreduce", 4096, [1])]]
    found = on("dgx1-p100", one, tmp_path, "ranks = 8")
    assert len(found.ranks) == 8
    assert found.step_ps == on("dgx1-p100", one * 8, tmp_path).step_ps
    assert found.notes == ("one file stands for all 8 ranks, which are never late relative to each other",)


def test_the_largest_share_of_an_uneven_collective_counts(tmp_path):
    ranks = [[collective(1, "alltoall", size)] for size in (4096, 65536)]
    found = on("loggp", ranks, tmp_path)
    assert found.rows[0].size_bytes == 65536
    assert found.notes == ("1 collective to which ranks give different amounts: the largest counts",)


def test_a_barrier_has_no_bytes(tmp_path):
    found = on("loggp", [[node(1, "collective", kind="barrier")]] * 4, tmp_path)
    assert found.rows[0].size_bytes == 0
    assert found.step_ps > 0


def test_what_the_host_does_for_a_collective_is_its_work(tmp_path):
    # PyTorch records the call on the host with the type of a collective, too; it has no comm_type.
    ranks = [[node(1, "collective", 5, is_cpu_op=True), compute(2, 1, [1])]]
    assert on("loggp", ranks, tmp_path).step_ps == 6 * US


def test_names_of_the_command_line_are_no_patterns(tmp_path):
    folder = tmp_path / "run[1]"
    folder.mkdir()
    names = chakra.write(folder, [[compute(1, 10)]] * 2)
    assert json.loads(invoke("predict", *names, "--on", "loggp", "--json").out)["step_ns"] == 10_000


def test_files_are_found_by_pattern_and_ordered_by_rank(tmp_path):
    ranks = [[compute(1, rank)] for rank in range(11)]
    chakra.write(tmp_path, ranks)
    text = '[app]\nformat = 1\nkind = "trace"\nname = "x"\nfiles = "step.*.et"\n'
    (found,) = kind.forecasts(predict.parse(text, "x.toml", tmp_path), [load("loggp")])
    assert [own[0] // US for own in found.ranks] == list(range(11))


def test_the_command_takes_traces_and_programs(tmp_path):
    names = chakra.write(tmp_path, [[compute(1, 10), collective(2, "allreduce", 4096, [1])]] * 2)
    direct = json.loads(invoke("predict", *names, "--on", "loggp", "--json").out)
    program = tmp_path / "x.toml"
    program.write_text('[app]\nformat = 1\nkind = "trace"\nname = "step"\nfiles = "step.*.et"\n')
    stated = json.loads(invoke("predict", str(program), "--on", "loggp", "--json").out)
    assert direct == stated
    both = json.loads(invoke("predict", str(program), "--on", "loggp,dgx1-p100", "--json").out)
    assert [one["machine"] for one in both["forecasts"]] == ["loggp", "dgx1-p100"]
    assert both["leads"][0]["lead"] == pytest.approx(both["forecasts"][1]["step_ns"] / direct["step_ns"] - 1)


def test_a_page_and_tables_side_by_side(tmp_path):
    names = chakra.write(tmp_path, [[compute(1, 10), collective(2, "allreduce", 4096, [1])]] * 2)
    page = tmp_path / "x.html"
    result = invoke("predict", *names, "--on", "loggp,dgx1-p100", "--report", str(page))
    assert result.status == 0, result.err
    assert "side by side" in result.out
    assert result.out.splitlines()[-2].startswith("loggp is ")
    text = page.read_text(encoding="utf-8")
    for words in ("On loggp", "On dgx1-p100", "Critical path", "Exposed messages", "do not share links"):
        assert words in text


def test_the_example_of_the_formats_reads(tmp_path):
    formats = (Path(__file__).parent.parent.parent / "docs/formats.md").read_text(encoding="utf-8")
    text = re.search(r'```app\n(\[app\]\nformat = 1\nkind = "trace".*?)```', formats, re.DOTALL)[1]
    (tmp_path / "traces").mkdir()
    ranks = [
        [
            compute(1, 10), collective(2, "allreduce", 4096, [1], pg_name=f"tensor{rank // 2}"),
            collective(3, "allgather", 64, [2], pg_name="data"),
        ]
        for rank in range(4)
    ]  # fmt: skip
    chakra.write(tmp_path / "traces", ranks)
    (found,) = kind.forecasts(predict.parse(text, "x.toml", tmp_path), [load("loggp")])
    assert sorted((row.kind, row.ranks, row.count) for row in found.rows) == [("allgather", 4, 1), ("allreduce", 2, 2)]
    assert found.causes()["computation"][0] == 5 * US
    assert found.notes == ("recorded times of the device are multiplied by 0.5",)


def test_a_step_without_any_time(tmp_path):
    names = chakra.write(tmp_path, [[compute(1, 0), node(2, "label")]])
    result = invoke("predict", *names, "--on", "loggp,dgx1-p100", "--report", str(tmp_path / "x.html"))
    assert result.status == 0, result.err
    assert "step 0 ns" in result.out
    assert result.out.splitlines()[-2] == "loggp takes no time, so there is no ratio"


def test_a_grid_is_that_of_the_machine_that_has_any(tmp_path):
    ranks = [[collective(1, "allreduce", 4096)]] * 4
    (tmp_path / "x.toml").write_text(
        '[app]\nformat = 1\nkind = "trace"\nname = "x"\nfiles = "step.*.et"\ngrid = [2, 2]'
    )
    chakra.write(tmp_path, ranks)
    result = invoke("predict", str(tmp_path / "x.toml"), "--on", "torus-2d,loggp", "--json")
    assert [one["ranks"] for one in json.loads(result.out)["forecasts"]] == [4, 4]


def test_long_tables_are_short_unless_wide(tmp_path):
    # Thirteen sizes, and computation between them.
    nodes, before = [], []
    for i in range(13):
        nodes += [compute(2 * i, 5, before), collective(2 * i + 1, "allreduce", 64 << i, [2 * i])]
        before = [2 * i + 1]
    names = chakra.write(tmp_path, [nodes, nodes])
    short, wide = (invoke("predict", *names, "--on", "loggp", *more).out for more in ((), ("--wide",)))
    assert "17 shorter stretches" in short
    assert "and 3 rows more; --wide has all" in short
    assert "shorter" not in wide
    assert wide.count("allreduce") == 26


@pytest.mark.slow
def test_a_large_trace_takes_seconds(tmp_path):
    import time

    ranks = []
    for rank in range(64):
        nodes, before = [], []
        for i in range(390):
            nodes += [compute(4 * i, 100 + (rank * 7 + i) % 13, before), compute(4 * i + 1, 50, [4 * i])]
            group = str(rank // 8) if i % 2 else "all"
            nodes.append(collective(4 * i + 2, "allreduce", 1 << 16 + i % 8, [4 * i + 1], pg_name=group))
            nodes.append(compute(4 * i + 3, 5, [4 * i + 1], is_cpu_op=True))
            before = [4 * i + 1 if i % 3 else 4 * i + 2]
        ranks.append(nodes)
    names = chakra.write(tmp_path, ranks)
    began = time.process_time()  # others may be busy
    assert invoke("predict", *names, "--on", "loggp").status == 0
    assert time.process_time() - began < 10
