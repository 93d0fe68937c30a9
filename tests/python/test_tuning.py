"""Tables for runtimes: each format is read back by a small reader of its own, written from the runtime's source."""

import json
import random
import re

import pytest

from linkwright.base.errors import FileError, UsageError
from linkwright.formats import tuning
from linkwright.formats.tuning import mpich
from linkwright.formats.tuning.rules import tables
from linkwright.formats.tuning.runtime import About
from linkwright_cases import invoke

SIZES = (8, 512, 4096, 65536, 1 << 20)


def row(collective, algorithm, size, ns, ranks=8, spread=None):
    """A result row: modelled, or measured with an interval of `spread` on both sides."""
    return {
        "metric": "time", "collective": collective, "algorithm": algorithm, "ranks": ranks, "size_bytes": size,
        "value": ns, "executor": "sim" if spread is None else "threads",
        "ci_low": spread and ns * (1 - spread), "ci_high": spread and ns * (1 + spread),
    }  # fmt: skip


def crossing(runtime, ranks=8):
    """Rows in which one of two algorithms of every collective wins up to 4096 B, the other beyond."""
    stem = f"{runtime.library}-9.9" if runtime.library else None
    for collective, known in runtime.algorithms.items():
        names = [f"{stem}/{name}".rstrip("/") if stem else name for name in known]
        usable = [name for name in names if runtime.word(collective, name, ranks)]
        first, second = usable[-1], usable[-2] if len(usable) > 1 else usable[-1]
        for size in SIZES:
            for name in usable:
                best = first if size <= 4096 else second
                yield row(collective, name, size, 1000.0 if name == best else 1500.0, ranks)


@pytest.fixture(params=tuning.RUNTIMES.values(), ids=lambda runtime: runtime.key)
def runtime(request):
    return request.param


# --- readers: what the runtime takes for a collective, ranks and size; None: what it would take anyway --------------


def read_openmpi(text):
    numbers = [int(word) for line in text.splitlines() for word in line.partition("#")[0].split()]
    take = iter(numbers).__next__
    found = {}
    for _ in range(take()):
        collective = take()
        for _ in range(take()):
            ranks = take()
            found[collective, ranks] = [(take(), take(), take(), take()) for _ in range(take())]
    with pytest.raises(StopIteration):
        take()

    def taken(collective, ranks, size):
        number = tuning.openmpi.NUMBERS[collective]
        counts = sorted(count for its, count in found if its == number)
        if not counts:
            return None
        # Open MPI begins its search with the first, so that counts for fewer processes too.
        rules = found[number, max([count for count in counts if count <= ranks], default=counts[0])]
        assert rules[0][0] == 0, "Open MPI refuses a file whose first rule is not for size 0"
        return [rule[1] for rule in rules if rule[0] <= size][-1] or None

    return taken


def read_openmpi_json(text):
    document = json.loads(text)
    assert (document["rule_file_version"], document["module"]) == (3, "tuned")

    def taken(collective, ranks, size):
        for sizes in document["collectives"]["bcast" if collective == "broadcast" else collective]:
            if sizes["comm_size_min"] <= ranks <= sizes["comm_size_max"]:
                for rule in sizes["rules"]:
                    if rule["msg_size_min"] <= size <= rule["msg_size_max"]:
                        return rule["alg"]
        return None

    return taken


def read_nccl(text):
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(len(line) < 256 for line in text.splitlines())
    parsed = [line.split(",") for line in lines]
    assert all(len(fields) == 10 for fields in parsed)

    def taken(collective, ranks, size):
        for name, low, high, algorithm, protocol, channels, nodes, count, pipes, registered in parsed:
            wild = (int(nodes), int(pipes), int(registered)) == (-1, -1, -1)
            if name == collective.replace("_", "") and int(low) <= size <= int(high) and int(count) == ranks and wild:
                assert int(channels) == -1 or int(channels) > 0
                return f"{algorithm},{protocol}"
        return None

    return taken


