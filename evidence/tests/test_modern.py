"""The study of GPU libraries on systems of today: conditions, mapping, predictions, scores."""

import json
import math
from dataclasses import replace

import pytest

import linkwright_evidence as studies
from linkwright.base.errors import FileError, UsageError
from linkwright.cli.main import status_of
from linkwright.libraries.settings import Condition, Refusal, Setting, Setup, settle
from linkwright.libraries.times import Model, Predicted
from linkwright_evidence import Options
from linkwright_evidence.modern import cells, conditions, fit, floor
from linkwright_evidence.outcome import Cell

# Small tables of one node, several nodes, a bus rate and a case.
FEW = ("T0285", "T0262", "T0407", "T0428", "T0416")
HEAD = "table_id,machine,gpus,nodes,collective,library_version,size_bytes\n"
ENDS = "table_id,machine,gpus,nodes,collective,library_version,min_size,max_size\n"


def condition(machine: str, gpus: int = 8, nodes: int = 1, **more: str) -> Condition:
    return Condition("X", machine, gpus, nodes, "allreduce", **more)


def settled(machine: str, gpus: int = 8, nodes: int = 1, **more: str) -> Setting:
    found = settle(condition(machine, gpus, nodes, **more))
    assert isinstance(found, Setting), found
    return found


def forced(setting: Setting) -> list[str]:
    return setting.setup.algorithm.split("/")[1:]


@pytest.fixture(scope="module")
def outcome():
    return studies.reproduce("modern", Options(tables=FEW))


# ---- conditions


def test_every_table_is_settled_or_refused_with_a_reason():
    tables = cells.tables()
    assert len(tables) == 431
    refused = [table for table in tables if isinstance(table.setting, Refusal)]
    assert "no rule knows the machine `TPU v5e" in next(one.setting.reason for one in refused if one.id == "T0548")
    others = [one.setting.reason for one in refused if one.id != "T0548"]
    assert len(others) == 10
    assert all(reason.startswith("forced algorithm `CollnetSHARP`: not known") for reason in others)


def test_a_published_cell_is_the_median_of_out_of_place_and_in_place():
    """T0001, 32 B: 68.14 us out of place (an outlier, says its author) and 13.52 in place."""
    point = conditions.points()["T0001"][32]
    assert point.time_us == pytest.approx((68.14 + 13.52) / 2)
    assert point.spread == pytest.approx(68.14 / 13.52)


def test_cases_are_never_healthy():
    tables = conditions.published()
    assert all(not one.healthy for one in tables.values() if one.quality in ("case", "check") or one.split == "case")
    assert sum(one.healthy for one in tables.values()) > 200


