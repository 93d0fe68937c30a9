"""Messages use equal ways through a network, as its file says."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

import pytest

import linkwright as lw
from linkwright import _native, machines
from linkwright.ask.answer import How, ask
from linkwright.base import registry
from linkwright.machines import Variant
from linkwright_cases import invoke

SIZE = 64 << 20
PORT_GB_S = 50


def typed(name: str, hosts: int, switches: list[str], trunk: list[str], routing: str, *, port: list[str]) -> str:
    """A network of hosts with ports and trunks of one rate."""

    def links(kind: str, edges: list[str], more: str = "") -> str:
        listed = ", ".join(f'"{edge}"' for edge in edges)
        rate = f'{{ value = {PORT_GB_S}, unit = "GB/s", status = "assumed", source = "a round number" }}'
        return f'[fabric.links.{kind}]\nedges = [{listed}]\nsource = "typed"\nbandwidth = {rate}\n{more}\n'

    named = ", ".join(f'"{switch}"' for switch in switches)
    start = '{ value = 1, unit = "us", status = "assumed", source = "a round number" }'
    return f"""
[machine]
name = "{name}"
summary = "{name}"
description = "a network of a test"
format = 1
sources = ["typed"]

[[level]]
name = "host"
count = {hosts}
source = "typed"

[endpoints]
count = {hosts}
name = "host {{i}}"
source = "typed"

[fabric]
kind = "flow"
switches = [{named}]

{links("port", port)}
{links("trunk", trunk, f'routing = "{routing}"' if routing else "")}

[fabric.transport.net]
links = ["port", "trunk"]
start = {start}

