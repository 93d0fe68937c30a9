"""The study of published training throughputs: rows, conditions, the one number of a GPU, refusals."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from linkwright.base.errors import FileError
from linkwright_evidence import Options, reproduce
from linkwright_evidence.training import cells, fit
from linkwright_evidence.training.predict import COLUMNS, MODELS, SYSTEMS, ThroughputModel

HEAD = "task,release,model,system,gpus,precision,gbs,mbs,seq,fsdp,tp,pp,cp,vp,ep\n"
LLAMA = "pretrain,26.04,LLAMA3_70B,DGX-H100,64,FP8,256,1,8192,0,4,8,1,5,n/a\n"


def asked(folder: Path, lines: str) -> Path:
    file = folder / "asked.csv"
    file.write_text(HEAD + lines, encoding="utf-8")
    return file


def test_conditions_are_answered_as_they_stood(tmp_path):
    """In order, with what stands for a system, and a reason where there is no prediction."""
    lines = LLAMA + "pretrain,26.04,Nemotron_3_Nano,DGX-H100,8,BF16,512,1,8192,0,1,1,1,n/a,8\n"
    lines += LLAMA.replace("DGX-H100", "DGX-X9") + LLAMA.replace(",4,8,", ",4,7,")
    found = reproduce("training", Options(conditions=asked(tmp_path, lines))).as_dict()
    rows = found["tables"]["predictions"]
    assert [row["model"] for row in rows] == ["LLAMA3_70B", "Nemotron_3_Nano", "LLAMA3_70B", "LLAMA3_70B"]
    assert rows[0]["predicted"] == found["cells"][0]["predicted"] == pytest.approx(1633, rel=0.01)
    assert [row["predicted"] for row in rows[1:]] == [None] * 3
    for row, words in zip(rows[1:], ("is not described", "DGX-X9", "use 56 GPUs"), strict=True):
        assert words in row["remark"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,system\n", "no column `task`"),
        (HEAD, "no rows"),
        (HEAD + LLAMA.replace(",64,", ",many,"), "gpus is `many`"),
        (HEAD + LLAMA.replace(",4,8,", ",four,8,"), "tp is `four`"),
        (HEAD + LLAMA.replace(",64,", ",100000000,"), "below 10\\^8"),
        (HEAD + LLAMA.strip() + ",1\n", "more fields than columns"),
        (HEAD + "pretrain,26.04\n", "line 2: gpus is ``"),
    ],
)
def test_a_file_that_is_no_table_of_conditions_is_refused(tmp_path, text, words):
    file = tmp_path / "wrong.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=words):
        cells.read(file)


def test_the_shipped_numbers_are_those_of_the_fit():
    """Each from one row of role `calibration`."""
    found, shipped = fit.fitted(), fit.shipped()
    for gpu, value in found.items():
        assert shipped[gpu]["value"] == pytest.approx(value, abs=0.002), gpu
    assert set(shipped) - set(found) == {"H200"}  # as H100
    assert {name for name, row in shipped.items() if row["status"] == "fitted"} == set(found)


def test_calibration_rows_are_not_scored_and_every_gpu_has_one_configuration():
    rows = cells.published()
    assert len(rows) == 129
    given = [row for row in rows if row["role"] == "calibration"]
    model = ThroughputModel()
    made = cells.cells(given, cells.predictions(model, given[:1] * len(given), Options()))
    assert not any(cell.scored for cell in made)
    assert {(row["system"], row["model"]) for row in given} == {
        ("DGX-H100", "LLAMA3_70B"), ("DGX-GB200", "LLAMA3_70B"), ("DGX-GB300", "LLAMA3_70B"),
        ("DGX-B200", "Qwen3_30B_a3B"), ("DGX-B300", "Qwen3_30B_a3B"),
    }  # fmt: skip


def test_every_name_stands_for_something_shipped():
    from linkwright.base import registry

    assert set(MODELS.values()) <= set(registry.keys("workloads"))
    assert {system.machine for system in SYSTEMS.values()} <= set(registry.keys("machines"))
    assert set(COLUMNS) == set(next(csv.reader([HEAD.strip()])))