def read_ucc(text):
    values = dict(line.split(" = ") for line in text.splitlines() if not line.startswith("#"))
    tokens = [token.split(":") for token in values.pop("UCC_TL_UCP_TUNE").split("#")]
    assert set(values.values()) <= {"2"}

    def taken(collective, ranks, size):
        for name, sizes, teams, algorithm in tokens:
            low, high = sizes.split("-")
            meant = name == collective.replace("broadcast", "bcast") and teams == f"[{ranks}]"
            if meant and int(low) <= size <= int(high):
                return algorithm.removeprefix("@")
        return None

    return taken


READERS = {
    "openmpi": read_openmpi, "openmpi-json": read_openmpi_json, "nccl": read_nccl, "rccl": read_nccl, "ucc": read_ucc,
}  # fmt: skip


@pytest.mark.parametrize("key", READERS)
def test_a_reader_finds_the_fastest_at_every_size(key):
    runtime = tuning.find(key)
    rows = list(crossing(runtime))
    made = tuning.tables_of(runtime, rows)
    taken = READERS[key](runtime.render(made, About("a test")).text)
    assert {table.collective for table in made} == set(runtime.algorithms)
    for one in rows:
        if one["value"] == 1000.0:
            word = runtime.word(one["collective"], one["algorithm"], 8)
            own = word == "the library's choice"
            assert taken(one["collective"], 8, one["size_bytes"]) == (None if own else word), one


@pytest.mark.parametrize("key", ["openmpi", "openmpi-json", "ucc"])
def test_a_rule_serves_no_size_and_no_number_of_processes_without_a_time(key):
    runtime = tuning.find(key)
    word = runtime.word("allreduce", "ring", 8)
    rows = [row("allreduce", "ring", size, 5.0, ranks=ranks) for size in (4096, 65536) for ranks in (8, 16)]
    taken = READERS[key](runtime.render(tuning.tables_of(runtime, rows), About("a test")).text)
    sizes = (1, 4095, 4096, 5000, 65536, 65537, 1 << 30)
    assert [taken("allreduce", 8, size) for size in sizes] == [None, None, word, word, word, None, None]
    assert [taken("allreduce", ranks, 4096) for ranks in (4, 8, 9, 16, 17)] == [None, word, None, word, None]


# --- MPICH ----------------------------------------------------------------------------------------


def base(tmp_path):
    """A selection file in which every collective has one branch, called `before`."""
    names = [name for found in mpich.NAMES.values() for name in found]
    tree = {
        f"collective={name}": {"comm_type=intra": {f"algorithm=before_{name}": {}}, "comm_type=inter": {"x": {}}}
        for name in names
    }
    file = tmp_path / "generic.json"
    file.write_text(json.dumps(tree))
    return file


def select(tree, **call):
    """What MPICH selects: conditions in their order, the first that holds."""
    for key, inside in tree.items():
        name, comparison, value = re.match(r"(\w+?)(<=|<|=)(\w+)$", key).groups()
        if name == "algorithm":
            return value
        have = call[name]
        number = value.isdigit()
        holds = {
            "=": value == "any" or str(have) == value,
            "<": (number and have < int(value)) or (value == "pow2" and call["below"]),
            "<=": number and have <= int(value),
        }[comparison]
        if holds:
            return select(inside, **call)
    raise AssertionError("MPICH stops where no algorithm is named")


def call(name, ranks, size, **more):
    usual = {
        "collective": name, "comm_type": "intra", "comm_size": ranks, "avg_msg_size": size, "total_msg_size": size,
        "is_commutative": "yes", "is_op_built_in": "yes", "is_sendbuf_inplace": "no", "count": size, "below": False,
    }  # fmt: skip
    return {**usual, **more}


