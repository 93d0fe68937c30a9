"""Traces that are broken, hostile or of different steps: one message with the place and the cure, and no traceback."""

import contextlib
import random
import time

import pytest

import chakra
from chakra import collective, compute, node, receive, send
from linkwright.advise.predict import parse
from linkwright.advise.predict import trace as kind
from linkwright.advise.predict.trace import files, nodes, price
from linkwright.advise.predict.trace.order import settled
from linkwright.base.errors import LinkwrightError
from linkwright.machines import load
from linkwright_cases import invoke

HEAD = '[app]\nformat = 1\nkind = "trace"\nname = "x"\n'
WHOLE = [compute(1, 10), collective(2, "allreduce", 64, [1]), compute(3, 5, [2])]
MANY = [collective(1, "allreduce", 64, pg_name="a")]


def refused(*arguments):
    result = invoke("predict", *arguments, "--on", "loggp")
    assert result.status == 2, result.out
    assert result.err.startswith("linkwright: ")
    assert result.err.count("\n") == 1
    return result.err


ONE_RANK = [
    ([compute(1, 1), compute(1, 1)], "step.0.et: node 1 (n1): another node has the same id: node 1 (n1); give each"),
    ([compute(1, 1, [7])], "node 1 (n1): it waits for node 7, which the file lacks; add it"),
    ([compute(1, 1, [1])], "a cycle: node 1 (n1) -> node 1 (n1); break it"),
    (
        [compute(1, 1, [3]), compute(2, 1, [1]), compute(3, 1, [2])],
        "a cycle: node 1 (n1) -> node 3 (n3) -> node 2 (n2) -> node 1 (n1); break it",
    ),
    ([compute(i, 1, [(i + 1) % 20]) for i in range(20)], "node 7 (n7) -> 12 more nodes -> node 0 (n0); break it"),
    ([node(1, 9)], "node 1 (n1): type 9 is unknown; known are 0 to 7 (INVALID_NODE, "),
    ([compute(1, 10**12 + 1)], "takes 1,000,000,000,001 us, more than eleven days; check the unit"),
    ([collective(1, "allreduce", -4)], "comm_size is -4; write a whole number that is not negative"),
    ([collective(1, "allreduce", (1 << 40) + 1)], "B, beyond 1T; write bytes"),
    ([collective(1, "allreduce", 8)], "the group of all ranks has one member, rank 0, among 1 traces; give the traces"),
    ([collective(1, "allreduce", 8, pg_name="a")], "group `a` has one member"),
    ([collective(1, "allreduce", 8, involved_dim=[True, False])], "involved_dim leaves out dimensions"),
    ([node(1, "send", comm_size=8)], "it names no comm_dst; write the rank"),
    ([node(1, "receive", comm_size=8)], "it names no comm_src; write the rank"),
    ([send(1, 1, 8)], "comm_dst 1 is no rank; there are 0 to 0; name another, or add its trace"),
    ([send(1, 0, 8)], "comm_dst 0 is its own rank"),
    ([compute(1, 1, is_cpu_op=7)], "is_cpu_op is 7; write true or false"),
    ([compute(1, 0, num_ops="many")], "num_ops is 'many'; write a finite number"),
    ([compute(1, 0, num_ops=5)], "add `flops_per_s`"),
    ([compute(1, 1, pg_name=3)], "pg_name is 3; write a text"),
    ([compute(1, 1, involved_dim=True)], "involved_dim is 1; write a list of true and false"),
]
TWO_RANKS = [
    ([[node(1, "collective", comm_size=8)]] * 2, "it has no comm_type; write one of 0 to 9"),
    ([[node(1, "collective", comm_type=10, comm_size=8)]] * 2, "comm_type 10 is not a collective; known are 0 to 9"),
    ([[node(1, "collective", comm_type=0)]] * 2, "it has no comm_size; write the bytes that this rank gives"),
    ([WHOLE, WHOLE[:1]], "step.1.et: rank 1 does not use the group of all ranks, of which it is a member"),
    ([WHOLE, [*WHOLE, collective(9, "allreduce", 8)]], "has 2 collectives on rank 1 and 1 on rank 0"),
    (
        [WHOLE, [collective(2, "broadcast", 64)]],
        "rank 0 node 2 (n2): allreduce of 64 B, rank 1 node 2 (n2): broadcast of 64 B; give traces of the same step",
    ),
    ([WHOLE, [collective(2, "allreduce", 32)]], "ranks differ in the group of all ranks"),
    ([[send(1, 1, 8)], [receive(1, 0, 16)]], "ends of a message differ: rank 0 node 1 (n1): message of 8 B, rank 1"),
    ([[send(1, 1, 8)], [compute(1, 1)]], "rank 0 sends rank 1 1 messages with tag 0, which receives 0"),
    ([[compute(1, 1)], [receive(1, 0, 8)]], "sends rank 1 0 messages with tag 0, which receives 1"),
    ([[send(1, 1, 8, comm_src=1)], [receive(1, 0, 8)]], "comm_src is 1 in the trace of rank 0; correct it"),
    (
        # Rank 0 reaches group b after a, rank 1 the other way round.
        [
            [collective(1, "allreduce", 8, pg_name="a"), collective(2, "allreduce", 8, [1], pg_name="b")],
            [collective(1, "allreduce", 8, [2], pg_name="a"), collective(2, "allreduce", 8, pg_name="b")],
        ],
        "ranks wait for each other in a cycle: rank 0 node 1 (n1) -> rank 1 node 1 (n1) -> rank 1 node 2 (n2) -> "
        "rank 0 node 2 (n2) -> rank 0 node 1 (n1); give traces of the same step",
    ),
    (
        [[receive(1, 1, 8), send(2, 1, 8, [1])], [receive(1, 0, 8), send(2, 0, 8, [1])]],
        "rank 0 node 1 (n1) -> rank 1 node 2 (n2) -> rank 1 node 1 (n1) -> rank 0 node 2 (n2) -> rank 0 node 1 (n1)",
    ),
]


