"""Probes: one registry, measured and modelled by the same axes, in suites like schedules."""

import dataclasses
import json
import tomllib

import pandas as pd
import pytest

from linkwright import _native, machines
from linkwright.ask.question import of_json
from linkwright.base import units
from linkwright.base.errors import FileError, LinkwrightError, OutOfTimeError, UsageError, WaivedError
from linkwright.executors import probes
from linkwright.executors.protocol import Extent
from linkwright.session.suite import load
from linkwright.session.suite.expand import expand
from linkwright.store import run as runs
from linkwright.store import schema
from linkwright.store.record import Record, to_json
from linkwright_cases import BRIEF, invoke

QUICK = probes.Setting(cpus=tuple(_native.cpus()), budget_s=0.05, samples=7, warmup_at_most=2, most_bytes=64 << 20)

SUITE = """
[suite]
format = 1
name = "s"
summary = "s"

[[part]]
name = "memory"
summary = "local memory"
probe = "memory_latency"
[part.axes]
working_set = { min = "4K", max = "8 * last_cache", factor = 4 }
pages = ["4K", "2M"]
neighbours = [0, "others"]
"""


@pytest.mark.parametrize("key", probes.registry())
def test_every_probe_describes_itself_and_answers(key):
    probe = probes.find(f"probe/{key}")
    assert probe.measure or probe.modelled
    for metric in probe.metrics:
        assert metric.source in ("time", "counted_rate", "moved_rate", "work_rate", "column")
        known = schema.METRICS.get(metric.key)
        assert known is None or known[0] == metric.unit, "one name, one unit"
    axes = probe.assignment({})
    assert probe.assignment({axis.key: axis.text(axes[axis.key]) for axis in probe.axes}) == axes
    if probe.measure:
        try:
            record = probes.measure(key, axes, QUICK)
        except (WaivedError, OutOfTimeError):
            return
        assert record.values_ns or sum(record.dropped.values())
        columns = {metric.key for metric in probe.metrics if metric.source == "column"}
        assert set(record.columns) <= columns
        json.dumps(to_json(record), allow_nan=False)


@pytest.mark.parametrize("name", ["crossbar", "loggp"])
@pytest.mark.parametrize("key", probes.registry())
def test_a_machine_without_parameters_waives(name, key):
    with pytest.raises(WaivedError, match="waived"):
        probes.model(machines.load(name).with_endpoints(4), key, probes.find(key).assignment({}))


def test_axes_expand_for_the_machine():
    suite = load.parse(SUITE, "s.toml")
    found = expand(suite, Extent("measured", 4, last_cache=8 << 10))
    assert len(found) == 3 * 2 * 2  # 4K, 16K, 64K
    assert found[0].key == "memory/probe/memory_latency/working_set=4K"
    assert found[-1].key == "memory/probe/memory_latency/working_set=64K/pages=2M/neighbours=3"
    assert of_json(json.loads(json.dumps(found[-1].to_json()))) == found[-1]
    alone = expand(suite, Extent("measured", 1, last_cache=8 << 10))
    assert len(alone) == 3 * 2, "one endpoint has no others"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"memory_latency"', '"memory_latncy"', "did you mean `memory_latency`"),
        ("pages =", "page =", "did you mean `pages`"),
        ('"2M"]', '"3M"]', "unknown value of axis pages"),
        ("factor = 4", "fctor = 4", "missing key `factor`; did you mean it by `fctor`"),
        ("[0, ", '["none", ', "not a whole number"),
        ("[part.axes]", 'dtype = "f32"\n[part.axes]', "`dtype` does not apply to a probe"),
        ('probe = "memory_latency"', 'pattern = "pairs"\nsizes = ["8"]', "`axes` are those of a `probe`"),
        ("[part.axes]", 'pattern = "pairs"\n[part.axes]', "name exactly one"),
    ],
)
def test_mistakes_in_a_suite_name_the_cure(old, new, message):
    with pytest.raises((FileError, UsageError), match=message):
        expand(load.parse(SUITE.replace(old, new), "s.toml"), Extent("measured", 2))


def test_measured_and_modelled_stand_side_by_side(tmp_path):
    machine = tmp_path / "tiles.toml"
    text = next(m for m in machines_text("crossbar"))
    machine.write_text(text + MEMORY, encoding="utf-8")
    result = invoke(
        "run", "memory_latency", "--on", f"threads,{machine}", "-x", "working_set=4K,1G", "-n", "8",
        *BRIEF, "--runs", str(tmp_path), "--output", str(tmp_path / "rows.json"),
    )  # fmt: skip
    assert result.status == 0, result.err
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    latencies = {(r["executor"], r["size_bytes"]): r for r in rows if r["metric"] == "latency" and r["value"]}
    assert latencies["sim", 4096]["value"] == 6.0
    assert latencies["sim", 4096]["ci_low"] is None
    assert latencies["threads", 4096]["value"] > 0.1
    assert latencies["threads", 4096]["axes"] == "order=random pages=4K neighbours=0 neighbours_do=chase"
    waived = [r for r in rows if r["status"] == "waived" and r["executor"] == "sim"]
    assert waived
    assert "fit into no level" in waived[0]["reason"]
    assert [line.split()[:3] for line in result.out.splitlines() if line.split()[0] == "4K"] == [
        ["4K", *units.format_time(latencies[on, 4096]["value"]).split()] for on in ("threads", "sim")
    ]
    assert "# probe memory_latency" in result.out
    assert "redop" not in result.out  # a column of collectives
    assert rows[0]["experiment"] == "memory_latency/probe/memory_latency/working_set=4K"
    run = runs.find(tmp_path, "latest")
    samples = pd.DataFrame(run.samples().records())
    assert (samples["value_ns"] > 0).all()
    assert tomllib.loads((run.folder / "suite.toml").read_text())["part"][0]["probe"] == "memory_latency"