def test_mpich_selects_the_fastest_at_every_size_and_otherwise_what_it_did(tmp_path):
    runtime = tuning.find("mpich")
    rows = [*crossing(runtime, 8), *crossing(runtime, 16)]
    made = tuning.tables_of(runtime, rows)
    written = runtime.render(made, About("a test", base=base(tmp_path)))
    tree = json.loads(written.text)
    for one in rows:
        if one["value"] == 1000.0:
            word = runtime.word(one["collective"], one["algorithm"], one["ranks"])
            for name in mpich.NAMES[one["collective"]]:
                found = select(tree, **call(name, one["ranks"], one["size_bytes"]))
                assert found == f"MPIR_{name.capitalize()}_intra_{word}"
                for ranks in (7, 9, 15, 17):
                    assert select(tree, **call(name, ranks, one["size_bytes"])) == f"before_{name}"
    unsuited = {
        "allreduce": {"is_commutative": "no"},
        "reduce": {"below": True},
        "alltoall": {"is_sendbuf_inplace": "yes"},
    }
    for name, how in unsuited.items():
        assert select(tree, **call(name, 8, 512, **how)) == f"before_{name}"
    assert "allreduce, 8 ranks, from 0 B: " in written.reasons


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "base.json:1: is not valid JSON"),
        ("[" * 100_000, "is not valid JSON (nested too deeply)"),
        (f'{{"collective=bcast": {"9" * 5000}}}', "is not valid JSON (Exceeds the limit (4300 digits)"),
        ('{"collective=bcast": NaN}', "is not valid JSON (NaN is not a number)"),
        ("{}", "names no `collective="),
        ('{"collective=bcast": {}}', "has no `comm_type=intra`"),
    ],
)
def test_a_file_that_mpich_did_not_write_is_refused(tmp_path, text, why):
    file = tmp_path / "base.json"
    file.write_text(text)
    runtime = tuning.find("mpich")
    with pytest.raises(FileError, match=re.escape(why)):
        runtime.render(tuning.tables_of(runtime, crossing(runtime)), About("a test", base=file))


# --- rules ----------------------------------------------------------------------------------------


def test_noise_switches_nothing(runtime):
    """Which of two algorithms is ahead alternates by 8 %, within intervals of 5 % on both sides."""
    if runtime.library:
        pytest.skip("the same rules")
    first, second = list(runtime.algorithms["allreduce"])[-2:]
    rows = [
        row("allreduce", name, size, 100.0 + 8 * ((place + side) % 2), spread=0.05)
        for place, size in enumerate(SIZES)
        for side, name in enumerate((first, second))
    ]
    (table,) = tuning.tables_of(runtime, rows)
    assert [rule.why for rule in table.rules] == ["nothing is separable"]


def single(collective, algorithm, size, ns):
    """A measured row that has no interval."""
    return row(collective, algorithm, size, ns, spread=0.1) | {"ci_low": None, "ci_high": None}


def test_single_values_decide_where_they_are_far_apart():
    """At 8 B the ring is 15 % behind, which ±10 % on both sides covers; at 1 MiB it leads by 203 / 154 - 1 = 32 %."""
    rows = [
        single("allreduce", name, size, ns)
        for size, doubling, ring in ((8, 100.0, 115.0), (1 << 20, 203.0, 154.0))
        for name, ns in (("recursive_doubling_latency", doubling), ("ring", ring), ("linear", 9000.0))
    ]
    (table,) = tuning.tables_of(tuning.find("ucc"), rows)
    assert [(rule.size_bytes, rule.algorithm, rule.why) for rule in table.rules] == [
        (0, "ring", "separably faster than 1 of 1 others, by imprecise values")
    ]
    rows = [one if one["size_bytes"] > 8 or one["algorithm"] != "ring" else one | {"value": 130.0} for one in rows]
    (table,) = tuning.tables_of(tuning.find("ucc"), rows)
    assert [(rule.size_bytes, rule.algorithm, rule.why) for rule in table.rules] == [
        (0, "recursive_doubling_latency", "separably faster than 1 of 1 others, by imprecise values"),
        (1 << 20, "ring", "32% faster than recursive_doubling_latency, by imprecise values"),
    ]


