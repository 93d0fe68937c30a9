"""Pictures of machines: every shipped one within its frame, links where they belong, times as they were given."""

from __future__ import annotations

import base64
import json
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest

import linkwright as lw
from linkwright import _native
from linkwright.base import registry
from linkwright.base.errors import UsageError
from linkwright.executors.sim import OPEN_GRID, OPEN_RANKS
from linkwright.session.timeline import Steps, Timeline
from linkwright.show import picture
from linkwright.show.picture import colours, subjects
from linkwright.show.picture.collapse import MOST_ENDPOINTS, collapsed
from linkwright.show.picture.graph import graph
from linkwright.show.picture.layouts import LAYOUTS, layout
from linkwright.show.picture.scene import _label
from linkwright_cases import invoke

NAMES = registry.keys("machines")
CLUSTERS = {
    "fat tree": {"nodes": 4, "fabric": "ndr-fat-tree,taper=2"},
    "large": {"nodes": 64},
    "huge": {"nodes": 512},
}


def machine(name: str, **how) -> _native.Machine:
    found = lw.machine(name, **how)
    if how.get("grid") or how.get("ranks") or not found.open_size:
        return found
    return found.with_grid(*OPEN_GRID) if found.open_size == "grid" else found.with_endpoints(OPEN_RANKS)


def machines():
    yield from (pytest.param(name, {}, id=name) for name in NAMES)
    yield from (pytest.param("hgx-h100", how, id=name) for name, how in CLUSTERS.items())
    yield pytest.param("mi250x-frontier", {"nodes": 8, "fabric": "hdr100-dragonfly"}, id="dragonfly")
    yield pytest.param("tpu-v4", {"grid": (4, 4, 4)}, id="three dimensions")
    yield pytest.param("torus-2d", {"grid": (64, 64)}, id="4,096 on a grid")
    yield pytest.param("crossbar", {"ranks": 4096}, id="4,096 ports")


def course(names: list[str], busy: np.ndarray, **more) -> Timeline:
    """A course of two ranks: 0 sends, then waits; 1 receives, then reduces."""
    a = np.array
    path = Steps(a([0, 1]), a([0, 1]), a([1, 1]), a([1, 4]), a([0.0, 6]), a([6.0, 10]), a([0.0, 0]))
    given = {
        "span_us": 10.0, "edges_us": np.linspace(0, 10, busy.shape[1] + 1), "path": path,
        "bytes": np.arange(len(names)),
        "rank": a([0, 0, 1, 1]), "state": a([0, 2, 1, 3]), "begin_us": a([0.0, 4, 0, 6]), "end_us": a([4.0, 10, 6, 10]),
    }  # fmt: skip
    return Timeline(links=tuple(names), busy=busy, **(given | more))


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)


@pytest.mark.parametrize(("name", "how"), list(machines()))
def test_everything_is_inside_and_boxes_of_a_picture_are_apart(name, how):
    found = picture.scene(machine(name, **how))
    for title, kind, _, x, y, width, height, rank in found["nodes"]:
        assert -1 <= x - width / 2 < x + width / 2 <= found["width"] + 1, title
        assert -1 <= y - height / 2 < y + height / 2 <= found["height"] + 1, title
        assert (rank >= 0) == (kind in ("endpoint", "group")), title
    boxes = np.array([row[3:7] for row in found["nodes"] if row[1] != "frame"])
    apart = np.abs(boxes[:, None, :2] - boxes[None, :, :2]) >= (boxes[:, None, 2:] + boxes[None, :, 2:]) / 2 - 1.5
    overlap = ~apart.any(axis=2)
    np.fill_diagonal(overlap, val=False)
    assert not overlap.any(), [found["nodes"][k][0] for k in np.argwhere(overlap)[0]]
    drawn = ElementTree.fromstring(picture.svg(found))
    assert len([each for each in drawn.iter() if each.get("class", "").startswith("link")]) == len(found["links"])


