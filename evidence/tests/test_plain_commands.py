"""The plain command gives the figure of a study for the same question, to the picosecond.

What no plain command can ask, and why:

    gpu-nodes   copies of one pair, and both ways: `simulate` places ranks in topology order; figure 1: a share of the
                peak that is searched
    cell        figures 4 to 7: rates in the steady state, counted from the 128th DMA of each SPE; the rest are DMA
                programs, which no schedule expresses
    ipu         point to point, between chips, and all-to-all: tiles drawn at random or named; sums: several supersteps;
                from the host: blocks in its memory; memory: six threads on each tile, and a run has one for each
"""

import functools
import json

import pytest

from linkwright.base.units import parse_size
from linkwright.machines import load
from linkwright_cases import invoke
from linkwright_evidence import Options
from linkwright_evidence.cell import collectives as cell
from linkwright_evidence.gpu_nodes import collectives, training
from linkwright_evidence.gpu_nodes.machine_pair import NAMES, PAYLOAD_BYTES, Machines
from linkwright_evidence.gpu_nodes.networks import network
from linkwright_evidence.ipu import collectives as exchanges
from linkwright_evidence.ipu.bench import Bench
from linkwright_evidence.ipu.tables import Waived
from linkwright_evidence.published import reference_rows
from linkwright_evidence.vollo import grid


def values(tmp_path, *words, metric="time"):
    """(algorithm, bytes) -> value of a plain `simulate`."""
    file = tmp_path / "rows.json"
    result = invoke("simulate", *words, "--output", str(file))
    assert result.status == 0, result.err
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return {(row["algorithm"], row["size_bytes"]): row["value"] for row in rows if row["metric"] == metric}


machine = functools.cache(load)

