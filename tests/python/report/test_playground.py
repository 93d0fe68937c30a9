"""The playground in Chromium: its times are those of the program, it survives what is wrong, it fits any screen."""

import contextlib
import json
import os
import random
from pathlib import Path

import pytest
from reading import until

import mutants
from linkwright import _native, machines
from linkwright.ask import How, ask
from linkwright.base.errors import LinkwrightError
from linkwright.machines import Variant
from linkwright.show import playground
from linkwright_cases import invoke

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not playground.ENGINE.is_file(), reason="no engine as WebAssembly: make play"),
]

PROBES = (Path(__file__).parent / "probes.js").read_text(encoding="utf-8")
SEED = int(os.environ.get("LINKWRIGHT_FUZZ_SEED", "0"))
# Machine, nodes, ranks, collective: each with every algorithm and two sizes.
CASES = [
    ("hgx-h100", None, None, "allreduce"),
    ("hgx-h100", 2, 12, "alltoall"),
    ("dgx1-p100", None, 6, "allgather"),
    ("wormhole-n150", None, None, "allreduce"),
    ("torus-2d", None, None, "reduce_scatter"),
    ("loggp", None, 7, "broadcast"),
    ("cell-be", None, 4, "allreduce"),
]
CHANGED = Variant.of(2, "ndr-fat-tree,taper=2", ["node 1 NIC 3"], ["nvlink=0.5"])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("play") / "page.html"
    found = invoke("play", "--out", str(path))
    assert (found.status, found.out) == (0, f"{path}\n")
    assert path.stat().st_size < 4 << 20
    return path


@pytest.fixture
def opened(browser, file):
    pages, errors = [], []

    def open_page(fragment="", scheme="light", width=1280):
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(file.as_uri() + fragment)
        page.wait_for_selector("body[data-answered]", timeout=120_000)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert errors == []


def in_page(page, name, **asked):
    """The answer of the engine in the page."""
    request = {"ask": "time", "file": f"{name}.toml", **asked}
    return page.evaluate("(request) => ask({ ...request, text: request.text ?? data.machines[request.name] })",
                         {**request, "name": name})  # fmt: skip


def message(work):
    """What the program says of it, if it refuses."""
    try:
        work()
    except LinkwrightError as error:
        return str(error)
    return None