@pytest.mark.parametrize("name", [name for name in NAMES if machine(name).ranks > 1])
def test_most_links_of_a_fabric_have_a_place(name):
    found = machine(name)
    shown = collapsed(graph(found), found)
    lost = [link for link in found.network()["links"]["name"] if link not in shown.links]
    nowhere = {
        "cell-be": ["command network"],
        "vollo-ia420f": lost,
        "ipu-c2-chip": ["host to chip 0", "host from chip 0"],
    }
    assert lost == nowhere.get(name, []), "a link that is neither an edge nor a port"


@pytest.mark.parametrize(
    ("name", "how", "kind"),
    [
        ("torus-2d", {}, "grid"), ("wormhole-n150", {}, "grid"), ("tpu-v4", {"grid": (4, 4, 4)}, "grid"),
        ("cell-be", {}, "ring"), ("dgx1-p100", {}, "tiers"), ("knl-omnipath", {}, "hub"), ("ipu-c2-chip", {}, "cells"),
        ("hgx-h100", {"nodes": 4}, "blocks"),
    ],
)  # fmt: skip
def test_the_shape_of_a_machine_chooses_its_layout(name, how, kind):
    shown = graph(machine(name, **how))
    assert next(key for key, place in LAYOUTS.items() if place(shown, 1200.0)) == kind


def test_links_around_a_torus_are_stubs_at_both_ends():
    found = picture.scene(machine("torus-2d", grid=(4, 4)))
    stubs = [link for link in found["links"] if len(link[4]) == 8]
    assert len(found["links"]) == 32  # two of each of 16 places
    assert len(stubs) == 8  # one of each row, one of each column
    a, b, _, _, (x, _, left, _, right, _, end, _) = next(link for link in stubs if link[4][1] == link[4][7])
    assert {found["nodes"][a][0], found["nodes"][b][0]} == {"tile (0,0)", "tile (3,0)"}
    assert (left - x) * (right - end) < 0  # they point away from each other


def test_a_tree_stands_in_tiers_and_a_switch_of_all_endpoints_below_them():
    height = {row[0]: row[4] for row in picture.scene(machine("hgx-h100"))["nodes"]}
    assert height["NVSwitch"] > height["GPU 0"] > height["PCIe 0"] > height["NIC 0"] > height["CPU 0"]
    assert len({height[f"GPU {k}"] for k in range(8)}) == 1


def test_many_endpoints_are_drawn_by_level():
    board, huge = (collapsed(graph(m), m) for m in (machine("ipu-c2-board"), machine("hgx-h100", nodes=512)))
    assert [node.name for node in board.nodes if node.ranks] == ["chip 0", "chip 1"]
    assert [node.ranks for node in board.nodes if node.ranks] == [1216, 1216]
    assert [node.name for node in huge.nodes if node.ranks][:2] == ["node 0..3", "node 4..7"]
    assert {node.ranks for node in huge.nodes if node.ranks} == {32}
    inside = huge.number["node 0..3"]
    assert huge.links["node 3 GPU 0 -> node 3 NVSwitch"] == (inside, inside)
    grid = machine("torus-2d", grid=(64, 64))
    tiles = collapsed(graph(grid), grid)
    assert len(tiles.nodes) == 32 * 32 <= MOST_ENDPOINTS
    assert tiles.links["NoC 0 (1,0) east"] == (tiles.number["(0..1,0..1)"], tiles.number["(2..3,0..1)"])
    assert tiles.links["NoC 0 (0,0) east"] == (tiles.number["(0..1,0..1)"], tiles.number["(0..1,0..1)"])
    assert layout(tiles).height > 0