def test_no_measured_size_contradicts_its_rule():
    """Whatever the values and their intervals: no choice is slower than the fastest by more than 1.1 / 0.9."""
    draw = random.Random(7)
    for _ in range(300):
        rows = [
            row("allreduce", name, size, ns := draw.uniform(100, 300), spread=0.01)
            | {"ci_low": spread and ns * (1 - spread), "ci_high": spread and ns * (1 + spread)}
            for size in SIZES
            for name in tuning.find("openmpi").algorithms["allreduce"]
            for spread in (draw.choice((None, 0.03, 0.1, 0.4)),)
        ]
        (table,) = tuning.tables_of(tuning.find("openmpi"), rows)
        for rule in table.rules:
            for size in rule.sizes:
                best = min(time.value for time in table.times[size].values())
                assert table.times[size][rule.algorithm].value <= best * 1.1 / 0.9 * 1.000001


def test_an_algorithm_that_the_runtime_lacks_is_left_out():
    """Swing is the fastest, but none of these runtimes has it."""
    rows = [row("allreduce", name, 8, ns) for name, ns in (("swing_latency", 1.0), ("ring", 5.0), ("linear", 9.0))]
    for runtime in map(tuning.find, ("openmpi", "ucc", "openmpi-json")):
        (table,) = tuning.tables_of(runtime, rows)
        assert [rule.algorithm for rule in table.rules] == ["ring"]


def test_powers_of_two_only_where_the_algorithm_needs_them():
    rows = [row("allgather", name, 8, ns, ranks=6) for name, ns in (("recursive_doubling", 1.0), ("ring", 5.0))]
    (table,) = tuning.tables_of(tuning.find("mpich"), rows)
    assert [rule.algorithm for rule in table.rules] == ["ring"]


def test_nccl_is_left_its_choice_where_nothing_is_separably_faster():
    """At 512 B the tree is 1 % faster than NCCL's choice, at 4096 B 50 %."""
    rows = [
        row("allreduce", f"nccl-2.27{name}", size, ns)
        for size, own, tree in ((512, 101.0, 100.0), (4096, 300.0, 200.0))
        for name, ns in (("", own), ("/tree/ll", tree), ("/ring/ll", 400.0))
    ]
    runtime = tuning.find("nccl")
    text = runtime.render(tables(rows, runtime.word, runtime.algorithms), About("a test", nodes=2)).text
    assert text.splitlines()[2:] == [
        "# allreduce from 4096 B, 8 ranks: tree/ll, 50% faster than the choice of nccl-2.27 at 4096 B",
        "allreduce,4096,4096,tree,ll,-1,2,8,-1,-1",
    ]


# --- the verb -------------------------------------------------------------------------------------


def test_tune_predicts_and_writes_the_file_with_its_reasons(tmp_path):
    out = tmp_path / "rules.json"
    more = ("--collectives", "allreduce,broadcast", "--ranks", "4,8", "--sizes", "1K,1M", "--out", str(out))
    done = invoke("tune", "--on", "dgx1-p100", "--for", "openmpi-json", *more)
    assert done.status == 0, done.err
    taken = read_openmpi_json(out.read_text())
    assert taken("allreduce", 4, 1024) == taken("allreduce", 8, 1024) == 3
    assert taken("allreduce", 6, 1024) is None
    assert "broadcast, 8 ranks, from 0 B: binomial" in (tmp_path / "rules.json.reasons.txt").read_text()