def in_program(machine, key, ranks, size, places=None):
    try:
        grid = machine.rank_grid if ranks == machine.ranks else None
        schedule = _native.Schedule.build(key, ranks, size // 4, grid=grid)
        found = ask(machine, schedule, How(placement=places, links=True))
    except LinkwrightError as error:
        return {"error": str(error)}
    return {"time_ps": found.time.ps, "limit_ps": found.limit and found.limit.time.ps, "bytes": found.counts.bytes}


def agree(answer, expected):
    if "error" in expected:
        assert answer.get("error") == expected["error"]
    else:
        assert answer["ok"]["time_ps"] == expected["time_ps"]
        assert (answer["ok"]["limit"] or {}).get("time_ps") == expected["limit_ps"]


def sized(name, ranks, nodes=None):
    machine = machines.load(name, Variant(nodes))
    if machine.open_size == "grid" and ranks is None:
        return machine.with_grid(8, 8)
    return machine.with_endpoints(ranks or 16) if machine.open_size else machine


def test_times_are_those_of_the_program(opened):
    page = opened("#algorithm=ring&size=64")
    compared = 0
    for name, nodes, ranks, collective in CASES:
        machine = sized(name, ranks, nodes)
        used = ranks or machine.ranks
        places = list(Variant(nodes).places(machine, ranks) or []) or None
        for algorithm in [row["name"] for row in _native.algorithms() if row["collective"] == collective]:
            for size in (4 * used, 1 << 20 if used in (4, 8, 16, 64) else 4 * used << 14):
                asked = {"nodes": nodes, "ranks": ranks, "collective": collective, "algorithm": algorithm, "size": size}
                expected = in_program(machine, f"{collective}/{algorithm}", used, size, places)
                agree(in_page(page, name, **asked), expected)
                compared += "time_ps" in expected
    assert compared > 120


def test_every_shipped_machine_gives_the_time_of_the_program(opened):
    page = opened("#algorithm=ring&size=64")
    for name in machines.names():
        machine = sized(name, None)
        ranks = min(machine.ranks, 8)
        if machine.ranks > 1 and not machine.open_size:
            expected = in_program(machine, "allreduce/ring", ranks, 1 << 18)
            agree(in_page(page, name, ranks=ranks, collective="allreduce", algorithm="ring", size=1 << 18), expected)


def test_a_broken_and_tapered_cluster_is_that_of_the_program(opened):
    asked = {"nodes": 2, "fabric": "ndr-fat-tree,taper=2", "without": ["node 1 NIC 3"], "degrade": ["nvlink=0.5"]}
    found = in_page(opened("#algorithm=ring&size=64"), "hgx-h100", collective="allreduce", algorithm="ring",
                    size=1 << 20, **asked)  # fmt: skip
    agree(found, in_program(machines.load("hgx-h100", CHANGED), "allreduce/ring", 16, 1 << 20))


def test_the_form_shows_times_limits_and_links_and_a_link_repeats_it(opened):
    page = opened("#machine=dgx1-p100&collective=allgather&algorithm=ring&size=64K&ranks=4")
    expected = in_program(machines.load("dgx1-p100"), "allgather/ring", 4, 65536)
    (line,) = page.locator("#times tbody tr").all()
    assert line.get_attribute("data-ps") == str(expected["time_ps"])
    assert page.locator("#details h3").all_inner_texts()[1:] == ["Limits", "Critical path", "Busiest links"]
    page.fill("[name=size]", "128K")
    page.click("button[type=submit]")
    until(page, "location.hash.includes('size=128K')")
    again = opened(page.evaluate("location.hash"))
    wanted = str(in_program(machines.load("dgx1-p100"), "allgather/ring", 4, 131072)["time_ps"])
    assert again.locator("#times tbody tr").get_attribute("data-ps") == wanted


def test_a_schedule_is_proved_and_a_wrong_one_refused_in_the_words_of_the_program(opened):
    page = opened("#algorithm=ring&size=64")
    text = _native.Schedule.build("allreduce/ring", 4, 1024).text()
    assert in_page(page, "loggp", schedule=text)["ok"]["proof"]["operations"] == 24
    lines = text.splitlines()
    for cut in range(len(lines)):
        changed = "\n".join(lines[:cut] + lines[cut + 1 :])
        refused = message(lambda changed=changed: _native.Schedule.parse(changed).verify())
        assert in_page(page, "loggp", schedule=changed).get("error") == refused


@pytest.mark.parametrize(
    "change", [("kind", "knid"), ("[machine]", "[machine"), ("GB/s", "GB/h")], ids=["key", "syntax", "unit"]
)
def test_a_wrong_machine_file_is_refused_in_the_words_of_the_program(opened, change):
    page = opened("#algorithm=ring&size=64")
    path, text = machines.described("dgx1-p100")
    page.select_option("[name=machine]", "dgx1-p100")
    page.evaluate("document.querySelectorAll('details.text').forEach((one) => { one.open = true; })")
    page.fill("[name=text]", text.replace(*change))
    page.click("button[type=submit]")
    page.wait_for_selector("#error:not([hidden])")
    with pytest.raises(LinkwrightError) as error:
        _native.Draft(text.replace(*change), path.name, machines.Shelf(path), Variant()).machine()
    assert page.inner_text("#error") == str(error.value)
    page.click("#shipped")
    page.click("button[type=submit]")
    page.wait_for_selector("#times tbody tr")
    assert page.is_hidden("#error")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"size": 6}, "not a whole number of f32 elements"),
        ({"size": 0}, "moves at least one element"),
        ({"size": 4096, "ranks": 9}, "hgx-h100 has 8 ranks"),
        ({"size": 4096, "ranks": 10**9}, "at most 4096"),
        ({"size": 4096, "ranks": -1}, "not a whole number"),
        ({"size": 4096, "nodes": 0}, "1 to 4096 nodes"),
        ({"size": 4096, "nodes": 3, "ranks": 4}, "a multiple of 3"),
        ({"size": 4096, "fabric": "ndr-fat-tree"}, "give their number"),
        ({"size": 4096, "nodes": 2, "fabric": "ndr-fat-tre"}, "did you mean `ndr-fat-tree`?"),
        ({"size": 4096, "without": ["x" * 5000]}, "x" * 5000),
        ({"size": 4096, "degrade": ["nvlink"]}, "such as `nvlink=0.25`"),
        ({"size": 4096, "path": "nope"}, "nope"),
        ({"size": 4096, "algorithm": "rnig"}, "ring"),
        ({"size": 4096, "text": "[" * 100_000}, "hgx-h100.toml"),
    ],
)
def test_wrong_fields_are_refused(opened, asked, words):
    page = opened("#algorithm=ring&size=64")
    found = in_page(page, "hgx-h100", **{"collective": "allreduce", "algorithm": "ring", **asked})
    assert words in found["error"]
    assert "ok" in in_page(page, "hgx-h100", collective="allreduce", algorithm="ring", size=4096)


def test_an_engine_that_breaks_off_is_replaced_and_a_stopped_one_too(opened):
    page = opened("#algorithm=ring&size=64")
    broken = page.evaluate("ask({ ask: 'time', file: 1n })")  # no JSON has such a number
    assert "the engine broke off" in broken["error"]
    assert "ok" in in_page(page, "hgx-h100", collective="allreduce", algorithm="ring", size=4096)
    page.evaluate("stop()")
    page.click("button[type=submit]")
    page.wait_for_selector("#times tbody tr")


