"""Pictures that move, in Chromium: drawn, played, brushed, by keyboard, with names of strangers, and fast enough."""

from __future__ import annotations

import poison
import pytest
from reading import until

import linkwright as lw
from linkwright.show import picture, report
from linkwright.show.picture import subjects
from linkwright.show.report import model

pytestmark = pytest.mark.browser

ASKED = subjects.Asked(size=65536)


@pytest.fixture(scope="module")
def ring():
    return subjects.of_schedule(lw.machine("dgx1-p100"), "allreduce/ring", ASKED)


@pytest.fixture(scope="module")
def doubling():
    return subjects.of_schedule(lw.machine("dgx1-p100"), "allreduce/recursive_doubling_latency", ASKED)


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page of scenes and fails the test on any error that its console saw."""
    pages, errors = [], []

    def open_page(html, scheme="light", width=1280):
        path = tmp_path / "picture.html"
        path.write_text(html, encoding="utf-8")
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.on(
            "console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("figure[data-ready]", timeout=30_000)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert errors == []


def pixels(page, canvas: str) -> str:
    return page.evaluate(f"document.querySelector('{canvas}').toDataURL()")


def clock(page) -> str:
    return page.locator(".lwp-clock").text_content()


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_drawn_in_both_themes_and_nothing_overflows(opened, ring, scheme, width):
    page = opened(picture.page(ring), scheme, width)
    colours = (
        "(c) => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
    )
    assert page.locator("canvas").count() == 3
    for canvas in page.locator("canvas").all():
        assert canvas.evaluate(colours) > 5
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") < 1000


def test_play_pause_and_the_slider_move_the_time(opened, ring):
    page = opened(picture.page(ring))
    assert clock(page).startswith("average of ")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Play"
    before = pixels(page, ".lwp-net")
    page.keyboard.press("Space")
    until(page, "document.querySelector('.lwp-slider').value > 20")
    assert page.evaluate("document.activeElement.textContent") == "Pause"
    page.keyboard.press("Space")
    assert pixels(page, ".lwp-net") != before
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    end = lw.simulate(lw.schedule("allreduce", "ring", ranks=8, size=65536), "dgx1-p100").time_us
    until(page, "LWPicture.decks[0].now === LWPicture.decks[0].whole")
    page.wait_for_timeout(100)
    assert float(clock(page).split()[0]) == pytest.approx(end, abs=0.1)
    assert page.locator(".lwp-slider").get_attribute("aria-valuetext") == clock(page)


def test_a_range_is_brushed_for_both_strips_and_given_back(opened, ring):
    page = opened(picture.page(ring))
    ranks, heat = pixels(page, ".lwp-ranks"), pixels(page, ".lwp-heat")
    box = page.locator(".lwp-heat").bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 20)
    page.mouse.up()
    until(page, "LWPicture.decks[0].view[0] > 0")
    plot = box["width"] - 168  # what is left of the names
    view, whole = page.evaluate("[LWPicture.decks[0].view, LWPicture.decks[0].whole]")
    assert view == pytest.approx([whole * (400 - 168) / plot, whole * (600 - 168) / plot], rel=1e-3)
    assert pixels(page, ".lwp-ranks") != ranks
    assert pixels(page, ".lwp-heat") != heat
    page.get_by_role("button", name="Whole time").click()
    assert page.evaluate("LWPicture.decks[0].view") == [0, whole]
    page.evaluate("LWPicture.decks[0].seek(0)")
    page.locator(".lwp-ranks").focus()
    for key in ("ArrowRight", "ArrowRight", "+"):  # at 2 %, so the first half is left
        page.keyboard.press(key)
    assert page.evaluate("[LWPicture.decks[0].now, ...LWPicture.decks[0].view]") == pytest.approx(
        [whole * 0.02, 0, whole / 2]
    )
    page.keyboard.press("-")
    assert page.evaluate("LWPicture.decks[0].view") == [0, whole]


def test_hover_and_arrow_keys_tell_of_a_link(opened, ring):
    page = opened(picture.page(ring))
    page.locator(".lwp-net").focus()
    page.keyboard.press("ArrowRight")
    told = page.locator(".lwp-tip").inner_text()
    a, b = (ring["nodes"][end][0] for end in ring["links"][0][:2])
    assert told.startswith(f"{a} – {b}\n")
    assert "GB/s each way" in told
    assert page.locator(".lwp-read").text_content().startswith(f"{a} – {b}. ")
    gpu = next(row for row in ring["nodes"] if row[0] == "GPU 0")
    box = page.locator(".lwp-net").bounding_box()
    scale = box["width"] / ring["width"]
    page.mouse.move(box["x"] + gpu[3] * scale, box["y"] + gpu[4] * scale)
    told = page.locator(".lwp-tip").inner_text()
    assert told.startswith("GPU 0\nrank 0\n")
    assert "wait" in told


def test_two_schedules_are_played_in_step(opened, ring, doubling):
    page = opened(picture.page(ring, doubling))
    assert page.locator(".lwp-name").all_text_contents() == [ring["title"], doubling["title"]]
    assert page.locator(".lwp-slider").count() == 1
    spans = [scene["time"]["span_us"] for scene in (ring, doubling)]
    assert page.evaluate("LWPicture.decks[0].whole") == max(spans)
    shares = "LWPicture.decks[0].panels.map((p) => Math.max(...p.order.map((k) => p.share(k))))"
    late = page.evaluate(f"LWPicture.decks[0].seek({(spans[0] + spans[1]) / 2}), {shares}")
    assert [share > 0 for share in late] == [span == max(spans) for span in spans]


def test_names_of_strangers_are_text_everywhere(opened, ring):
    payloads = iter(poison.PAYLOADS * 200)
    spoilt = dict(ring, title=next(payloads), machine=next(payloads), about=next(payloads))
    spoilt["nodes"] = [[row[0] + next(payloads), row[1], next(payloads), *row[3:]] for row in ring["nodes"]]
    spoilt["classes"] = [name + next(payloads) for name in ring["classes"]]
    time = dict(ring["time"])
    time["channels"] = [[name + next(payloads), *rest] for name, *rest in time["channels"]]
    time["ranks"] = [[rank, name + next(payloads), first] for rank, name, first in time["ranks"]]
    spoilt["time"] = time
    page = opened(picture.page(spoilt, ring))
    for name in (".lwp-net", ".lwp-heat", ".lwp-ranks"):
        box = page.locator(name).first.bounding_box()
        for step in range(1, 9):
            page.mouse.move(box["x"] + box["width"] * step / 9, box["y"] + min(box["height"] / 2, 400))
    page.locator(".lwp-net").first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("window.pwned") is None
    assert page.locator("iframe, img, figure a").count() == 0


def test_without_scripts_there_is_a_drawing_and_tables(ring):
    html = picture.page(ring)
    assert "<noscript><svg " in html
    assert "<th>busiest links</th>" in html
    assert len(html) < 3 << 20


def test_a_report_holds_one(opened, ring):
    page_of = model.Report("demo", sections=[model.Section("Picture", [model.Moving([ring])])])
    page = opened(report.html.page(page_of))
    assert page.locator("#picture canvas").count() == 3
    still = report.html.page(model.Report("demo", sections=[model.Section("Text", [model.Text(["x"])])]))
    assert "LWPicture" not in still


@pytest.mark.parametrize(("name", "how"), [("hgx-h100", {"nodes": 8}), ("hgx-h100", {"nodes": 64})])
def test_a_frame_is_drawn_in_time(opened, name, how):
    """Half of the frames of 60 Hz, though other programs run; the page of 64 ranks is small."""
    scene = subjects.of_schedule(lw.machine(name, **how), "broadcast/binomial", ASKED)
    html = picture.page(scene)
    assert len(html) < 3 << 20
    page = opened(html)
    took = page.evaluate(
        """() => { const deck = LWPicture.decks[0], took = []; deck.average = false;
             for (let k = 0; k < 40; k++) { deck.now = deck.whole * k / 40; const from = performance.now(); deck.draw();
               took.push(performance.now() - from); }
             return took.sort((a, b) => a - b)[20]; }"""
    )
    assert took < 16