@pytest.mark.parametrize(("trace", "message"), ONE_RANK)
def test_one_wrong_rank(trace, message, tmp_path):
    assert message in refused(*chakra.write(tmp_path, [trace]))


@pytest.mark.parametrize(("ranks", "message"), TWO_RANKS)
def test_two_ranks_that_do_not_agree(ranks, message, tmp_path):
    assert message in refused(*chakra.write(tmp_path, ranks))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('files = "step.*.json"\n', "no file matches `step.*.json`"),
        ('files = "step.7.et"\n', "cannot be read: No such file or directory; give the path of a Chakra trace"),
        ("files = []\n", "files is []; write a list"),
        ('files = "step.*.et"\nranks = 3\n', "ranks is 3, and there are 2 files; give one for each rank, or one"),
        ('files = ["step.0.et", "a/step.0.et"]\n', "rank 0 has two files"),
        ('files = ["step.0.et", "step.2.et"]\n', "the file of rank 1 is missing, of ranks 0 to 2; add it"),
        ('files = ["step.0.et", "step.et"]\n', "its name has no rank; name the files of a step `name.0.et`"),
        ('files = "step.*.et"\ncompute_scale = -1\n', "compute_scale is -1; write a finite number"),
        ('files = "step.*.et"\ngrid = [2, 1]\n', "`grid` is for machines that take any grid, and none is used"),
        ('files = "step.*.et"\npath = "pigeon"\n', "pigeon"),
        ('files = "step.*.et"\n[groups]\na = [0, 2]\n', "x.toml: groups.a: rank 2 does not exist; there are ranks 0"),
        ('files = "step.*.et"\n[groups]\na = [1, 1]\n', "groups.a: names a rank twice"),
        ('files = "step.*.et"\n[groups]\na = [0]\n', "step.1.et: node 1 (n1): rank 1 is not a member of group `a`"),
        ('files = "step.*.et"\n[groups]\nb = [0]\n', "groups.b: no trace has a collective of this group"),
        ('files = "step.*.et"\n[algorithms]\nallreduce = "rings"\n', "did you mean `ring`?"),
        ('files = "step.*.et"\n[algorithms]\nallreduces = "ring"\n', "unknown collective `allreduces`"),
        ('file = "step.*.et"\n', "missing key `files`; did you mean it by `file`?"),
    ],
)
def test_wrong_programs(more, message, tmp_path):
    chakra.write(tmp_path, [MANY, MANY])
    (tmp_path / "x.toml").write_text(HEAD + more)
    assert message in refused(str(tmp_path / "x.toml"))


