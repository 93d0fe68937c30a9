"""A machine of switches and links from a map of hosts."""

import json

import numpy as np
import pytest

from linkwright.advise.fit import network
from linkwright.advise.locate import pair_map
from linkwright.base.errors import FileError

PORT = 10e6


def written(path, change=lambda value: None, count=8, across=0.5):
    """A map of two leaves of `count` / 2 hosts whose uplinks carry half of what their ports do."""
    rates = np.full((count, count), PORT)
    half = count // 2
    rates[:half, half:] *= across
    rates[half:, :half] *= across
    alone = np.full((count, count), PORT)
    value = {"hosts": [f"n{at}" for at in range(count)], "rates": rates.tolist(), "alone": alone.tolist(),
             "short_us": 100.0}  # fmt: skip
    for table in (value["rates"], value["alone"]):
        for at in range(count):
            table[at][at] = None
    change(value)
    path.write_text(json.dumps(value))
    return path


def test_leaves_uplinks_and_ports_by_hand(tmp_path):
    model = network.read(written(tmp_path / "map.json"), "lab", "cluster")
    rates = {(a, b): rate for _, a, b, rate in model.cluster.links}
    assert rates["n0", "switch 0"] == PORT
    # Four messages of half a port cross at once.
    assert rates["switch 0", "spine"] == rates["switch 1", "spine"] == 4 * PORT / 2
    machine = model.machine()
    assert machine.ranks == 8
    found = machine.routes([(0, 1), (0, 7)])
    assert found["rate"].tolist() == [PORT, PORT]


def test_a_slow_port_is_a_class_of_its_own(tmp_path):
    def slow(value):
        for table in (value["rates"], value["alone"]):
            for at in range(7):
                table[7][at] = table[at][7] = PORT / 4

    model = network.read(written(tmp_path / "map.json", slow, across=1.0), "lab", "cluster")
    assert {kind: rate for kind, _, _, rate in model.cluster.links} == {"port": PORT, "port_7": PORT / 4}
    assert model.cluster.switches == ("switch 0",)


def test_a_network_that_is_no_tree_is_refused(tmp_path):
    def ring(value):
        for a in range(8):
            for b in range(8):
                if min((a - b) % 8, (b - a) % 8) > 2:
                    value["rates"][a][b] = PORT / 3

    with pytest.raises(FileError, match="no tree"):
        network.read(written(tmp_path / "map.json", ring, across=1.0), "lab", "cluster")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda value: value.pop("alone"), "not a map of hosts"),
        (lambda value: value.update(hosts=["a"] * 8), "not a map of hosts"),
        (lambda value: value["rates"][0].pop(), "not a map of hosts"),
        (lambda value: value["alone"][1].__setitem__(2, -1), "not a map of hosts"),
        (lambda value: value["alone"][1].__setitem__(2, None), "1 messages were not measured"),
        (lambda value: value.update(short_us="soon"), "not a map of hosts"),
    ],
)
def test_what_is_not_a_whole_map_is_refused(tmp_path, change, said):
    with pytest.raises(FileError, match=said):
        network.read(written(tmp_path / "map.json", change), "lab", "cluster")


def test_halves_cross_together_in_rounds_of_a_power_of_two():
    inside = [sum((a < 4) == (b < 4) for a, b in pairs) for pairs in pair_map.rounds(8)]
    assert set(inside) == {0, 4}