def test_tune_writes_channels_for_nccl():
    done = invoke("tune", "--on", "hgx-h100", "--for", "nccl", "--collectives", "allreduce", "--sizes", "8,32K,256K")
    assert done.status == 0, done.err
    lines = [line.split(",") for line in done.out.splitlines() if not line.startswith("#")]
    assert lines, "the model of the library finds something faster than its choice"
    assert all(int(fields[5]) > 1 for fields in lines)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--on", "dgx1-p100", "--for", "nope"), "unknown runtime `nope`"),
        (("--for", "ucc"), "give either --on MACHINE"),
        (("--on", "dgx1-p100", "--run", "latest", "--for", "ucc"), "give either --on MACHINE"),
        (("--on", "threads", "--for", "ucc"), "measures; make a run first"),
        (("--on", "wormhole-n150", "--for", "nccl"), "has no library nccl"),
        (("--on", "dgx1-p100", "--for", "mpich"), "with --base FILE"),
        (("--on", "dgx1-p100", "--for", "ucc", "--base", "x"), "does not extend a file"),
        (("--on", "dgx1-p100", "--for", "ucc", "--machine", "x"), "--machine: does not apply to --on"),
        (("--on", "dgx1-p100", "--for", "ucc", "--collectives", "gather"), "unknown collective of ucc `gather`"),
        (("--on", "dgx1-p100", "--for", "ucc", "--ranks", "1"), "has no time of an algorithm that ucc has"),
    ],
)
def test_tune_refuses_what_makes_no_sense(arguments, why):
    done = invoke("tune", *arguments)
    assert done.status == 2, done.out
    assert why in done.err


def test_the_registry_describes_every_runtime(runtime):
    done = invoke("describe", runtime.key)
    assert done.status == 0, done.err
    assert "allreduce" in done.out
    assert runtime.source.split(",")[0] in done.out


def test_a_run_without_a_fitting_time_says_so():
    from linkwright.cli.tune import _write

    with pytest.raises(UsageError, match="a test has no time of an algorithm that ucc has"):
        _write(tuning.find("ucc"), [], About("a test"), None)


# --- engines that serve models --------------------------------------------------------------------


def test_tune_writes_the_settings_of_an_engine(tmp_path):
    out = tmp_path / "vllm.sh"
    done = invoke("tune", "--on", "hgx-h100", "--for", "vllm-0.24", "-p", "2", "--sizes", "64M", "--out", str(out))
    assert (done.status, done.out) == (0, f"wrote {out}: vllm on hgx-h100, predicted\n")
    lines = out.read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["export VLLM_ALLREDUCE_USE_SYMM_MEM=0"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--for", "vllm", "--run", "latest"), "name a machine with --on MACHINE"),
        (("--for", "vllm", "--on", "hgx-h100", "--collectives", "reduce"), "--collectives: does not apply to --for"),
        (("--for", "vllm", "--on", "hgx-h100", "--tokens", "4"), "--tokens: does not apply to --for vllm"),
        (("--for", "nccl", "--on", "hgx-h100", "--topk", "4"), "--topk: does not apply to --for nccl"),
        (("--for", "deepep", "--on", "hgx-h100", "--sizes", "1K"), "--sizes: does not apply to --for deepep"),
        (("--for", "vllm", "--on", "hgx-h100", "--seed", "3"), "--seed: does not apply to --for vllm"),
        (("--for", "vllm", "--on", "hgx-h100", "--runs", "x"), "--runs: does not apply to --for vllm"),
        (("--for", "vllm", "--on", "hgx-h100", "--degrade", "nvlink=0.5"), "described on whole machines"),
        (("--for", "vllm", "--on", "hgx-h100", "-p", "2,4"), "answers for one number of ranks; give one"),
        (("--for", "vllm", "--on", "hgx-h100", "--sizes", "0"), "size 0: allreduce moves at least one element"),
        (("--for", "vlm", "--on", "hgx-h100"), "unknown runtime `vlm`; did you mean `vllm`?"),
        (("--for", "vllm-", "--on", "hgx-h100"), "unknown runtime `vllm-`; did you mean `vllm`?"),
    ],
)  # fmt: skip
def test_what_an_engine_does_not_have_is_refused(more, message):
    done = invoke("tune", *more)
    assert done.status == 2
    assert message in done.err


def test_an_engine_is_not_found_among_runtimes():
    with pytest.raises(UsageError, match="`vllm` is an engine, which takes settings and no table"):
        tuning.find("vllm")


def test_an_engine_needs_the_package_of_studies(monkeypatch):
    monkeypatch.setattr("linkwright.base.studies.installed", lambda: None)
    done = invoke("tune", "--on", "hgx-h100", "--for", "vllm")
    assert done.status == 2
    assert "linkwright-evidence, which is not installed" in done.err