def test_mutants_of_requests_get_an_answer_or_a_message(opened):
    page, rng = opened("#algorithm=ring&size=64"), random.Random(SEED)
    schedule = _native.Schedule.build("broadcast/linear", 4, 16).text()
    plain = {
        "ask": "time", "file": "m.toml", "text": machines.described("loggp")[1], "collective": "broadcast",
        "algorithm": "linear", "size": 64, "ranks": 4, "path": "message",
    }  # fmt: skip
    varied = {**plain, "nodes": 1, "fabric": "", "without": ["x"], "degrade": ["x=0.5"]}
    asked = []
    for _ in range(400):
        changed = mutants.tree(rng, rng.choice([plain, varied, {**plain, "schedule": schedule}]))
        for key, text in (("text", plain["text"]), ("schedule", schedule)):
            if key in changed and rng.random() < 0.3:
                changed[key] = mutants.text(rng, text)
        with contextlib.suppress(ValueError):  # no JSON has such a number
            asked.append(json.dumps(changed, allow_nan=False))
    each = (
        "async (all) => { const said = []; for (const one of all) said.push(await ask(JSON.parse(one))); return said }"
    )
    found = page.evaluate(each, asked)
    wrong = [pair for pair in zip(asked, found, strict=True) if "ok" not in pair[1] and not fine(pair[1]["error"])]
    assert wrong == []
    assert len([one for one in found if "ok" in one]) > 10


def fine(error):
    return error and "broke off" not in error and "internal error" not in error


def search(page, seconds, until="#taken:not([hidden])"):
    """Press the button and wait for what was found."""
    page.fill("#seconds", str(seconds))
    assert page.inner_text("#search") == f"Search {seconds} s"
    page.click("#search")
    page.wait_for_selector(until, timeout=90_000)


def timed(page, machine):
    """The schedule on the page, proved and simulated by the program, in ps."""
    schedule = _native.Schedule.parse(page.input_value("#found-text"))
    schedule.verify()
    policy = page.evaluate("search.answer.issue")
    assert f"# issue policy: {policy}\n" in page.input_value("#found-text")
    return ask(machine, schedule, How(issue=policy)).time.ps


def test_a_search_finds_a_faster_schedule_which_the_program_times_alike(opened):
    page = opened("#machine=dgx1-p100&collective=allgather&algorithm=ring&size=1M")
    search(page, 3)
    machine = machines.load("dgx1-p100")
    first, known = page.locator("#times tbody tr").all()
    assert int(first.get_attribute("data-ps")) == timed(page, machine)
    library = list(_native.synthesize(machine, "allgather", 8, 1 << 20, methods=["library"]))[-1]
    assert int(known.get_attribute("data-ps")) == library["time_ps"] > 2 * timed(page, machine)
    assert known.inner_text().startswith(library["recipe"])
    assert first.locator("td").nth(4).inner_text().replace(",", "").isdigit()
    assert "times as fast as the best built-in algorithm" in page.inner_text("#status")
    assert page.locator("#improvements tbody tr").count() >= 2
    found = first.get_attribute("data-ps")
    page.click("#own")
    until(page, "document.querySelectorAll('#times tbody tr').length === 1 && document.getElementById('stop').disabled")
    assert page.locator("#times tbody tr").get_attribute("data-ps") == found
    page.click("#search")
    page.wait_for_selector("#error:not([hidden])")
    assert page.inner_text("#error").startswith("schedule: a search makes schedules")
    page.click("#clear")
    search(page, 1)


@pytest.mark.parametrize(
    ("name", "collective", "size"),
    [("h200-sms", "allgather", 4096), ("h200-sms", "reduce", 1 << 20), ("a100-polaris", "scatter", 1 << 26)],
)
def test_a_search_that_tries_everything_answers_as_the_program(opened, name, collective, size):
    machine = sized(name, None)
    native = _native.synthesize(machine, collective, machine.ranks, size, budget_s=60.0, threads=2)
    recipes = [one["recipe"] for one in native]
    page = opened("#algorithm=ring&size=64")
    found = in_page(page, name, ask="search", collective=collective, size=size, seconds=60)["ok"]
    words = ("method", "recipe", "time_ps", "issue", "path")
    assert [found["answer"][word] for word in words] == [native.answer[word] for word in words]
    assert found["answer"]["schedule"] == native.answer["schedule"].text()
    assert (found["tried"], found["unseen"]) == (native.tried, native.unseen)
    assert found["answer"]["recipe"] in recipes


