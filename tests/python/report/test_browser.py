"""The page in Chromium: no error, every chart drawn, tables sort, legible in both themes, large maps fast."""

from __future__ import annotations

from pathlib import Path

import poison
import pytest
import synthetic
from reading import until

from linkwright.base import registry
from linkwright.show import report
from linkwright.show.report import model
from linkwright_cases import invoke
from linkwright_evidence.report import render_study

pytestmark = pytest.mark.browser

PROBES = (Path(__file__).parent / "probes.js").read_text(encoding="utf-8")


@pytest.fixture
def opened(browser):
    """Opens a page and fails the test on any error that its console saw."""
    pages, errors = [], []

    def seen(message):
        if message.type in ("error", "warning"):
            errors.append(message.text)

    def open_page(path, scheme="light", width=1280, unfold=True):
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.on("console", seen)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]", timeout=30_000)
        page.evaluate(PROBES)
        if unfold:
            page.evaluate("document.querySelectorAll('details.folded').forEach((box) => { box.open = true; })")
            until(page, "[...document.querySelectorAll('[data-chart]')].every((c) => LW.unseen(c) || c.dataset.drawn)")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["run_page", "study_page", "machines_page"])
def test_drawn_and_legible(opened, request, name, scheme):
    page = opened(request.getfixturevalue(name), scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert page.evaluate("probes.emptyCharts()") == []
    assert page.evaluate("probes.lowContrast()") == []


@pytest.mark.parametrize("width", [1400, 800, 420])
@pytest.mark.parametrize("name", ["run_page", "study_page", "machines_page"])
def test_nothing_overflows(opened, request, name, width):
    page = opened(request.getfixturevalue(name), width=width)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    if width > 420:  # there, a table scrolls inside its box
        assert page.evaluate("probes.wideTables()") == []


# Commands that write a page of each kind besides those of runs, studies and two machines. The path comes last.
SLOW_LOG = Path(__file__).parents[3] / "examples" / "logs" / "h100-slow.log"
WRITES = {
    "log": ("explain", str(SLOW_LOG), "--report"),
    "schedule": ("explain", "allreduce/ring", "--on", "dgx1-p100", "--size", "64M", "--report"),
    "run": ("explain", "latest", "--report"),
    "simulation": ("simulate", "allreduce", "-a", "ring", "--on", "hgx-h100", "--sizes", "1M", "--report"),
    "training": ("predict", "resnet", "--batch", "16", "--gpus", "1,8", "--on", "dgx1-p100", "--report"),
    "search": ("synthesize", "allreduce", "--on", "dgx1-p100", "--sizes", "1M", "--budget", "1s", "--report"),
    "picture": ("draw", "allreduce/ring", "allreduce/recursive_doubling_bandwidth", "--on", "dgx1-p100", "--out"),
}
CONTROLS = {"button", "link", "textbox", "combobox", "slider", "checkbox", "radio", "spinbutton", "listbox"}


def unnamed_controls(page):
    """Roles of the controls in the accessibility tree that have no name."""
    found = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    shown = [node for node in found if not node["ignored"] and node["role"]["value"] in CONTROLS]
    assert shown
    return [node["role"]["value"] for node in shown if not node.get("name", {}).get("value", "").strip()]


@pytest.mark.parametrize("name", ["run_page", "study_page", "machines_page"])
def test_controls_have_names(opened, request, name):
    assert unnamed_controls(opened(request.getfixturevalue(name))) == []


@pytest.mark.parametrize("kind", WRITES)
def test_every_kind_of_page_fits_a_phone_and_names_its_controls(browser, tmp_path, kind):
    path, words = tmp_path / "page.html", list(WRITES[kind])
    if kind == "run":
        words[-1:] = ["--runs", str(synthetic.folder(tmp_path / "runs" / "demo").parent), "--report"]
    done = invoke(*words, str(path))
    assert done.status == 0, done.err
    for width in (1280, 420):
        page, errors = browser.new_page(), []
        page.on("pageerror", lambda error, seen=errors: seen.append(str(error)))
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri())
        for _ in range(2):
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            page.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
        assert unnamed_controls(page) == []
        assert errors == []
        page.close()


def test_a_long_page_is_folded_and_a_link_opens_a_section(opened, run_page):
    page = opened(run_page, unfold=False)
    height = "document.documentElement.scrollHeight"
    folded = page.evaluate(height)
    assert folded <= 8000
    is_open = "document.querySelector('#environment > details').open"
    assert not page.evaluate(is_open)
    page.click("nav a[href='#environment']")
    until(page, is_open)
    whole = opened(run_page).evaluate(height)
    assert whole > 1.5 * folded


def test_a_heat_map_of_ratios_says_what_its_colours_mean(opened, machines_page):
    told = opened(machines_page).locator("figure.heat .scale span").all_inner_texts()
    assert (told[0].startswith("mi300x faster 0."), told[1].endswith(" hgx-h100 faster")) == (True, True)


