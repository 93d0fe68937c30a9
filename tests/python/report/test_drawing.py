"""Pictures of machines: every shipped one, colours by value, hosts with shared caches, hostile names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import made
import pytest
import synthetic

from linkwright import _native, machines
from linkwright.base import registry
from linkwright.executors.sim import OPEN_GRID, OPEN_RANKS
from linkwright.show.report import drawing
from linkwright.show.report.drawing import host, svg
from linkwright.show.report.drawing import machine as machine_drawing
from linkwright.show.report.drawing.pairs import Pairs
from linkwright.store.topology import Topology


def machine(name: str) -> _native.Machine:
    found = machines.load(name)
    if found.open_size == "grid":
        return found.with_grid(*OPEN_GRID)
    return found.with_endpoints(OPEN_RANKS) if found.open_size else found


def shapes(drawn: str, kind: str) -> list[str]:
    """The tooltips of the shapes of a class; the drawing must be well-formed."""
    root = ElementTree.fromstring(drawn)
    assert root.tag == "svg"
    return [each.findtext("title") or "" for each in root.iter("rect") if each.get("class") == kind]


@pytest.mark.parametrize("name", registry.keys("machines"))
def test_every_shipped_machine_has_a_picture_within_its_frame(name):
    found = machine(name)
    names = [end["name"] for end in found.endpoints() if end["kind"] == "rank"][:64]
    values = {(names[0], other): 1e-7 * (1 + k) for k, other in enumerate(names[1:])}
    drawn, _ = machine_drawing.draw(found, Pairs(8, values))
    root = ElementTree.fromstring(drawn)
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width == svg.WIDTH
    for each in root.iter("rect"):
        x, y, w, h = (float(each.get(key)) for key in ("x", "y", "width", "height"))
        assert -1 <= x <= x + w <= width + 1
        assert -1 <= y <= y + h <= height + 1
    assert len(shapes(drawn, "start")) == (1 if values else 0)
    told = sum(len(shapes(drawn, f"q{step}")) for step in range(svg.STEPS))
    assert told >= len(names) - 1


def test_a_link_between_endpoints_has_their_latency_and_directions_are_told():
    drawn, caption = machine_drawing.draw(machine("dgx1-p100"), Pairs(8, {("GPU 0", "GPU 4"): 2e-6}))
    arcs = [each for each in ElementTree.fromstring(drawn).iter("path") if "arc" in each.get("class")]
    assert [each.findtext("title") for each in arcs] == ["GPU 0 – GPU 4: 2 µs"]
    assert "by the latency of these" in caption
    assert (
        machine_drawing.directions(machine("wormhole-n150")) == "NoC 0 moves east and south; NoC 1 moves north and west"
    )
    assert list(machine_drawing.parts(machine("ipu-c2-board"), [])) == ["chip 0", "chip 1"]


def test_colours_follow_the_value():
    scale = svg.Scale.of([1.0, 3.0], "s")
    assert [scale.colour(value) for value in (1.0, 1.9, 2.1, 3.0, None)] == ["q0", "q2", "q3", "q5", "none"]
    wide = svg.Scale.of([1e-9, 1e-6], "s")  # a factor of 1,000: half of the logarithm is 32
    assert [wide.colour(value) for value in (31e-9, 33e-9)] == ["q2", "q3"]
    assert svg.Scale.of([100.0, 101.0], "s").colour(101.0) == "q0"  # a difference of 1 % is no colour
    assert svg.Scale.of([], "s") is None


@pytest.mark.parametrize("processors", [1, 2, 8, 256])
def test_a_host_shows_its_caches(processors):
    topology = Topology(made.host(processors))
    levels = [host.Row(cache.name, cache.size_bytes, topology.instances(cache.name), 1e-9) for cache in topology.caches]
    found = Pairs(8, {("cpu 0", f"cpu {k}"): 5e-8 for k in range(1, processors)})
    drawn, _ = host.draw(topology, levels, found)
    told = [tip for step in range(svg.STEPS) for tip in shapes(drawn, f"q{step}")]
    assert sum(tip.startswith("L1d") for tip in told) in (processors, 1)
    assert sum(bool(re.fullmatch(r"cpu \d+: 50 ns from cpu 0", tip)) for tip in told) == processors - 1
    if processors == 8:
        assert next(tip for tip in told if tip.startswith("L3")) == "L3 of cpu 0, 1: 1 ns"


def test_names_are_escaped_and_an_unknown_machine_still_has_its_endpoints():
    run = made.run_of(*made.pairs({(synthetic.NASTY.replace(">", ""), "b"): 5.0}, machine="lost"))
    found = drawing.picture(run, "lost")
    assert "<script" not in found.svg
    assert sum(tip.startswith("b: 5 ns from <script") for tip in shapes(found.svg, "q0")) == 1
    assert drawing.picture(made.run_of(made.sure(1)), "here") is None