def test_a_course_is_carried_whole():
    dgx = machine("dgx1-p100")
    names = ["GPU 0 -> GPU 1", "GPU 1 -> GPU 0", "GPU 0 local"]
    busy = np.array([[1.0, 0.5], [0.0, 0.001], [0.25, 0.25]])
    found = picture.scene(dgx, course(names, busy))
    time = found["time"]
    link = next(
        k for k, row in enumerate(found["links"]) if {found["nodes"][n][0] for n in row[:2]} == {"GPU 0", "GPU 1"}
    )
    gpu = next(k for k, row in enumerate(found["nodes"]) if row[0] == "GPU 0")
    assert [row[:4] for row in time["channels"]] == [
        ["GPU 0 -> GPU 1", link, 0, 0], ["GPU 1 -> GPU 0", link, 1, 1], ["GPU 0 local", -2 - gpu, 0, 2],
    ]  # fmt: skip
    # A byte is 255 times the share, rounded up so that no use looks like none: 0.5 is 127.5, 0.001 is 0.255.
    assert unpacked(time["busy"], "u1").tolist() == [255, 128, 0, 1, 64, 64]
    assert time["links"][link] == 0.75  # the mean of the busier direction
    assert time["nodes"][gpu] == 0.25
    states = unpacked(time["states"], "u1")
    assert states[:16].view("<f4").tolist() == [0, 4, 0, 6]
    assert states[32:].tolist() == [0, 2, 1, 3]
    assert time["ranks"] == [[0, "GPU 0", 0], [1, "GPU 1", 2]]
    assert time["path"][0] == [0, 6, 0, 1, "serialisation"]


def test_ranks_stand_where_they_were_placed():
    dgx = machine("dgx1-p100")
    found = picture.scene(dgx, course(["GPU 0 -> GPU 1"], np.ones((1, 2))), placement=[5, 2])
    assert [found["nodes"][node][0] for node in found["time"]["at"]] == ["GPU 5", "GPU 2"]
    assert [row[1] for row in found["time"]["ranks"]] == ["GPU 5", "GPU 2"]
    assert {row[0]: row[7] for row in found["nodes"] if row[1] == "endpoint" and row[7] >= 0} == {
        "GPU 5": 0,
        "GPU 2": 1,
    }


def test_many_intervals_become_what_a_rank_does_at_each_moment():
    count = 70_000
    begin = np.arange(count) * 10.0 / count
    every = {
        "rank": np.zeros(count, int),
        "state": np.arange(count) // 35_000,
        "begin_us": begin,
        "end_us": begin + 1e-3,
    }
    time = picture.scene(machine("dgx1-p100"), course(["GPU 0 -> GPU 1"], np.ones((1, 2)), **every))["time"]
    assert time["intervals"] == 2  # it sends for one half and receives for the other
    assert unpacked(time["states"], "u1")[:8].view("<f4").tolist() == pytest.approx([0, 5], abs=1e-3)


def test_steps_of_load_are_even_and_little_is_not_nothing():
    assert [colours.step(share) for share in (0, 0.001, 0.01, 0.5, 0.99, 1)] == [0, 0, 1, 4, 7, 7]
    for palette, darker in ((colours.LIGHT, True), (colours.DARK, False)):
        brightness = [bright(palette[f"b{step}"]) for step in range(colours.STEPS)]
        assert brightness == sorted(brightness, reverse=darker)


def bright(colour: str) -> float:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue


@pytest.mark.parametrize("payload", ["<script>x</script>", "\x00\x07\ud800", "]]>", '"onload="x', "&amp;", "\u202e"])
def test_names_are_text_in_a_drawing_and_in_a_page(payload):
    found = picture.scene(machine("dgx1-p100"), title=payload)
    found["nodes"][0][0] = found["nodes"][0][2] = found["machine"] = found["about"] = payload
    root = ElementTree.fromstring(picture.svg(found))
    assert {each.tag.rpartition("}")[2] for each in root.iter()} == {"svg", "title", "style", "rect", "path", "text"}
    page = picture.page(found)
    page.encode("utf-8")
    assert page.count("<script") == 2  # the data, and the renderer
    data = page.partition('type="application/json">')[2].partition("</script>")[0]
    assert json.loads(data)[0]["nodes"][0][0] == payload