def test_a_stopped_search_shows_the_best_so_far(opened):
    page = opened("#machine=dgx1-p100&collective=allgather&algorithm=ring&size=1M")
    search(page, 60, until="#improvements tbody tr:nth-child(3)")
    page.click("#stop")
    page.wait_for_selector("#taken:not([hidden])")
    assert page.inner_text("#status").startswith("Stopped. Found: ")
    first = page.locator("#times tbody tr").first
    assert int(first.get_attribute("data-ps")) == timed(page, machines.load("dgx1-p100"))
    assert page.is_hidden("#progress")
    page.click("#search")
    page.wait_for_selector("#progress:not([hidden])")
    page.click("button[type=submit]")
    until(page, "document.querySelectorAll('#times tbody tr').length === 1 && document.getElementById('stop').disabled")
    assert page.is_hidden("#search-box")


@pytest.mark.parametrize("text", ["", "0", "61", "1.5", "-1"])
def test_wrong_seconds_are_refused(opened, text):
    page = opened("#algorithm=ring&size=64")
    page.fill("#seconds", text)
    page.click("#search")
    page.wait_for_selector("#error:not([hidden])")
    assert "write a whole number from 1 to 60" in page.inner_text("#error")
    assert page.is_hidden("#progress")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"seconds": 0}, "a page searches 1 to 60 s"),
        ({"seconds": 61}, "`linkwright synthesize` searches longer"),
        ({"seconds": "x"}, "is not a whole number"),
        ({"schedule": "x"}, "clear that field"),
        ({"issue": "blocking"}, "clear that field"),
        ({"collective": "alltoallv"}, "collective alltoallv"),
        ({"collective": "pattern"}, "collective pattern"),
        ({"collective": "allreduse"}, "collective allreduse"),
        ({"collective": "alltoall", "size": 16}, "less than one for each of 8 ranks"),
        ({"nodes": 2, "ranks": 12}, "search for all 16 ranks, or on fewer nodes"),
        ({"nodes": 2, "ranks": 17}, "has 16 ranks"),
        ({"path": "nope"}, "nope"),
        ({"size": 6}, "not a whole number of f32 elements"),
    ],
)
def test_searches_that_cannot_be_are_refused_by_name(opened, asked, words):
    page = opened("#algorithm=ring&size=64")
    found = in_page(page, "hgx-h100", **{"ask": "search", "collective": "allreduce", "size": 4096, **asked})
    assert words in found["error"]


def test_an_issue_policy_is_that_of_the_program(opened):
    page = opened("#algorithm=ring&size=64")
    asked = {"ranks": 8, "collective": "alltoall", "algorithm": "linear", "size": 1 << 20}
    schedule = _native.Schedule.build("alltoall/linear", 8, 1 << 18)
    for policy in ("blocking", "window(2)", "batch(3)", "unlimited"):
        expected = ask(machines.load("dgx1-p100"), schedule, How(issue=policy)).time.ps
        assert in_page(page, "dgx1-p100", **asked, issue=policy)["ok"]["time_ps"] == expected
    assert "write blocking" in in_page(page, "dgx1-p100", **asked, issue="windows")["error"]


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_the_screen_and_is_legible(opened, scheme, width):
    page = opened("#machine=torus-2d&size=64K", scheme, width)
    search(page, 1)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(PROBES)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("probes.lowContrast()") == []
    unnamed = "[...document.querySelectorAll('input,select,textarea')].filter((one) => !one.labels.length).length"
    assert page.evaluate(unnamed) == 0
    assert (
        page.evaluate("[...document.querySelectorAll('button')].filter((one) => !one.textContent.trim()).length") == 0
    )


def test_texts_of_strangers_stay_texts_and_no_request_leaves(opened):
    bad = "%3Cimg src=x onerror='window.pwned=1'%3E"
    page = opened(f"#machine=hgx-h100&algorithm=ring&size=64&without={bad}")
    assert page.is_visible("#error")
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    policy = page.get_attribute("meta[http-equiv]", "content")
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy


def test_an_engine_older_than_its_sources_is_named(tmp_path, monkeypatch):
    old = tmp_path / "engine.wasm"
    old.write_bytes(playground.ENGINE.read_bytes())
    os.utime(old, (1, 1))
    monkeypatch.setattr(playground, "ENGINE", old)
    found = invoke("play", "--out", str(tmp_path / "page.html"))
    assert found.status == 0
    assert "`make play`" in found.err
    monkeypatch.setattr(playground, "SOURCES", tmp_path / "crates")
    assert playground.outdated() is None


def test_without_the_engine_the_command_names_the_cure(tmp_path, monkeypatch):
    monkeypatch.setattr(playground, "ENGINE", tmp_path / "none.wasm")
    found = invoke("play", "--out", str(tmp_path / "page.html"))
    assert found.status == 2
    assert "make play" in found.err
