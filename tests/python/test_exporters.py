"""Every registered format on runs as they are: measured, modelled, with failures; and rules out of noise."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from linkwright.base.errors import FileError, StoreError
from linkwright.formats import interop
from linkwright.formats.interop.importing import Defaults
from linkwright.formats.interop.logs import take
from linkwright.store import run as runs
from linkwright.store import schema
from linkwright_cases import BRIEF, invoke

# What a quick dissect holds: a probe between two processors, messages between them, collectives.
QUICK = """
[suite]
format = 1
name = "quick"
summary = "one of each kind"
[[part]]
name = "cache_line"
summary = "a line of one processor, read by another"
probe = "cache_line"
placement = "every_pair"
axes = { how = ["one_way"] }
modelled = { placement = "topology" }
[[part]]
name = "latency"
summary = "half a round trip"
pattern = "ping_pong"
placement = "every_pair"
ranks = [2]
sizes = ["8"]
dtype = "u8"
metrics = ["latency"]
[[part]]
name = "collectives"
summary = "two algorithms"
collectives = ["allreduce"]
algorithms = ["ring", "recursive_doubling_latency"]
ranks = [2]
sizes = ["8", "4K"]
metrics = ["time", "alg_bw", "bus_bw"]
"""


def row(metric, value, **more):
    words = {"run": "r", "suite": "s", "machine": "box", "executor": "threads", "ranks": 2, "size_bytes": 8,
             "dtype": "f32", "status": "ok", "placement": "topology"}  # fmt: skip
    words["experiment"] = f"{more.get('algorithm')}/{more.get('size_bytes', 8)}/{more.get('placement', '')}"
    return schema.row(**{**words, "metric": metric, "value": value, "unit": schema.METRICS[metric][0], **more})


def stored(folder, rows):
    run = runs.create(folder, "dissect", "", {})
    run.write_results(rows, runs.samples_table(run, []))
    return run


def rows_of(status, value):
    """A matrix, a probe and a collective whose rows all have this status."""
    pairs = (("cpu 0", "cpu 1"), ("cpu 1", "cpu 0"))
    ring = {"collective": "allreduce", "algorithm": "ring", "op": "sum"}
    why = {"status": status, "reason": None if status == "ok" else "planted"}
    return [
        *(row("latency", value, placement="->".join(p), algorithm="ping_pong", **why) for p in pairs),
        row("latency", value, placement="cpu 0->cpu 1", algorithm="cache_line", axes="how=one_way", **why)
        | {"size_bytes": None},
        *(row(metric, value, **ring, **why) for metric in ("time", "alg_bw", "bus_bw")),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Name -> a run of that kind."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "quick.toml").write_text(QUICK)
    asked = ("dissect", "--suite", str(folder / "quick.toml"))
    made = {}
    for name, on in (("measured", ("threads", *BRIEF)), ("modelled", ("crossbar", "--ranks", "2"))):
        result = invoke(*asked, "--on", *on, "--runs", str(folder / name))
        assert result.status == 0, result.err
        made[name] = runs.find(folder / name, "latest")
    bad = [row for status in schema.STATUS if status != "ok" for row in rows_of(status, None)]
    made["some failed"] = stored(folder / "some", [*rows_of("ok", 100.0), *bad])
    made["all failed"] = stored(folder / "all", bad)
    return made


@pytest.mark.parametrize("name", ["measured", "modelled", "some failed"])
@pytest.mark.parametrize("exporter", interop.EXPORTERS, ids=lambda e: e.key)
def test_every_exporter_takes_every_run(known, exporter, name):
    assert size(exporter.render(interop.content(known[name]))) > 100


def size(rendered):
    """Bytes of a file or of a folder."""
    return sum(map(len, rendered.values())) if isinstance(rendered, dict) else len(rendered)


NEEDS_A_VALUE = {"nccl-tests": "no finished collective; ", "openmpi-rules": "no collective that Open MPI has .*; "}


@pytest.mark.parametrize("exporter", interop.EXPORTERS, ids=lambda e: e.key)
def test_a_run_without_any_value_is_written_or_refused_with_a_reason(known, exporter):
    content = interop.content(known["all failed"])
    if exporter.key in NEEDS_A_VALUE:
        with pytest.raises(StoreError, match=NEEDS_A_VALUE[exporter.key]):
            exporter.render(content)
    else:
        assert size(exporter.render(content)) > 100


@pytest.mark.parametrize("text", ["", "\n", "\x00\x01", "# a comment\n", "1 2 3\n"], ids=repr)
def test_what_no_tool_printed_is_not_imported(text):
    with pytest.raises(FileError, match="x: holds no table of a known tool"):
        take(Path("x"), Defaults(ranks=2), text=text)


def test_the_matrix_of_a_quick_run_is_that_of_messages(known):
    topology = ElementTree.fromstring(interop.exporter("hwloc").render(interop.content(known["some failed"])))
    # The failed rows of the same pairs do not hide the value, nor does the probe between them.
    lines = [line.text.split() for line in topology.find("distances2").findall("u64values")]
    assert lines == [["0", "100"], ["100", "0"]]


def test_endpoints_that_the_system_does_not_list_are_units_of_their_own(tmp_path):
    sms = [row("latency", 700.0, placement=f"SM {a}->SM {1 - a}", algorithm="ping_pong") for a in (0, 1)]
    content = interop.content(stored(tmp_path, [{**one, "executor": "cuda"} for one in sms]))
    topology = ElementTree.fromstring(interop.exporter("hwloc").render(content))
    assert [one.get("value") for one in topology.iter("info")] == ["box", "SM 0", "SM 1"]


# --- rules ------------------------------------------------------------------------------------------

LATENCY, RING = "recursive_doubling_latency", "ring"


def times(by_size, spread, executor="threads"):
    """Rows of `{size: {algorithm: time}}`, each with an interval of `spread` on both sides; None: without one."""
    return [
        row(
            "time", value, collective="allreduce", algorithm=name, size_bytes=size, executor=executor,
            ci_low=None if spread is None else value * (1 - spread),
            ci_high=None if spread is None else value * (1 + spread),
        )
        for size, found in by_size.items()
        for name, value in found.items()
    ]  # fmt: skip


def rules(tmp_path, rows):
    text = interop.exporter("openmpi-rules").render(interop.content(stored(tmp_path, rows)))
    lines = [re.sub(r"^(\d+) \d+ 0 0 # from \1 B: ", r"\1 ", line) for line in text.splitlines()[8:]]
    largest = max(one["size_bytes"] for one in rows)
    # Above the largest size that was timed, and on other numbers of ranks, Open MPI decides as it would without a file.
    assert lines[-4:] == [
        f"{largest + 1} as without rules, nothing was timed", "3 # processes", "1 # message sizes",
        "0 as without rules, nothing was timed",
    ]  # fmt: skip
    return lines[:-4]


# Which of the two is ahead alternates from size to size, by 8 %.
NOISE = {
    size: {LATENCY: 100.0, RING: 108.0 if number % 2 else 92.0} for number, size in enumerate((8, 64, 512, 4096, 32768))
}


def test_noise_makes_one_rule(tmp_path):
    assert rules(tmp_path, times(NOISE, 0.05)) == [f"0 {RING}, nothing is separable"]


def test_times_without_an_interval_are_separable_from_none(tmp_path):
    assert rules(tmp_path, times(NOISE, None)) == [f"0 {RING}, nothing is separable"]


def test_a_separable_difference_makes_a_rule_and_says_its_gain(tmp_path):
    crossing = {
        8: {LATENCY: 100.0, RING: 200.0},
        512: {LATENCY: 100.0, RING: 98.0},
        4096: {LATENCY: 300.0, RING: 200.0},
    }
    # At 512 B ring is ahead, but by less than anybody could tell, so the switch waits for 4096 B.
    assert rules(tmp_path, times(crossing, 0.03)) == [
        f"0 {LATENCY}, separably faster than 1 of 1 others",
        f"4096 {RING}, 50% faster than {LATENCY}",
    ]


def test_modelled_times_are_exact_but_a_trifle_makes_no_rule(tmp_path):
    by = {8: {LATENCY: 100.0, RING: 150.0}, 64: {LATENCY: 101.0, RING: 100.0}, 512: {LATENCY: 110.0, RING: 100.0}}
    assert rules(tmp_path, times(by, None, "sim")) == [
        f"0 {LATENCY}, separably faster than 1 of 1 others",
        f"512 {RING}, 10% faster than {LATENCY}",
    ]


def test_an_algorithm_without_a_time_at_a_size_is_not_used_there(tmp_path):
    by = {8: {LATENCY: 100.0}, 64: {RING: 100.0}}
    assert rules(tmp_path, times(by, 0.01)) == [
        f"0 {LATENCY}, the only one with a time",
        f"64 {RING}, {LATENCY} was not timed here",
    ]


def test_export_prints_the_rules(known):
    result = invoke("export", "--as", "openmpi-rules", "--runs", str(known["modelled"].folder.parent))
    assert result.status == 0, result.err
    assert "# allreduce" in result.out
    assert json.loads(invoke("export", "--as", "json", "--runs", str(known["modelled"].folder.parent)).out)["rows"]