def test_more_ranks_than_the_machine_has(tmp_path):
    names = chakra.write(tmp_path, [WHOLE] * 9)
    result = invoke("predict", *names, "--on", "dgx1-p100")
    assert result.status == 2
    assert "the trace has 9 ranks; dgx1-p100 has 8" in result.err
    result = invoke("predict", *names, "--on", "torus-2d")
    assert "machine torus-2d takes any grid of endpoints; give `grid = [columns, rows]`" in result.err


def test_what_a_machine_cannot_carry(tmp_path):
    names = chakra.write(tmp_path, [[collective(1, "allreduce", 1 << 40)]] * 2)
    result = invoke("predict", *names, "--on", "cell-be")
    assert result.status == 2
    assert "allreduce of 1,099,511,627,776 B on 2 ranks: the buffers of this schedule need" in result.err


def test_times_that_are_absurd(tmp_path):
    chakra.write(tmp_path, [[compute(1, 10), compute(2, 0, num_ops=10**9)]])
    program = tmp_path / "x.toml"
    for key in ("compute_scale = 1e23", "flops_per_s = 1"):
        program.write_text(HEAD + f'files = "step.0.et"\n{key}\n')
        assert "us, more than eleven days; correct its factor or rate" in refused(str(program))


def test_options_and_files_that_do_not_belong(tmp_path):
    names = chakra.write(tmp_path, [WHOLE] * 2)
    assert "--depth applies to programs of kind training" in refused(*names, "--depth", "3")
    assert "`resnet` is not a trace; give one program, or the traces of one step" in refused("resnet", *names)
    assert "`alexnet` is not a trace" in refused("alexnet", "resnet")


def test_groups_that_cannot_be_read(tmp_path):
    for wrong in ("['[{]']", "['[{\"pg_name\": 1}]']", '[\'[{"pg_name": "a", "ranks": ["x"]}]\']'):
        init = node(9, "label", name="process_group:init", inputs=wrong)
        err = refused(*chakra.write(tmp_path, [[init, *MANY]] * 2))
        assert "the groups of its process_group:init cannot be read" in err
        assert "state them in [groups] of a program" in err
    # They do not matter if the program states them.
    (tmp_path / "x.toml").write_text(HEAD + 'files = "step.*.et"\n[groups]\na = [0, 1]\n')
    assert invoke("predict", str(tmp_path / "x.toml"), "--on", "loggp").status == 0


