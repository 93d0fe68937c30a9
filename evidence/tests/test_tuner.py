"""The study of a tuner's decisions."""

import json

import pytest

import linkwright_evidence as studies
from linkwright.base.errors import FileError
from linkwright.cli.main import status_of
from linkwright_evidence import Options
from linkwright_evidence.tuner.choice import Decision, Tuner


def test_a_network_that_starts_late_favours_the_tree_of_fewest_starts():
    """Four nodes, 8 MiB: NCCL's own starts take NVLSTree by Simple; EFA's, 39 us for LL128 and 62 for Simple, Tree."""
    assert Tuner(own=False).decide(4, 8 << 20).words == "nvlstree,simple"
    assert Tuner().decide(4, 8 << 20).words == "tree,ll128"
    assert Tuner().decide(1, 1 << 20).words == "none,none"


def test_near_choices_are_ties():
    one = Decision("a,b", {"a,b": 1.0, "c,d": 1.04, "e,f": 1.06})
    assert one.near("c,d")
    assert not one.near("e,f")
    assert not one.near("never,was")


def test_most_published_decisions_come_out():
    rows = studies.reproduce("tuner").tables["decisions"]
    several = [row for row in rows if row["nodes"] > 1]
    assert sum(row["cells"] for row in rows) == 112
    assert sum(row["agree"] for row in several) >= 77
    assert sum(row["as_nccl"] for row in several) < 60


def test_conditions_are_answered_as_they_stood(tmp_path, capsys):
    file = tmp_path / "asked.csv"
    file.write_text("nodes,ranks,size_bytes\n1024,8192,34359738368\n1,8,1048576\n", encoding="utf-8")
    assert status_of(["reproduce", "tuner", "--conditions", str(file), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["predicted"] for cell in found] == ["nvlstree,simple", "none,none"]
    assert found[0]["ranks"] == "8192"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes,ranks\n2,16\n", "no column `size_bytes`"),
        ("nodes,ranks,size_bytes\n", "no rows"),
        ("nodes,ranks,size_bytes\n2,x,1\n", "line 2: nodes, ranks, size_bytes have to be whole numbers"),
        ("nodes,ranks,size_bytes\n2,8,1\n", "8 ranks on 2 nodes"),
        ("nodes,ranks,size_bytes,collective\n2,16,1,broadcast\n", "of all_reduce only"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    file = tmp_path / "asked.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message):
        studies.reproduce("tuner", Options(conditions=file))
