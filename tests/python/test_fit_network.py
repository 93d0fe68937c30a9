"""A machine of switches and links from a map of hosts."""

import json
import random

import numpy as np
import pytest

import linkwright as lw
import mutants
from linkwright import _native
from linkwright.advise.fit import network
from linkwright.advise.locate import pair_map
from linkwright.advise.plans.traffic import as_goal
from linkwright.ask.answer import How, ask
from linkwright.base.errors import FileError, LinkwrightError
from linkwright.executors.cluster import spec
from linkwright.machines import writer

PORT = 10e6
COLLECTIVES = (("allreduce", "ring"), ("allreduce", "recursive_doubling_bandwidth"), ("alltoall", "pairwise"))


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


# ---- a known machine, simulated in place of a cluster


def known(count=8, uplink=20e6, both=1.0, send=20, receive=15, long=65536, turns=None):
    """Two leaves with the costs of messages at both ends, a protocol for long ones, and hosts that share both ways."""
    made = spec.shaped("known", "fat_tree", count, PORT, uplink, count // 2)
    if both < 1:
        links = [(kind, f"{a} NIC" if kind == "port" else a, b, rate) for kind, a, b, rate in made.links]
        links += [("nic", host, f"{host} NIC", PORT) for host in made.hosts]
        nics = tuple(f"{host} NIC" for host in made.hosts)
        made = spec.LabCluster("known", made.hosts, 1, (*nics, *made.switches), tuple(links), {})

    def stated(value, unit):
        return {"value": value, "unit": unit, "status": "assumed", "source": "a test"}

    document = spec.machine(made, start_us=60, latency_us=10)
    document["path"]["put"] |= {"start": stated(send, "us"), "receive": stated(receive, "us")}
    if long:
        document["fabric"]["transport"]["tcp"] |= {"long": stated(long, "B"), "long_start": stated(2000, "us")}
    if turns:
        document["fabric"]["transport"]["tcp"]["turns"] = stated(turns, "B")
    if both < 1:
        switch = {f"{host} NIC": {"throughput": stated(4 * both * PORT / 1e6, "MB/s")} for host in made.hosts}
        document["fabric"]["switch"] = switch
    return _native.Machine.parse(writer.text(document), "known.toml")


def arrivals(machine, flows, size):
    """Seconds until each message has arrived; at one target, in the order of arrival."""

    def finish(some):
        program = as_goal(dict.fromkeys(some, size), machine.ranks)
        return ask(machine, _native.read_schedule(program, "test.goal"), How(issue="unlimited")).ranks.finish_ps * 1e-12

    into = len({b for _, b in flows}) == 1
    if into:
        return [float(finish(flows[: at + 1])[flows[0][1]]) for at in range(len(flows))]
    done = finish(flows)
    return [float(done[b]) for _, b in flows]


def mapped(machine, path, size=1 << 20, noise=0.0):
    """A map as a job on this machine would write it."""
    draw, count = np.random.default_rng(1), machine.ranks

    def times(flows, bytes_of_each, _apart_s=0.0):
        return np.array(arrivals(machine, flows, bytes_of_each)) * draw.lognormal(0, noise, len(flows))

    rates, alone = (np.full((count, count), np.nan) for _ in range(2))
    for pairs in pair_map.rounds(count):
        for (a, b), seconds in zip(pairs, times(list(pairs), size), strict=True):
            rates[a, b] = size / seconds
    for a, b in np.argwhere(~np.eye(count, dtype=bool)).tolist():
        alone[a, b] = size / times([(a, b)], size)[0]
    timed = pair_map.message_times(count, size, times, lambda flows: np.diff(np.sort(times(flows, 1))))
    value = {"hosts": [f"n{at}" for at in range(count)], "short_us": timed.one_us[0], "messages": vars(timed),
             **{key: [[None if rate != rate else rate for rate in row] for row in table.tolist()]
                for key, table in (("rates", rates), ("alone", alone))}}  # fmt: skip
    path.write_text(json.dumps(value))
    return path


TIMED = {"sizes_bytes": [1, 1024, 4096], "one_us": [100, 200, 500], "both_us": [100, 200, 500], "through_us": 500,
         "send_us": 10,
         "receive_us": 10}  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_mutants_of_a_map_are_read_or_refused(tmp_path, seed):
    value = json.loads(written(tmp_path / "map.json").read_text()) | {"messages": TIMED}
    path = tmp_path / "mutant.json"
    path.write_text(json.dumps(mutants.tree(random.Random(seed), value)))
    try:
        said = f"mutant.json: {network.read(path, 'lab', 'cluster').machine().ranks} ranks"
    except LinkwrightError as error:
        said = str(error)
    assert "mutant.json" in said
    assert len(said) < 1000


@pytest.mark.parametrize("change", [
    {"sizes_bytes": [1, 1024]}, {"sizes_bytes": [1, 1024, 1024]}, {"sizes_bytes": [2, 1024, 4096]},
    {"sizes_bytes": [1, 1024, 1e300]}, {"one_us": [0, 200, 500]}, {"both_us": None}, {"through_us": 0}, {"send_us": -1},
    {"receive_us": float("nan")},
])  # fmt: skip
def test_times_of_messages_that_cannot_be_are_refused(tmp_path, change):
    path = written(tmp_path / "map.json", lambda value: value.update(messages=TIMED | change))
    with pytest.raises(FileError, match="not a map of hosts"):
        network.read(path, "lab", "cluster")


def test_both_ends_by_hand():
    for bursts, ends in (((10, 70), (10, 70, 20)),
                         ((90, 90), (50, 50, 0)),  # more than all of a message of 100 us: half of it each, and no start
                         ((2, 900), (2, 98, 0))):  # fmt: skip
        timed = pair_map.MessageTimes((1, 1024, 4096), (100, 200, 500), (100, 200, 1000), 625, *bursts)
        costs = network._costs(1.0, timed)
        assert (costs.send_us, costs.receive_us, costs.start_us) == pytest.approx(ends)
        assert costs.both == 0.8  # 500 / 625
        assert costs.turns_bytes == 4096  # 1000 us for 500 / 0.8: 1.6 times as long; 1 KiB as long
    assert costs.long_bytes == 0  # 100 and 400 us more for 1 and 4 KiB


def test_small_messages_that_take_no_longer_by_hand():
    sizes = (1, 1024, 4096, 16384, 65536)
    # 50 us and 0.1 us a byte from 16 KiB on; up to 4 KiB, of which the bytes would take 410, nothing.
    one = (50, 50, 50, 1688, 6604)
    for both, turns in (((2,) * 5, 16384), ((2, 2, 2, 1, 2), 65536), ((2, 2, 2, 2, 1), 0)):
        times = tuple(us * factor for us, factor in zip(one, both, strict=True))
        costs = network._costs(1.0, pair_map.MessageTimes(sizes, one, times, 6604, 10, 10))
        assert (costs.inline_bytes, costs.long_bytes, costs.turns_bytes, costs.both) == (4097, 0, turns, 1.0)


@pytest.mark.parametrize(("both", "turns"), [(1.0, None), (0.6, None), (1.0, 262144)])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_known_machine_is_recovered_from_its_map(tmp_path, both, turns, noise):
    machine = known(both=both, turns=turns)
    model = network.read(mapped(machine, tmp_path / "map.json", noise=noise), "lab", "cluster")
    costs = model.costs
    # One message: 20 us at its sender, 60 to start, 10 for each link, of which NICs have two, 15 at its receiver.
    assert costs.start_us + costs.send_us + costs.receive_us == pytest.approx(115 if both == 1 else 135, rel=0.1)
    assert costs.both == pytest.approx(both, rel=0.1)
    assert (costs.turns_bytes, costs.inline_bytes) == (turns or 0, 0)
    assert costs.long_bytes == 65536
    assert costs.long_us == pytest.approx(1940, rel=0.5 if noise else 0.1)
    if not noise:
        assert (costs.send_us, costs.receive_us) == pytest.approx((20, 15), rel=0.1)
    fitted, errors = model.machine(), []
    for collective, algorithm in COLLECTIVES:
        for size in (1 << 10, 16 << 10, 256 << 10, 1 << 20):
            schedule = lw.schedule(collective, algorithm, ranks=machine.ranks, size=size)
            predicted, true = (ask(one, schedule, How()).slowest.ns for one in (fitted, machine))
            errors.append(abs(predicted / true - 1))
    assert np.median(errors) < 0.15, errors