# --- Eight P100s --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [way for way in collectives.WAYS if way != collectives.PLAN])
@pytest.mark.parametrize("gpus", collectives.COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_ring_of_the_paper(name, gpus, path, tmp_path):
    sizes = ",".join(map(str, collectives.SIZES))
    found = values(tmp_path, "allreduce", "-a", "ring", "--on", name, "-p", str(gpus), "--path", path, "--sizes", sizes)
    study = {("ring", s): collectives.allreduce(machine(name), s, gpus, path).seconds for s in collectives.SIZES}
    assert found == pytest.approx({key: 1e9 * seconds for key, seconds in study.items()}, rel=1e-12)


@pytest.mark.parametrize("kind", collectives.KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_both_versions_of_the_library(name, kind, tmp_path):
    sizes = (4096, 65_536, 1 << 20, 16 << 20, PAYLOAD_BYTES)
    found = values(tmp_path, kind, "-a", "own", "--on", name, "--sizes", ",".join(map(str, sizes)))
    study = {
        (f"nccl-{version}", size): 1e3 * collectives.by_version(machine(name), version, kind, size)["time_us"]
        for version in ("1.3.4", "2.3.5")
        for size in sizes
    }
    assert found == pytest.approx(study, rel=1e-12)


def test_the_default_is_the_first_version(tmp_path):
    study = collectives.by_version(machine("dgx1-p100"), "1.3.4", "allreduce", 1 << 20)["time_us"]
    found = values(tmp_path, "allreduce", "--on", "dgx1-p100", "--sizes", "1M")
    assert found == {("nccl-1.3.4", 1 << 20): pytest.approx(1e3 * study, rel=1e-12)}


STEPS = [
    (key, depth, batch, algorithm)
    for key, depths, batches in (
        ("alexnet", [None], (256, 512)),
        ("googlenet", [None], (256, 512)),
        ("resnet", [1, 8, 32], (16, 32, 64)),
    )
    for depth in depths
    for batch in batches
    for algorithm in ("ring", "nccl-2.3.5")
]


@pytest.mark.parametrize(("key", "depth", "batch", "algorithm"), STEPS)
def test_steps_of_training(key, depth, batch, algorithm):
    words = ["--batch", str(batch), "--gpus", "2,4,8", "-a", algorithm, *(["--depth", str(depth)] if depth else [])]
    result = invoke("predict", key, "--on", ",".join(NAMES), *words, "--json")
    assert result.status == 0, result.err
    found = {(step["machine"], step["gpus"]): step["step_ns"] for step in json.loads(result.out)["steps"]}
    how = training.LIBRARIES[algorithm]
    for name, where in Machines.load().items():
        trainer = training._trainer(network(key, depth), where, how)
        for gpus in (2, 4, 8):
            assert found[name, gpus] == pytest.approx(trainer.step(batch, gpus).time_ns, rel=1e-12)


# --- Cell ---------------------------------------------------------------------------------------------------------


def test_every_allreduce_on_the_ring_bus(tmp_path):
    sizes = ",".join(map(str, cell.SIZES))
    found = values(tmp_path, "allreduce", "--on", "cell-be", "--sizes", sizes)
    rows = cell.measure(machine("cell-be"), Options())
    study = {(row["algorithm"], row["size_bytes"]): 1e3 * row["time_us"] for row in rows}
    assert {key: value for key, value in found.items() if value is not None} == pytest.approx(study, rel=1e-12)


# --- IPU ----------------------------------------------------------------------------------------------------------

# Table -> collective, algorithm, path, and the study's time of a row.
ROOTED = {
    "t4_08_broadcast_latency.csv": ("broadcast", "multicast", "words", exchanges.broadcast),
    "t4_09_broadcast_bandwidth.csv": ("broadcast", "multicast", "words", exchanges.broadcast),
    "t4_11_gather_latency.csv": ("gather", "linear", "words", exchanges.gather_words),
    "t4_12_gather_bandwidth.csv": ("gather", "linear", "gather_blocks", exchanges.gather_blocks),
    "t4_13_scatter_latency.csv": ("scatter", "linear", "scatter_words", exchanges.scatter_words),
    "t4_14_scatter_bandwidth.csv": ("scatter", "linear", "scatter_blocks", exchanges.scatter_blocks),
}
ON_CHIP = [
    (file, row)
    for file in ROOTED
    for row in reference_rows("ipu", file)
    if row["placement"] == "on-chip" and row["metric"] in ("latency", "bandwidth_aggregate")
]


@pytest.fixture(scope="module")
def bench():
    return Bench.shipped()


@pytest.mark.parametrize(("file", "row"), ON_CHIP, ids=[f"{file[:5]}-{row['row']}" for file, row in ON_CHIP])
def test_collectives_with_a_root_on_one_chip(file, row, bench, tmp_path):
    collective, algorithm, path, study = ROOTED[file]
    block = int(row.get("message_bytes") or 4)
    time_us = study(bench, row, block)
    if isinstance(time_us, Waived):
        return
    ranks = min(int(row["endpoints"]) + 1, 1216)
    size = block // 4 * 4 * (1 if collective == "broadcast" else ranks)
    words = ("-a", algorithm, "--on", "ipu-c2-chip", "-p", str(ranks), "--path", path, "--sizes", str(size))
    found = values(tmp_path, collective, *words)
    assert found == {(algorithm, size): pytest.approx(1e3 * time_us, rel=1e-12)}


# --- Vollo --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", grid.MODES)
def test_round_trips(mode, tmp_path):
    sizes = ",".join(str(grid.BYTES_PER_VALUE * value) for value in grid.VALUES)
    axes = ("-x", f"transport={grid.TRANSPORT[mode]}", "-x", f"in_bytes={sizes}", "-x", f"out_bytes={sizes}")
    file = tmp_path / "rows.json"
    outputs = ("--output", str(file), "--runs", str(tmp_path / "runs"))
    result = invoke("run", "round_trip", "--on", "vollo-ia420f", *axes, *outputs)
    assert result.status == 0, result.err
    found = {}
    for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
        for statistic in grid.STATISTICS:
            if row["metric"] == f"round_trip_{statistic}":
                about = dict(word.split("=") for word in row["axes"].split())
                found[statistic, row["size_bytes"], parse_size(about["out_bytes"])] = row["value"]
    cells = grid.modelled(machine("vollo-ia420f"), [(mode, i, o) for i in grid.VALUES for o in grid.VALUES])
    study = {
        (statistic, grid.BYTES_PER_VALUE * i, grid.BYTES_PER_VALUE * o): 1e3 * time
        for (_, statistic, i, o), time in cells.items()
    }
    assert len(study) == 2 * 81
    assert found == pytest.approx(study, rel=1e-12)