def test_theme_button_cycles_and_redraws(opened, run_page):
    page = opened(run_page)
    themes = []
    for _ in range(3):
        page.click("#theme")
        themes.append(page.evaluate("document.documentElement.dataset.theme"))
    assert themes == ["light", "dark", "light"]


def test_tables_sort_by_number_and_back(opened, study_page):
    page = opened(study_page)
    rows = "[...document.querySelectorAll('#how-close .block tbody tr')]"
    column = f"{rows}.map((row) => Number(row.cells[4].dataset.sort))"
    head = page.locator("#how-close .block th button").nth(4)
    head.click()
    up = page.evaluate(column)
    head.click()
    down = page.evaluate(column)
    assert up == sorted(up)
    assert down == sorted(up, reverse=True)
    assert up != down


def test_empty_cells_sort_last_both_ways(opened, run_page):
    page = opened(run_page)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    table = page.locator("table.sortable", has=page.locator("td.quiet")).first
    for _ in range(2):
        table.locator("th button").last.click()
        empty = table.locator("tbody td:last-child").evaluate_all("(c) => c.map((x) => !x.querySelector('.v'))")
        assert empty == sorted(empty)


def test_every_point_answers_the_pointer(opened, run_page):
    page = opened(run_page)
    chart = page.locator("figure.plot .canvas").first
    chart.scroll_into_view_if_needed()
    chart.focus()
    page.keyboard.press("ArrowRight")
    text = page.locator(".tip").inner_text()
    assert "message size" in text
    assert "n 12" in text
    box = chart.locator("canvas").first.bounding_box()
    points = page.evaluate("LW.charts.find((c) => c.points).points()")
    names = chart.locator(".legend button").all_inner_texts()
    assert len(points) > 20
    for point in (p for p in points if not names[p["curve"]].startswith("limit")):
        page.mouse.move(box["x"] + point["x"], box["y"] + point["y"])
        assert chart.get_attribute("data-hover") == names[point["curve"]]


@pytest.mark.parametrize("scale", ["log2", "linear"])
def test_points_side_by_side_stay_inside(opened, tmp_path, scale):
    curves = [model.Curve(f"series {i}", x=[8192, 131072, 2097152], y=[1e9, 2e9, 3e9]) for i in range(12)]
    axes = model.Axis("block", "B", scale), model.Axis("bandwidth", "B/s")
    section = model.Section("dodge", [model.Plot("side by side", *axes, curves, dodge=True)])
    page = opened(report.render(model.Report("dodge", sections=[section]), tmp_path / "index.html"))
    left, width = (page.evaluate(f"document.querySelector('.u-over').offset{side}") for side in ("Left", "Width"))
    xs = [point["x"] for point in page.evaluate("LW.charts[0].points()")]
    assert len(set(xs)) == 36
    assert left <= min(xs)
    assert max(xs) <= left + width


@pytest.fixture
def choice_page(tmp_path):
    """Three curves to choose from; the first is seen."""
    axes = model.Axis("size", "B", "log2"), model.Axis("time", "s", "log10")
    plots = [model.Plot(f"plot {n}", *axes, [model.Curve("ring", [8, 64], [1e-6, 2e-6 * n + 1e-6])]) for n in range(3)]
    section = model.Section("choice", [model.Choice("Show", plots)])
    return report.render(model.Report("choice", sections=[section]), tmp_path / "index.html")


def test_a_choice_shows_one_chart_and_draws_it_when_chosen(opened, choice_page):
    page = opened(choice_page)
    seen = "[...document.querySelectorAll('figure')].map((f) => f.offsetParent !== null)"
    drawn = "[...document.querySelectorAll('[data-chart]')].map((c) => c.dataset.drawn === 'true')"
    assert page.evaluate(seen) == page.evaluate(drawn) == [True, False, False]
    page.select_option(".choice select", "plot 2")
    until(page, "document.querySelectorAll('[data-chart]')[2].dataset.drawn")
    assert page.evaluate(seen) == [False, False, True]
    assert page.evaluate("probes.emptyCharts()") == []
    page.set_viewport_size({"width": 700, "height": 900})
    page.select_option(".choice select", "plot 0")
    widths = page.evaluate(
        "[...document.querySelectorAll('figure:not([hidden]) .canvas')].map((c) => c.scrollWidth - c.clientWidth)"
    )
    assert widths == [0]


def test_a_group_is_one_entry_of_the_legend(opened, tmp_path):
    axes = model.Axis("size", "B", "log2"), model.Axis("time", "s", "log10")
    names = {"ring": "", "tree": "2 slower", "star": "2 slower"}
    curves = [model.Curve(name, [8, 64], [1e-6, 2e-6], group=group) for name, group in names.items()]
    section = model.Section("group", [model.Plot("p", *axes, curves)])
    page = opened(report.render(model.Report("group", sections=[section]), tmp_path / "index.html"))
    buttons = page.locator(".legend button")
    assert buttons.all_inner_texts() == ["ring", "2 slower"]
    assert buttons.nth(1).get_attribute("title") == "tree, star"
    buttons.nth(1).click()
    assert {point["curve"] for point in page.evaluate("LW.charts[0].points()")} == {0}