[path.put]
summary = "a put"
"""


def two_levels(routing: str) -> str:
    """Four leaves of four hosts, four spines: full bisection."""
    return typed(
        "two-levels", 16, ["leaf 0..3", "spine 0..3"], ["leaf 0..3 x spine 0..3"], routing, port=["* / 4 - leaf 0..3"]
    )


def three_levels(routing: str) -> str:
    """The fat tree of four-port switches (Leiserson; Al-Fares and others): four pods of two leaves, four cores."""
    trunk = [f"leaf {2 * pod}..{2 * pod + 1} x middle {2 * pod}..{2 * pod + 1}" for pod in range(4)]
    trunk += [f"core {2 * side}..{2 * side + 1} - middle {2 * pod + side}" for pod in range(4) for side in range(2)]
    return typed(
        "three-levels", 16, ["leaf 0..7", "middle 0..7", "core 0..3"], trunk, routing, port=["* / 2 - leaf 0..7"]
    )


def rails(routing: str) -> str:
    """Four nodes of four ports; port i of each node is on leaf i."""
    return typed(
        "rails", 16, ["leaf 0..3", "spine 0..3"], ["leaf 0..3 x spine 0..3"], routing,
        port=[f"host {node * 4 + rail} - leaf {rail}" for node in range(4) for rail in range(4)],
    )  # fmt: skip


def dragonfly(routing: str) -> str:
    """Three groups of two routers with two hosts each; every router has two links into each other group."""
    trunk = [f"router {2 * group} - router {2 * group + 1}" for group in range(3)]
    trunk += [f"router {2 * a}..{2 * a + 1} x router {2 * b}..{2 * b + 1}" for a in range(3) for b in range(a)]
    return typed("dragonfly", 12, ["router 0..5"], trunk, routing, port=["* / 2 - router 0..5"])


FULL = {"two_levels": two_levels, "three_levels": three_levels, "rails": rails}


def permuted(machine: _native.Machine, order: list[int], seed: int = 0) -> _native.Answer:
    """The answer to a message from each rank to one other, with ranks at the endpoints in `order`."""
    schedule = _native.Schedule.pattern("pattern/random_permutation", len(order), SIZE, count=1)
    return ask(machine, schedule, How(placement=order, links=True, seed=seed))


def parsed(text: str) -> _native.Machine:
    """The machine in a text."""
    return _native.Machine.parse(text, "typed.toml")


def port_us() -> float:
    """The time of a message at the rate of a port."""
    return 1 + SIZE / PORT_GB_S / 1e3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FULL)
def test_permutations_fill_the_ports_of_a_full_tree_that_sprays(name: str, seed: int):
    machine = parsed(FULL[name]("spray"))
    order = list(range(machine.ranks))
    random.Random(seed).shuffle(order)
    assert permuted(machine, order).time.us == pytest.approx(port_us(), rel=2e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("routing", ["hash", "adaptive", "single"])
def test_other_rules_are_no_faster_than_spraying_and_no_slower_than_one_way(routing: str, seed: int):
    order = list(range(16))
    random.Random(seed).shuffle(order)
    times = {rule: permuted(parsed(two_levels(rule)), order).time.us for rule in ("spray", routing, "single")}
    assert times["spray"] <= times[routing] * 1.001
    assert times[routing] <= times["single"] * 1.001


def test_a_dragonfly_carries_what_its_shortest_ways_carry():
    machine = parsed(dragonfly("spray"))
    order = list(range(machine.ranks))
    random.Random(1).shuffle(order)
    # A router sends at most what its two hosts do, over one link to each router of another group.
    assert permuted(machine, order).time.us <= 2 * port_us() * 1.01


def test_a_file_that_states_no_rule_is_sprayed():
    order = list(range(16))
    random.Random(3).shuffle(order)
    assert permuted(parsed(two_levels("")), order).time == permuted(parsed(two_levels("spray")), order).time


def test_a_seed_decides_where_hashes_collide_and_nothing_else_does():
    machine = parsed(two_levels("hash"))
    order = list(range(16))
    random.Random(0).shuffle(order)
    times = [permuted(machine, order, seed=seed).time.us for seed in range(8)]
    assert times == [permuted(parsed(two_levels("hash")), order, seed=seed).time.us for seed in range(8)]
    assert len(set(times)) > 1
    # A collision of k flows takes k times as long; four flows a leaf on four links seldom have none.
    shares = [time / port_us() for time in times]
    assert max(shares) > 1.9
    assert all(math.isclose(share, round(share), rel_tol=0.2) for share in shares)


def test_links_and_the_limit_agree_with_the_ways(tmp_path: Path):
    (tmp_path / "spines.toml").write_text(two_levels("spray"), encoding="utf-8")
    file = tmp_path / "links.csv"
    machine = str(tmp_path / "spines.toml")
    result = invoke("simulate", "pattern/complement", "--on", machine, "--sizes", "64M", "--links", str(file))
    assert result.status == 0, result.err
    share = float(result.out.splitlines()[-1].split()[-2])
    assert share == pytest.approx(100, abs=1)
    rows = {row["link"]: int(row["bytes"]) for row in csv.DictReader(file.open(encoding="utf-8"))}
    upward = [rows[f"leaf {leaf} -> spine {spine}"] for leaf in range(4) for spine in range(4)]
    assert upward == [SIZE] * 16


def test_a_flow_that_holds_its_links_is_not_sprayed():
    text = two_levels("spray").replace('kind = "flow"', 'kind = "flow"\nsharing = "fifo"')
    with pytest.raises(lw.LinkwrightError, match="write hash, adaptive or single"):
        ask(parsed(text), lw.schedule("allreduce", "ring", ranks=4, size="4K"))


@pytest.mark.parametrize("name", registry.keys("networks"))
def test_every_shipped_network_states_its_rule(name: str):
    machine = machines.load("hgx-h100", Variant(4, f"{name}" if name == "sockets" else f"{name},nodes_per_leaf=2"))
    assert 'routing = { value = "' in machine.text


@pytest.mark.parametrize("name", ["hdr-fat-tree", "ndr-fat-tree", "roce-400", "xdr-fat-tree"])
@pytest.mark.parametrize("routing", ["spray", "adaptive"])
def test_spines_that_are_sprayed_carry_what_one_node_for_all_of_them_does(name: str, routing: str):
    def time_us(fabric: str) -> float:
        machine = machines.load("hgx-h100", Variant(4, f"{name},nodes_per_leaf=2,forwarding=0{fabric}"))
        order = list(range(machine.ranks))
        random.Random(7).shuffle(order)
        return permuted(machine, order).time.us

    spines = time_us(f",spines=2,routing={routing}")
    assert spines == pytest.approx(time_us(""), rel=0.02 if routing == "spray" else 1.1)


def test_an_unknown_rule_is_refused():
    with pytest.raises(lw.UsageError, match="routing is `ecmp`; write single, hash, spray, adaptive"):
        machines.load("hgx-h100", Variant(2, "roce-400,routing=ecmp"))