def test_draw_writes_each_form(tmp_path):
    for suffix, begins in ((".svg", b"<svg "), (".html", b"<!doctype html>")):
        out = tmp_path / f"x{suffix}"
        assert invoke("draw", "cell-be", "--out", str(out)).out == f"{out}\n"
        assert out.read_bytes().startswith(begins)
    pytest.importorskip("resvg_py")
    out = tmp_path / "x.png"
    assert invoke("draw", "hgx-h100", "--nodes", "2", "--dark", "--out", str(out)).status == 0
    assert out.read_bytes().startswith(b"\x89PNG")


def test_draw_shows_the_fastest_schedule_of_the_largest_message_of_a_run(tmp_path):
    words = ("-a", "ring,recursive_doubling_latency", "-p", "4", "--sizes", "8,64K", "--runs", str(tmp_path))
    assert invoke("run", "allreduce", "--on", "loggp", *words).status == 0
    out = tmp_path / "x.html"
    assert invoke("draw", "latest", "--runs", str(tmp_path), "--out", str(out)).status == 0
    times = {
        name: lw.simulate(lw.schedule("allreduce", name, ranks=4, size="64K"), "loggp").time_us
        for name in ("ring", "recursive_doubling_latency")
    }
    fastest = min(times, key=times.__getitem__)
    assert f"allreduce/{fastest}, 64K, 4 ranks of loggp" in out.read_text(encoding="utf-8")


def test_draw_takes_a_library_and_a_function_of_the_user(tmp_path):
    (tmp_path / "own.py").write_text(
        "import linkwright as lw\n"
        "def flat(ranks, size):\n"
        "    return lw.schedule('allreduce', 'ring', ranks=ranks, size=size)\n"
    )
    out = tmp_path / "x.html"
    words = ("draw", "allreduce/nccl-2.27", f"{tmp_path}/own.py:flat", "--on", "hgx-h100", "--size", "64K")
    result = invoke(*words, "--out", str(out))
    assert result.status == 0, result.err
    assert "2 schedules on hgx-h100, in step" in out.read_text(encoding="utf-8")


def test_a_schedule_of_too_many_operations_is_refused(monkeypatch):
    monkeypatch.setattr(subjects, "MOST_OPERATIONS", 111)
    ring = 2 * 7 * 8  # steps of 8 ranks, one message each
    with pytest.raises(UsageError, match=f"{ring} operations.*at most 111 are drawn: ask for fewer --ranks"):
        subjects.of_schedule(machine("dgx1-p100"), "allreduce/ring", subjects.Asked())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["dgx1-p100", "cell-be", "--out", "x.svg"], "2 pictures side by side need a page"),
        (["dgx1-p100", "cell-be", "--out", "x.html"], "name the machine of the schedules with --on"),
        (["dgx1-p100", "--out", "x.gif"], "choose a name that ends in .svg"),
        (["dgx1-p100", "--size", "1M", "--out", "x.svg"], "name their machine with --on"),
        (["dgx1-p100", "--root", "3", "--out", "x.svg"], "name their machine with --on"),
        (["dgx1-p100", "-p", "4", "--out", "x.svg"], "omit --ranks"),
        (["dgx1-p100", "--dark", "--out", "x.html"], "omit --dark"),
        (["dgx1-p100", "--grid", "2x4", "--out", "x.svg"], "omit --grid"),
        (["allreduce/ring", "--out", "x.svg"], "name it with --on"),
        (["allreduce", "--on", "dgx1-p100", "--out", "x.svg"], "add one of its algorithms"),
        (["dgx1-p10", "--out", "x.svg"], "did you mean `dgx1-p100`"),
        (["latest", "--runs", "none", "--out", "x.svg"], "so no `latest`"),
    ],
)
def test_draw_refuses_with_a_cure(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("draw", *words)
    assert result.status == 2
    assert told in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_number_keeps_the_word_before_it_in_small_letters():
    """A box of 30 holds 5 letters of 4.4 and a margin of 2, but only 4 of 6.8."""
    assert _label("node 0 NIC 3", 30, True) == "NIC 3"
    assert _label("node 0 buffer 3", 30, True) == "3"
    assert _label("node 0 NIC 3", 80, False) == "0 NIC 3"
