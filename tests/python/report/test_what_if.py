"""Sliders over computed steps: what the points are, and that the page shows the one that is set."""

from __future__ import annotations

import pytest

from linkwright import machines
from linkwright.advise import predict
from linkwright.advise.predict.training import Choices, Wanted, training
from linkwright.show import report
from linkwright.show.report import forecast, model, what_if


def made(**wanted):
    found = predict.read(predict.find("resnet"))
    asked = Wanted(batches=[16, 64], gpus=[1, 8], samples=1_000_000, **wanted)
    return training(found.document, found.head, [machines.load("dgx1-p100")], asked)


def point(sliders, *at):
    place = 0
    for slider, stop in zip(sliders.sliders, at, strict=True):
        place = place * len(slider.stops) + stop
    return sliders.points[place]


def test_the_first_setting_is_the_forecast():
    found = made()
    (sliders,) = what_if.training(found)
    steps = found.steps["dgx1-p100"]
    for batch in (0, 1):
        for gpus in (0, 1):
            step = steps[2 * batch + gpus]
            told = point(sliders, batch, gpus, what_if.FASTER.index(1.0), 0)
            assert told.texts[1] == f"{step.samples_per_s:,.4g}"
            assert sum(told.shares) == pytest.approx(1)
            assert told.shares[0] == pytest.approx(step.share("compute"))


def test_one_gpu_that_computes_twice_as_fast_takes_half_the_time():
    # Without messages, and with input behind computing, a step is computing alone.
    found = made()
    trainer, step = found.trainers[0], found.steps["dgx1-p100"][0]
    assert trainer.what_if(step, 2.0, found.choices).time_ns == pytest.approx(step.time_ns / 2)


def test_faster_computing_leaves_the_messages_as_long():
    # Whole gradients come after the backward pass, so nothing hides them, however long it takes.
    found = made()
    trainer, step = found.trainers[0], found.steps["dgx1-p100"][1]
    faster = trainer.what_if(step, 4.0, found.choices)
    assert faster.time_ns - faster.causes_ns["compute"] == pytest.approx(step.time_ns - step.causes_ns["compute"])


@pytest.mark.parametrize(
    ("choices", "first", "ways"),
    [
        (Choices(), 0, 2),
        (Choices(bucket_bytes=1 << 20), 1, 2),
        (Choices(bucket_bytes=1 << 20, overlap=False), 2, 3),
    ],
)
def test_what_was_asked_for_is_the_first_setting(choices, first, ways):
    gradients = what_if.training(made(choices=choices))[0].sliders[-1]
    assert (gradients.first, len(gradients.stops)) == (first, ways)


def test_sliders_and_points_must_agree():
    with pytest.raises(ValueError, match="1 points, its sliders have 2"):
        model.WhatIf("x", [model.Slider("a", ["1", "2"])], ["n"], [None], [])


@pytest.mark.browser
def test_a_slider_moved_by_keyboard_shows_its_point(browser, tmp_path):
    found = made()
    path = report.render(forecast.training(found), tmp_path / "page.html")
    (sliders,) = what_if.training(found)
    page, errors = browser.new_page(), []
    page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]", timeout=30_000)
    told = page.locator(".whatif .told dd")
    assert told.all_text_contents() == list(point(sliders, 0, 1, 1, 0).texts)
    page.locator(".whatif input").nth(2).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert told.all_text_contents() == list(point(sliders, 0, 1, 3, 0).texts)
    assert page.locator(".whatif input").nth(2).get_attribute("aria-valuetext") == "4 × as fast"
    assert "Compute" in page.locator(".whatif .parts").get_attribute("aria-label")
    assert errors == []
    page.close()