@pytest.mark.parametrize("shape", ["cells", "sizes", "ends"])
def test_conditions_come_one_line_per_cell_or_per_table(tmp_path, shape):
    file = tmp_path / "asked.csv"
    lines = {
        "cells": HEAD
        + 'A,"H100-SXM (8)",8,1,all_reduce,NCCL 2.27.3,1024\nA,"H100-SXM (8)",8,1,all_reduce,NCCL 2.27.3,2K\n',
        "sizes": "table_id,machine,gpus,nodes,collective,library_version,sizes\n"
        'A,"H100-SXM (8)",8,1,all_reduce,NCCL 2.27.3,1K;2K\n',
        "ends": ENDS + 'A,"H100-SXM (8)",8,1,all_reduce,NCCL 2.27.3,1024,2048\n',
    }
    file.write_text(lines[shape])
    (one,) = conditions.read(file)
    assert (one.table_id, one.collective, one.sizes) == ("A", "allreduce", (1024, 2048))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table_id,machine\nA,H100\n", "no column `gpus`, `nodes`, `collective`"),
        ("", "no column"),
        (HEAD, "no rows"),
        (HEAD + "A,H100,eight,1,all_reduce,,8\n", "line 2: gpus = `eight`"),
        (HEAD + "A,H100,8,0,all_reduce,,8\n", "line 2: nodes = `0`"),
        (HEAD + "A,H100,8,1,all_reduce,,\n", "no sizes"),
        (f"{ENDS}A,H100,8,1,all_reduce,,2M,1M\n", "min_size 2M is above max_size 1M"),
        (HEAD + "A,H100,8,1,all_reduce,,many\n", "size `many`"),
        (HEAD + "A,H100,8,1,all_reduce,,0\n", "size `0`"),
        (HEAD + ",H100,8,1,all_reduce,,8\n", "may not be empty"),
        (HEAD + "A,H100,8,1,all_reduce,,8,9\n", "more fields than columns"),
        (HEAD + "A,H100,8,1,all_reduce,,8\nA,B200,8,1,all_reduce,,8\n", "other conditions above"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_line(tmp_path, text, message):
    file = tmp_path / "asked.csv"
    file.write_text(text)
    with pytest.raises((FileError, UsageError), match=message):
        conditions.read(file)


# ---- mapping


@pytest.mark.parametrize(
    ("words", "gpus", "nodes", "machine", "fabric"),
    [
        ("DGX H100 (8x H100-SXM, NVSwitch)", 8, 1, "hgx-h100", None),
        ("H100-SXM HGX (a cluster, 8x400Gb IB NDR)", 32, 4, "hgx-h100", "ndr-fat-tree,rate=400"),
        ("H100 (AWS p5.48xlarge, EFA 32x100Gb)", 16, 2, "hgx-h100", "efa-p5,rate=400"),
        ("A100 (AWS p4d.24xlarge, EFA 4x100Gb)", 16, 2, "a100-p4d", "efa-p4"),
        ("H100-SXM (GCP A3 Mega, TCPXO)", 16, 2, "hgx-h100", "gcp-tcpxo"),
        ("H100-SXM (GCP A3 High, TCPX)", 16, 2, "h100-a3-high", "gcp-tcpx"),
        ("GH200 (4 per node, 4x200Gb Slingshot-11)", 64, 16, "gh200-alps", "slingshot-11,rate=200"),
        ("GB200 NVL72 (1 rack)", 72, 18, "gb200-nvl72", None),
        ("GB200 NVL72 (2 racks)", 144, 36, "gb200-nvl72", "ndr-fat-tree"),
        ("MI300X (RoCE)", 16, 2, "mi300x", "roce-400"),
        ("B300 somewhere", 16, 2, "b300", "ndr-fat-tree,rate=800"),
    ],
)
def test_words_become_a_machine_and_a_network(words, gpus, nodes, machine, fabric):
    found = settled(words, gpus, nodes)
    assert (found.setup.machine, found.setup.fabric) == (machine, fabric)
    assert found.rules


def test_racks_are_counted_not_trays():
    found = settled("GB200 NVL72 (2 racks)", 144, 36)
    assert (found.setup.nodes, found.setup.gpus_per_node) == (2, 72)


def test_a_version_is_stated_or_assumed_and_says_so():
    assert settled("H100", library_version="NCCL 2.26.2").version == "2.26"
    assumed = settled("H100", library_version="NCCL unknown")
    assert assumed.version == "2.21"
    assert any("assumed" in rule for rule in assumed.rules)


def test_an_algorithm_is_forced_only_by_its_name():
    assert forced(settled("B200", algo="Ring")) == ["ring"]
    assert forced(settled("B200", algo="NVLS (forced by test label)", proto="Simple")) == ["nvls", "simple"]
    assert forced(settled("A100", algo="guide says NVLS (not possible on A100)")) == []
    assert forced(settled("H100", algo="NVLSTree (maintainer says multi-node large = NVLSTree)")) == []


def test_one_process_is_read_from_the_notes():
    assert settled("H100", notes="-g 8 single process").setup.one_process
    assert not settled("H100", notes="nccl-tests -t N -w 40").setup.one_process
    assert not settled("H100", 2, 2, notes="-g 8 single process").setup.one_process


def test_what_is_not_described_is_refused_with_its_reason():
    found = settle(condition("Abacus 9000"))
    assert isinstance(found, Refusal)
    assert "no rule knows" in found.reason


# ---- predictions and scores


def shape_of(collective: str = "allreduce", **more: object) -> Setup:
    return replace(Setup("hgx-h100", 1, 8, None, "nccl-2.29/ring", collective, False), **more)


def test_one_process_takes_at_least_a_launch_for_each_gpu():
    model = Model({"facts.launch_each": "10"})
    alone = model.time(shape_of(), 8).time_us
    together = model.time(shape_of(one_process=True), 8)
    assert alone < 80 == together.time_us
    assert together.choice.endswith("launches")
    large = 1 << 30
    assert model.time(shape_of(one_process=True), large).time_us == model.time(shape_of(), large).time_us


def test_bus_rates_are_those_of_nccl_tests():
    """8 GPUs, 1 GiB in 4 ms: 268.4 GB/s; x 2 x 7/8 of an allreduce, x 7/8 of an allgather, x 1 of a sendrecv."""
    plain = (1 << 30) / 4000 / 1e3
    for collective, factor in (("allreduce", 1.75), ("allgather", 0.875), ("sendrecv", 1.0)):
        assert cells.bus_rate(shape_of(collective), 1 << 30, 4000) == pytest.approx(factor * plain)


def made(table: str, predicted: float, reference: float, **more: object) -> Cell:
    keys = {"table_id": table, "machine": "m", "collective": "c", "gpus": 8, "nodes": 1, "size_bytes": 8}
    return Cell("m, c, 1 node, < 1 MiB", keys, predicted, reference, "us", **more)


def test_scores_are_medians_by_group_with_their_sign():
    """Errors of -10 %, +20 % and -30 %: median 20 %, 90th percentile 30 %, bias -10 %; a case does not count."""
    rows = cells.scores([made("A", 9, 10), made("B", 12, 10), made("C", 7, 10), made("D", 99, 10, erratum="a case")])
    (row,) = rows
    assert (row["tables"], row["cells"], row["median_percent"], row["p90_percent"], row["bias_percent"]) == (
        3,
        3,
        20,
        30,
        -10,
    )


def test_the_floor_is_what_one_value_for_all_tables_leaves():
    """Published 9, 10 and 12: the middle is 10, its errors 11.1, 0 and 16.7 %. The model says 11: 22.2, 10, 8.3."""
    (row,) = floor.rows([made("A", 11, 9), made("B", 11, 10), made("C", 11, 12), made("D", 11, 50, erratum="a case")])
    assert (row["tables"], row["floor_percent"], row["model_percent"]) == (3, 11.1, 10.0)
    assert (row["floor_p90_percent"], row["model_p90_percent"]) == (16.7, 22.2)
    assert floor.pooled([]) is None


def test_few_tables_are_near_what_was_published(outcome):
    assert {cell.keys["table_id"] for cell in outcome.cells} == set(FEW)
    large = cells.pooled(outcome.cells, lambda cell: not cell.erratum and cell.keys["nodes"] == 1)
    assert large.median < 0.15
    rate = next(cell for cell in outcome.cells if cell.keys["table_id"] == "T0428")
    assert rate.unit == "GB/s"
    assert next(cell for cell in outcome.cells if cell.keys["table_id"] == "T0416").erratum


def test_fitted_tables_are_marked_and_no_case_is_fitted_to(outcome):
    healthy = {one.table_id for one in conditions.published().values() if one.healthy and one.split == "fit"}
    assert fit.fitted_to() <= healthy
    for cell in outcome.cells:
        assert (cell.role == "fitted") == (cell.keys["table_id"] in fit.fitted_to())


def test_numbers_are_counted_by_kind():
    for one in fit.FITS:
        assert len(one.keys) <= {"part": 6, "network": 3}[one.kind], one.name


def test_a_prediction_does_not_depend_on_what_was_asked_before():
    first, again = Model(), Model()
    assert first.time(shape_of(), 1 << 20) == again.time(shape_of(), 1 << 20)
    again.time(shape_of("allgather"), 1 << 20)
    assert isinstance(again.time(shape_of(), 1 << 20), Predicted)
    assert math.isfinite(again.time(shape_of(), 1 << 20).time_us)


def test_conditions_give_json(tmp_path, capsys):
    file = tmp_path / "asked.csv"
    file.write_text(
        HEAD + "A,H100-SXM,8,1,all_reduce,NCCL 2.29,1M\nB,Abacus 9000,8,1,all_reduce,,1M\n"
        "C,H100-SXM,8,1,all_shout,,1M\nD,H100-SXM,9,2,all_reduce,,1M\n"
    )
    assert status_of(["reproduce", "modern", "--conditions", str(file), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["tables"]
    (row,) = found["predictions"]
    assert (row["table_id"], row["size_bytes"], row["fitted"]) == ("A", 1 << 20, True)
    assert 10 < row["time_us"] < 60
    reasons = {row["table_id"]: row["reason"] for row in found["refused"]}
    assert "no rule knows" in reasons["B"]
    assert "unknown collective `all_shout`" in reasons["C"]
    assert "9 GPUs on 2 nodes" in reasons["D"]


def test_conditions_are_printed_with_what_was_fitted(tmp_path, capsys):
    file = tmp_path / "asked.csv"
    file.write_text(HEAD + "A,H100-SXM,8,1,all_reduce,NCCL 2.29,1M\n")
    assert status_of(["reproduce", "modern", "--conditions", str(file), "--runs", str(tmp_path / "runs")]) == 0
    out = capsys.readouterr().out
    assert f"machine hgx-h100 for {file}: 7 fitted numbers" in out
    assert "1 cell predicted; 0 tables refused" in out
    assert "within 10 %" not in out  # no empty table of errors


@pytest.mark.parametrize("extra", [["--table", "T0001"], ["--machine", "b200"], ["--full"], ["--ablate"]])
def test_conditions_refuse_what_is_about_published_tables(tmp_path, capsys, extra):
    assert status_of(["reproduce", "modern", "--conditions", str(tmp_path / "x.csv"), *extra]) == 2
    assert f"which {extra[0]} is about; leave {extra[0]} out" in capsys.readouterr().err


def test_options_of_this_study_are_refused_elsewhere(tmp_path, capsys):
    assert status_of(["reproduce", "torus", "--conditions", str(tmp_path / "x.csv")]) == 2
    assert "study `torus` has no --conditions" in capsys.readouterr().err
    assert status_of(["reproduce", "modern", "--table", "T9999"]) == 2
    assert "unknown table `T9999`" in capsys.readouterr().err
    assert status_of(["reproduce", "modern", "--machine", "hgx-h10"]) == 2
    assert "did you mean `hgx-h100`" in capsys.readouterr().err
    assert status_of(["reproduce", "modern", "--machine", "b200", "--table", "T0001"]) == 2
    assert "no table is both T0001 and of b200" in capsys.readouterr().err