BINARY = chakra.binary(WHOLE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "byte 0: it is empty"),
        (BINARY[:-3], " B begins here, and only "),
        (BINARY[: len(BINARY) // 2], "; copy the file again, or write it as a Chakra trace"),
        (chakra.delimited(chakra.field(1, b"0.0.4")), "it contains no node"),
        (chakra.delimited(chakra.message(WHOLE[0])), "the first message is not GlobalMetadata, as in traces before"),
        (BINARY + b"\xff" * 12, "a number has more than ten bytes; copy the file again"),
        (BINARY + chakra.delimited(b"\x0b"), "wire type 3 is not of this format"),
        (BINARY + chakra.delimited(b"\x0a\x01\x01"), "field 1 of a node has wire type 2 where 0 belongs"),
        (BINARY + chakra.delimited(b"\x25\0\0\0\0"), "a dependency has wire type 5"),
        (BINARY + chakra.delimited(chakra.field(2, b"\xff")), "a text is not UTF-8"),
        (BINARY + chakra.delimited(b"\x12\x7f"), "a value of 127 B begins here, and its message ends after 0 B"),
        (BINARY + chakra.delimited(chakra.field(10, chakra.field(1, b"comm_size") + b"\x4a\x01\x01")), "field 9 of an"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a pointer to the trace, not the trace itself"),
        (b"/annex/objects/MD5-s1--1\n", "fetch it with `git annex get`"),
        (b"\x1f\x8b\x08\x00", "is a broken gzip file"),
        (b"{}{", "line 1: not valid JSON"),
        (b'{"version": "1"}\n[1]', "line 2: there is no object here"),
        (b'{"version": "1"}{"id": "x"}', "id is 'x', not a whole number"),
        (b'{"version": "1"}{"id": true}', "id is True, not a whole number"),
        (b'{"version": "1"}{"id": 1, "name": 3}', "name is 3, not a string"),
        (b'{"version": "1"}{"id": 1, "type": "COMP"}', "type is 'COMP', not a whole number"),
        (b'{"version": "1"}{"id": 1, "type": 4, "dataDeps": {}}', "dataDeps is an object, not a list"),
        (b'{"version": "1"}{"id": 1, "type": 4, "attr": [7]}', "an attribute is 7, not an object with a name"),
        (b'{"version": "1"}{"id": 1, "durationMicros": NaN}', "NaN is not a number"),
        (b'{"version": "1"}{"id": -1, "type": 4}', "its id is -1; write a number that is not negative"),
        (b'{"id": "1", "type": "COMP_NODE"}', "the first object is a node, not GlobalMetadata"),
        (b'{"version": ' + b"[" * 100_000, "line 1: "),
        (b'{"version": "\xff"}', "JSON that is not UTF-8"),
        (
            b'{"schema": "1.0.2-chakra.0.0.4", "nodes": []}',
            "it is PyTorch's own trace; convert it with chakra_trace_link and",
        ),
        (b'{"workload_graph": 3}', "workload_graph is not a list"),
        (b'{"workload_graph": [3]}', "a node is not an object"),
        (b'{"workload_graph": [{"Id": 1}]}', "a node has no `Id` or no `NodeType`"),
        (b'{"workload_graph": [{"Id": 1, "NodeType": 4, "num_ops": {}}]}', "num_ops is an object; write a finite"),
        (b'{"workload_graph": [{"Id": 1, "NodeType": 4, "num_ops": 1e999}]}', "num_ops is inf; write a finite number"),
    ],
)
def test_broken_files(content, message, tmp_path):
    path = tmp_path / "a.0.et"
    path.write_bytes(content)
    err = refused(str(path))
    assert message in err
    assert str(path) in err


def test_what_a_terminal_would_obey_is_not_printed(tmp_path):
    names = chakra.write(tmp_path, [[compute(1, 1, [7], name="\x1b[2Jevil" + "x" * 500)]])
    err = refused(*names)
    assert "\x1b" not in err
    assert "node 1 (?[2Jevilxxx" in err
    assert len(err) < 300


def test_limits_of_what_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.0.et"
    path.write_bytes(BINARY)
    monkeypatch.setattr(files, "MOST_BYTES", 50)
    assert "has more than 50; trace one step" in refused(str(path))
    monkeypatch.undo()
    monkeypatch.setattr(nodes, "MOST_NODES", 2)
    assert "more than 2 nodes" in refused(str(path))
    monkeypatch.undo()
    monkeypatch.setattr(nodes, "MOST_DEPENDENCIES", 1)
    assert "or 1 dependencies; trace one step" in refused(str(path))
    monkeypatch.undo()
    path.write_text(chakra.text(WHOLE))
    monkeypatch.setattr(files, "MOST_BYTES_OF_JSON", 50)
    assert "JSON above 50 is not accepted; give the `.et` file" in refused(str(path))


def test_limits_of_what_is_replayed(tmp_path, monkeypatch):
    chakra.write(tmp_path, [WHOLE])
    program = tmp_path / "x.toml"
    program.write_text(HEAD + 'files = "step.0.et"\nranks = 400_000\n')
    assert "ranks is 400,000; at most 16,384 ranks and 1,000,000 nodes can be replayed" in refused(str(program))
    names = chakra.write(tmp_path, [[collective(i, "allreduce", 64 * i) for i in range(1, 4)]] * 2)
    monkeypatch.setattr(price, "MOST_DIFFERENT", 2)
    assert "there are more than 2 different transfers; trace one step" in refused(*names)


def test_compressed_files_are_read_up_to_the_limit_only(tmp_path, monkeypatch):
    import gzip

    path = tmp_path / "a.0.et"
    path.write_bytes(gzip.compress(b"\0" * (8 << 20)))
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    assert "has more than 1M" in refused(str(path))


SEEDS = [
    [
        node(9, "label", name="process_group:init", inputs='[\'[{"pg_name": "0", "ranks": [0, 1]}]\']'),
        compute(1, 10 + rank, start=5, is_cpu_op=False, num_ops=1000, tensor_size=64),
        collective(2, "allreduce", 64, [1], pg_name="0", involved_dim=[True]),
        node(3, "load", 4, [1], control=[9]), collective(4, "alltoall", 4096, [2]),
        send(7, 1, 64, [2], comm_tag=3) if rank == 0 else receive(7, 0, 64, [2], comm_tag=3), compute(8, 1, [7, 3]),
    ]
    for rank in range(2)
]  # fmt: skip


def mutant(content, chance):
    """`content` with a few bytes changed, cut out, doubled or made extreme, as text where it is text."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        if not data:
            break
        at, length = chance.randrange(len(data)), chance.choice((1, 1, 2, 5, 20))
        what = chance.randrange(6)
        if what == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at] = chance.choice((0, 1, 127, 128, 255, 34, 45, 57, 91, 123))
        elif what == 2:
            del data[at : at + length]
        elif what == 3:
            data[at:at] = data[at : at + length]
        elif what == 4:
            data[at:at] = chance.choice(
                (b"99999999999", b"-", b"\xff" * 9, b"null", b"1e999", b"{}", b"[[", b"\\u0000")
            )
        else:
            del data[at:]
    return bytes(data)


def fuzz(number, seed):
    """Mutants of every form are read and replayed, or refused by an error of ours; none takes long."""
    chance = random.Random(seed)
    machine = load("loggp")
    program = parse(HEAD + 'files = "a.0.et"\nflops_per_s = 1e12\nbytes_per_s = 1e12\n', "x.toml")
    forms = [lambda n: chakra.binary(n), lambda n: chakra.text(n).encode(), lambda n: chakra.graph(n).encode()]
    seeds = [[form(one) for one in SEEDS] for form in forms]
    read = done = 0
    for _ in range(number):
        contents = list(chance.choice(seeds))
        which = chance.randrange(2)
        contents[which] = mutant(contents[which], chance)
        began = time.process_time()
        with contextlib.suppress(LinkwrightError):
            traces = [files.parse(content, f"a.{rank}.et") for rank, content in enumerate(contents)]
            read += 1
            kind.forecast_on(program, kind.settled_all(traces, program), machine)
            done += 1
        assert time.process_time() - began < 2
    assert read > done > number // 50


def test_mutants():
    fuzz(3000, seed=17)


@pytest.mark.slow
def test_many_mutants():
    fuzz(100_000, seed=18)


def test_the_order_of_a_long_chain_needs_no_recursion():
    chain = [compute(i, 1, [i - 1] if i else []) for i in range(20_000)]
    _, order = settled(files.parse(chakra.binary(chain), "a.0.et"))
    assert order == list(range(20_000))
