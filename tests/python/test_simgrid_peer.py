"""The platforms that SimGrid is given have the numbers of the machine files."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "benches" / "simgrid_peer.py"


@pytest.mark.parametrize(
    ("machine", "bandwidth", "latency"), [("loggp", "12.5GBps", "700ns"), ("crossbar", "25GBps", "300ns")]
)
def test_platforms_follow_the_machine_files(machine, bandwidth, latency, monkeypatch):
    spec = importlib.util.spec_from_file_location("simgrid_peer", BENCH)
    peer = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, peer)
    spec.loader.exec_module(peer)
    found = peer.described(machine)
    # 1 us and twice 200 ns, or 500 ns and 100 ns, over two links.
    assert (found["bandwidth"], found["latency"]) == (bandwidth, latency)
    assert found.keys() == {"bandwidth", "latency", "sharing", "topology"}
