"""Training over many nodes: one node and one column of devices stand for all, and are shown to."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from linkwright import _native
from linkwright.advise.predict.training.gradients import Allreduce
from linkwright.advise.predict.training.hierarchical import Nodes
from linkwright.ask.answer import ask
from linkwright.base.errors import UsageError

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
CLUSTER = EXAMPLES / "gpu_cluster.toml"
SIZE = 25_000_000


def cluster(nodes, trunk="6400"):
    """The example with fewer nodes, two to a leaf."""
    leaves = nodes // 2
    text = CLUSTER.read_text(encoding="utf-8")
    for old, new in {
        "count = 512": f"count = {nodes}",
        "count = 4096": f"count = {8 * nodes}",
        "NVSwitch 0..511": f"NVSwitch 0..{nodes - 1}",
        "leaf 0..31": f"leaf 0..{leaves - 1}",
        "* / 128": "* / 16",
        "value = 6400": f"value = {trunk}",
    }.items():
        assert old in text
        text = text.replace(old, new)
    return _native.Machine.parse(text, "cluster.toml")


@pytest.mark.parametrize("nodes", [2, 6, 8])
def test_the_parts_take_as_long_as_the_whole(nodes):
    machine = cluster(nodes)
    whole = _native.Schedule.build("allreduce/hierarchical", 8 * nodes, SIZE // 4, grid=(8, nodes))
    assert Allreduce(machine, 8 * nodes, "hierarchical", None).time_ns(SIZE) == pytest.approx(
        ask(machine, whole).time.ns, rel=1e-4
    )


def test_columns_that_meet_on_a_trunk_are_refused():
    narrow = cluster(8, trunk="200")
    assert "devices of different columns share links" in Nodes.of(narrow, 64, None).meeting
    with pytest.raises(UsageError, match="use another --algorithm"):
        Allreduce(narrow, 64, "hierarchical", None).time_ns(SIZE)
    assert Nodes.of(cluster(8), 64, None).meeting is None


def test_what_is_not_alike_is_refused():
    machine = cluster(4)
    allreduce = Allreduce(machine, 32, "hierarchical", None)
    with pytest.raises(UsageError, match="omit --imbalance and --skew"):
        allreduce.run(SIZE, [0.0] * 31 + [5.0])
    with pytest.raises(UsageError, match="not a part of 12"):
        Allreduce(machine, 12, "hierarchical", None).time_ns(SIZE)


def test_a_step_on_4096_devices():
    words = ["predict", EXAMPLES / "large_model.toml", "--on", CLUSTER, "--algorithm", "hierarchical"]
    words += ["--bucket", "25000000", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "linkwright", *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (step,) = json.loads(done.stdout)["steps"]
    facts = tomllib.loads(CLUSTER.read_text(encoding="utf-8"))
    assert step["gpus"] == facts["endpoints"]["count"] == 4096
    # 60 buckets, each of which sends 2 S (p-1)/p of its bytes over a port of 450 + 47.5 GB/s at best.
    assert step["allreduce_ns"] > 60 * 2 * SIZE * 4095 / 4096 / (450 + 47.5)
    # Computing hides all but the last bucket.
    exposed = step["step_ns"] - step["causes_ns"]["compute"]
    assert exposed == pytest.approx(step["allreduce_ns"] / 60, rel=1e-6)