def test_legend_hides_a_series(opened, run_page):
    page = opened(run_page)
    button = page.locator("figure.plot .legend button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"


def test_heat_map_of_two_million_cells(opened, big_map_page):
    page = opened(big_map_page)
    target = page.locator("[data-chart=heat]")
    assert float(target.get_attribute("data-paint")) < 500
    port = page.locator(".port")
    for _ in range(8):
        page.get_by_role("button", name="Zoom in").click()
    assert page.evaluate("probes.cell()") > 4
    steps = page.evaluate("probes.scrollMap()")
    assert steps["left"] > 1000, "it did not scroll"
    assert steps["worst"] < 50, f"a frame took {steps['worst']} ms"
    box = port.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(".tip >> text=tile")
    assert "destination tile" in target.get_attribute("data-hover")
    page.mouse.wheel(0, 120)
    page.get_by_role("button", name="Show all cells").click()
    assert page.evaluate("probes.cell()") < 1


def test_prints_every_chart_light(opened, run_page, tmp_path):
    page = opened(run_page, "dark")
    page.evaluate("LW.theme.print(true)")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate("probes.emptyCharts()") == []
    page.evaluate("LW.theme.print(false)")
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 50_000


@pytest.fixture
def visited(browser):
    """Opens a page without expecting it to be free of errors: a policy that stops a script says so."""
    pages = []

    def open_page(path):
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]", timeout=30_000)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()


def pages_of_files(folder):
    """Pages of a sweep on a poisoned machine by a poisoned suite, of an import, and of a forecast."""
    machine, suite, log = folder / "m.toml", folder / "s.toml", folder / "log.txt"
    shipped = [registry.machine_path("loggp"), registry.suite_path("scaling")]
    for path, put in zip(shipped, (machine, suite), strict=True):
        put.write_text(poison.toml(path.read_text(encoding="utf-8")), encoding="utf-8")
    log.write_text("# OSU MPI Allreduce Latency Test v7.3\n# Size  Avg Latency(us)\n4    1.46\n8    1.50\n")
    runs = folder / "runs"
    swept = invoke("dissect", str(suite), "--on", str(machine), "-p", "4", "--level", "quick", "--runs", str(runs))
    words = ["import", "--as", "osu", "-p", "4", str(log), "--runs", str(runs)]
    imported = [invoke(*words, "--machine", payload) for payload in poison.PAYLOADS]
    page = folder / "forecast.html"
    asked = ["predict", "resnet", "--batch", "16", "--gpus", "1", "--on", str(folder / "gpus.toml"), "--report"]
    (folder / "gpus.toml").write_text(poison.toml(registry.machine_path("dgx1-p100").read_text(encoding="utf-8")))
    forecast = invoke(*asked, str(page))
    assert swept.status == forecast.status == 0, swept.err + forecast.err
    made = [Path(one.out.split()[-1]) for one in imported if one.status == 0]
    assert len(made) > len(poison.PAYLOADS) / 2  # others are refused: they hold what no terminal shows
    return [*sorted(runs.glob("*/report/index.html")), page]


def test_files_of_strangers_run_no_script(visited, tmp_path):
    drawn = pages_of_files(tmp_path)
    assert sum(path.read_text(encoding="utf-8").count("window.pwned=1") for path in drawn) > 20
    for path in drawn:
        page = visited(path)
        page.evaluate("document.querySelectorAll('*').forEach((it) => it.focus && it.focus())")
        assert page.evaluate("window.pwned") is None, path
        assert "Content-Security-Policy" in path.read_text(encoding="utf-8")


def test_texts_of_strangers_run_no_script(visited, tmp_path):
    drawn = [
        report.render(poison.run(synthetic.folder(tmp_path / "demo"))),
        render_study(poison.study(synthetic.study()), tmp_path / "study.html"),
    ]
    for path in drawn:
        text = path.read_text(encoding="utf-8")
        # The payloads are there, as text: a page that lost them would prove nothing.
        assert text.count("window.pwned=1") > 100
        page = visited(path)
        page.evaluate("document.querySelectorAll('*').forEach((it) => it.focus && it.focus())")
        page.mouse.move(300, 300)
        page.wait_for_timeout(100)
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.querySelectorAll('main img, main iframe, main svg script').length") == 0


def test_the_policy_stops_a_script_that_got_in(visited, study_page, tmp_path):
    text = study_page.read_text(encoding="utf-8")
    inside = tmp_path / "inside.html"
    bad = "<script>window.pwned=1</script><img src=x onerror='window.pwned=1'>"
    inside.write_text(text.replace("<main", bad + "<main", 1), encoding="utf-8")
    assert visited(inside).evaluate("window.pwned") is None
    # Without the policy the same page is taken over, so the test can tell.
    lax = tmp_path / "lax.html"
    policy = text[text.index("<meta http-equiv") : text.index("\n", text.index("<meta http-equiv"))]
    lax.write_text(inside.read_text(encoding="utf-8").replace(policy, ""), encoding="utf-8")
    assert visited(lax).evaluate("window.pwned") == 1
