"""Timelines for ttnn-visualizer: one derived by hand, the rules of the format, refusals."""

import json

import pytest

from linkwright import machines
from linkwright.interop import noc_trace
from linkwright_cases import invoke

# Two tiles next to each other, at (1,1) and (2,1): a put on each network.
TWO = """linkwright-schedule 1
ranks 2
elements 1024
element_bytes 4
spec pattern
buffer output 2
edges given
step 1
t0 put 0:output[0] -> 1:output[0] replace lane=0 src_after=- dst_after=-
t1 put 0:output[1] -> 1:output[1] replace lane=1 src_after=- dst_after=-
end
"""


def written(tmp_path, *arguments):
    """The timeline that `simulate` writes."""
    file = tmp_path / "noc.json"
    result = invoke("simulate", *arguments, "--on", "wormhole-n150", "--noc-trace", str(file))
    assert result.status == 0, result.err
    return json.loads(file.read_text())


def test_two_messages_derived_by_hand(tmp_path):
    (tmp_path / "two.lw").write_text(TWO)
    found = written(tmp_path, str(tmp_path / "two.lw"))
    first, second = found["noc_transfers"]
    # East is one link. West wraps round ten columns: from column 1 by 0, 9, 8, ... to 2.
    assert first["route"][0]["links"] == [[0, 1, 1, "NOC0_IN"], [0, 1, 1, "NOC0_EAST"], [0, 1, 2, "NOC0_OUT"]]
    west = [[0, 1, column, "NOC1_WEST"] for column in (1, 0, 9, 8, 7, 6, 5, 4, 3)]
    assert second["route"][0]["links"] == [[0, 1, 1, "NOC1_IN"], *west, [0, 1, 2, "NOC1_OUT"]]
    assert (first["src"], first["dst"], first["total_bytes"]) == ([0, 1, 1], [[0, 1, 2]], 2048)
    assert first["noc_event_type"] == "WRITE"
    # All bytes of a transfer pass each of its links, which carries 32 B in each of the 128 cycles of a step.
    demand = [entry for step in found["timestep_data"] for entry in step["link_demand"]]
    on_link = sum(value for *link, value in demand if link == [0, 1, 1, "NOC0_EAST"])
    assert on_link == pytest.approx(100 * 2048 / 32 / 128, abs=0.01)
    assert found["common_info"]["noc"]["NOC1"]["max_link_demand"] > 0
    step = found["timestep_data"][0]
    east = next(value for *link, value in step["link_demand"] if link == [0, 1, 1, "NOC0_EAST"])
    # Averages are over the 240 links of a network: one way along each axis at each of 120 places.
    assert step["noc"]["NOC0"]["avg_link_demand"] == pytest.approx(east / 240, abs=0.001)


@pytest.mark.parametrize(
    "asked", [("allreduce", "-a", "ring"), ("broadcast", "-a", "multicast"), ("allreduce", "-a", "swing_bandwidth")]
)
def test_the_rules_of_the_format(tmp_path, asked):
    found = written(tmp_path, *asked, "--sizes", "4K", "--ranks", "16")
    info, transfers, steps = found["common_info"], found["noc_transfers"], found["timestep_data"]
    assert info["version"].split(".")[0] == "1"
    assert (info["arch"], info["num_cols"], info["num_rows"]) == ("wormhole_b0", 10, 12)
    assert transfers
    assert [transfer["id"] for transfer in transfers] == list(range(len(transfers)))
    active = [set(step["active_transfers"]) for step in steps]
    assert set().union(*active) == {transfer["id"] for transfer in transfers}
    cycles = info["cycles_per_timestep"]
    assert [step["start_cycle"] for step in steps] == [cycles * number for number in range(len(steps))]
    kinds = {f"{network.name}_{kind}" for network in noc_trace.NETWORKS for _, _, kind in network.steps}
    for transfer in transfers:
        (segment,) = transfer["route"]
        assert 0 <= transfer["start_cycle"] < transfer["end_cycle"] <= steps[-1]["end_cycle"]
        links = segment["links"]
        assert links[0] == [*transfer["src"], f"{segment['noc_type']}_IN"]
        ends = [link[:3] for link in links if link[3] == f"{segment['noc_type']}_OUT"]
        assert sorted(ends) == sorted(transfer["dst"])
        assert {link[3] for link in links[1 : -len(ends)]} - {links[-1][3]} <= kinds
        assert all(0 <= row < 12 and 0 <= column < 10 for _, row, column, _ in links)
        for number, step in enumerate(active):
            during = transfer["start_cycle"] < (number + 1) * cycles and transfer["end_cycle"] > number * cycles
            assert (transfer["id"] in step) == during
    for step in steps:
        assert step["avg_link_util"] <= step["avg_link_demand"] + 1e-6
        assert step["mcast_write_link_util"] <= step["avg_link_util"]