def machines_text(name):
    from linkwright.base import registry

    yield registry.machine_path(name).read_text(encoding="utf-8")


MEMORY = """
[[probe.memory.level]]
name = "SRAM"
size = { value = 256, unit = "KiB", status = "assumed", source = "a round number" }
latency = { value = 6, unit = "ns", status = "assumed", source = "a round number" }
read = { value = 16, unit = "GB/s", status = "assumed", source = "a round number" }
write = { value = 8, unit = "GB/s", status = "assumed", source = "a round number" }
"""


def test_a_misspelt_parameter_is_found_when_the_file_is_read(tmp_path):
    file = tmp_path / "tiles.toml"
    file.write_text(next(machines_text("crossbar")) + MEMORY.replace("latency", "latncy"), encoding="utf-8")
    result = invoke("machines", "show", str(file))
    assert result.status == 2
    assert "latncy" in result.err


def test_a_probe_in_python_has_the_same_shape(monkeypatch):
    def measure(axes, setting):
        values = [float(axes["bytes"])] * setting.samples
        return Record(
            values_ns=values, first_ns=9.0, counted_bytes=16.0, columns={"share": [0.5] * setting.samples}
        )  # fmt: skip

    probe = probes.ProbeKind(
        key="echo", summary="s", description="d", source="s", waived="never", size_axis="bytes", measure=measure,
        axes=(probes.Axis("bytes", "bytes", "a size", "8"),),
        metrics=(probes.Metric("latency", "ns", "low", "m", "time"), probes.Metric("share", "1", "", "m", "column")),
    )  # fmt: skip
    monkeypatch.setitem(probes.registry(), "echo", probe)
    record = probes.measure("echo", probe.assignment({"bytes": "1K"}), QUICK)
    suite = load.one_part("p", "s", probe="echo", axes={"bytes": ("1K",)})
    (experiment,) = expand(suite, Extent("measured", 2))
    assert experiment.key == "p/probe/echo/bytes=1K"
    from linkwright.executors.measured import Measured
    from linkwright.session.suite import rows

    measured = Measured.of([record] * 6)
    found = rows.of_samples(rows.Context("r", "s", "m", "threads", ()), experiment, (), measured)
    by_metric = {row["metric"]: row for row in found}
    assert by_metric["latency"]["value"] == 1024.0
    assert (by_metric["share"]["value"], by_metric["share"]["unit"]) == (0.5, "1")
    # A launch may leave a column out; so may all.
    silent = dataclasses.replace(record, columns={})
    assert set(Measured.of([silent, record]).columns) == {"share"}
    assert Measured.of([silent] * 6).columns == {}
    with pytest.raises(WaivedError, match="no model"):
        probes.model(machines.load("crossbar"), "echo", probe.assignment({}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["memory_latncy"], "did you mean `memory_latency`"),
        (["memory_latency", "-x", "working_set"], "write an axis and its values"),
        (["memory_latency", "-x", "set=4K"], "unknown axis"),
        (["memory_latency", "-x", "working_set=much"], "is not a number of bytes"),
        (["memory_latency", "-x", "order=randm"], "did you mean `random`"),
        (["memory_latency", "-x", "working_set=4K", "-x", "working_set=8K"], "--axis working_set: is given twice"),
    ],
)
def test_bad_input_is_one_clear_message(tmp_path, arguments, message):
    result = invoke("run", *arguments, "--runs", str(tmp_path))
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1


def test_an_unknown_option_of_a_native_probe_is_an_error():
    with pytest.raises(LinkwrightError, match="unknown option"):
        _native.run_probe("memory_latency", {}, {"smaples": 3})


def test_a_part_is_run_from_its_level_on():
    suite = load.parse(SUITE.replace("[part.axes]", 'level = "normal"\n[part.axes]'), "s.toml")
    assert not suite.at("quick").parts
    assert suite.at("normal").parts == suite.at("full").parts == suite.parts
    with pytest.raises(UsageError, match="did you mean `normal`"):
        load.parse(SUITE.replace("[part.axes]", 'level = "norml"\n[part.axes]'), "s.toml")