def test_links_are_those_that_the_simulation_used(tmp_path):
    """A message crosses as many links as the fabric counts hops."""
    rows = tmp_path / "rows.json"
    found = written(tmp_path, "allgather", "-a", "ring", "--sizes", "4K", "--output", str(rows))
    moved = [t for t in found["noc_transfers"] if t["noc_event_type"] == "WRITE"]
    hops = sum(t["total_bytes"] * (len(t["route"][0]["links"]) - 2) for t in moved)
    metrics = {row["metric"]: row["value"] for row in json.loads(rows.read_text())["rows"]}
    assert hops == metrics["byte_hops"]


def test_long_simulations_have_longer_steps(tmp_path):
    found = written(tmp_path, "allreduce", "-a", "ring", "--sizes", "512K", "--ranks", "8")
    assert len(found["timestep_data"]) <= noc_trace.MOST_STEPS
    assert found["common_info"]["cycles_per_timestep"] > noc_trace.LEAST_CYCLES


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (("allreduce", "--sizes", "4K", "-a", "ring", "--on", "loggp"), "the fabric of loggp is loggp"),
        (("allreduce", "--sizes", "4K", "-a", "ring", "--on", "torus-2d", "--grid", "2x2"), "10 x 12 (wormhole_b0)"),
        (("allreduce", "--sizes", "4K,8K", "-a", "ring", "--on", "wormhole-n150"), "name one machine"),
        (("allreduce", "--sizes", "4K", "-a", "ring", "--on", "wormhole-n150", "--stream"), "leave one of the two out"),
        (("allreduce", "--sizes", "4K", "-a", "ring", "--on", "torus-2d", "--grid", "10x12"), "one-way networks"),
    ],
)
def test_refusals(tmp_path, arguments, cure):
    file = tmp_path / "noc.json"
    result = invoke("simulate", *arguments, "--noc-trace", str(file))
    assert result.status == 2
    assert cure in result.err
    assert not file.exists()


def test_a_schedule_without_messages_has_no_timeline(tmp_path):
    (tmp_path / "calc.goal").write_text("num_ranks 2\nrank 0 {\ncalc 100\n}\nrank 1 {\n}\n")
    file = tmp_path / "noc.json"
    result = invoke("simulate", str(tmp_path / "calc.goal"), "--on", "wormhole-n150", "--noc-trace", str(file))
    assert result.status == 2
    assert "the schedule has no messages" in result.err
    assert not file.exists()


def test_a_machine_whose_networks_move_otherwise_is_refused(tmp_path):
    text, _ = machines.source("wormhole-n150")
    swapped = text.replace('name = "NoC 0"\norder', 'name = "NoC X"\norder').replace('"NoC 1"\norder', '"NoC 0"\norder')
    swapped = swapped.replace('"NoC X"', '"NoC 1"').replace(
        'networks = ["NoC 0", "NoC 1"]', 'networks = ["NoC 1", "NoC 0"]'
    )
    assert swapped != text
    (tmp_path / "other.toml").write_text(swapped)
    (tmp_path / "two.lw").write_text(TWO)
    file = tmp_path / "noc.json"
    asked = (str(tmp_path / "two.lw"), "--on", str(tmp_path / "other.toml"), "--noc-trace", str(file))
    result = invoke("simulate", *asked)
    assert result.status == 2, result.out
    assert "does not move" in result.err
    assert not file.exists()
