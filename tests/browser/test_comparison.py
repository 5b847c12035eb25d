"""The page of a comparison as a person meets it: opened from disk, and looked at."""

from pathlib import Path

import pytest
from selenium import webdriver

import conchart
from conchart.labels.stalls import COLOURS
from conchart.outputs.page.comparison import render_comparison
from conchart.questions.compare import compare
from tests.browser.conftest import Opened
from tests.browser.test_page import wait_for
from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

CAPTURES = ROOT / "captures/reverse-proxy"
RANGES = "return ['before', 'after'].map(n => document.getElementById(`plot-${n}`)._fullLayout.xaxis.range.map(Number))"
LABELS = (
    "return ['before', 'after'].map(n => "
    "[...document.querySelectorAll(`#plot-${n} .ytick text`)].map(t => t.textContent))"
)
BARS = "return [...document.querySelectorAll('.hop .bar')].map(bar => bar.getBoundingClientRect().width)"


@pytest.fixture
def page(chromium: webdriver.Chrome, tmp_path: Path) -> Opened:
    path = tmp_path / "page.html"
    with (
        conchart.read(CAPTURES / "https-no-keepalive/input.pcap") as before,
        conchart.read(CAPTURES / "https-keepalive/input.pcap") as after,
    ):
        path.write_text(render_comparison(compare(before, after)), encoding="utf-8")
    return Opened(chromium, path)


def test_page_shows_both_captures_on_one_scale_and_asks_for_nothing(page: Opened) -> None:
    assert page.console() == []
    (only,) = page.requests()
    assert only.startswith("file:")
    before, after = page.run(RANGES)
    assert before == after
    assert before[0] == 0
    labels = page.run(LABELS)
    assert [[label.split()[0] for label in side] for side in labels] == [
        ["#0", "#2", "#4", "#1", "#3", "#5"],
        ["#0", "#1", "#2", "#3"],
    ]
    fills = page.run("return ['before', 'after'].map(n => document.querySelectorAll(`#plot-${n} path.js-fill`).length)")
    assert min(fills) > 3
    drawn = page.run(
        "return ['before', 'after'].map(n => document.getElementById(`plot-${n}`).data.map(t => [t.name, t.fillcolor]))"
    )
    assert all(["held", COLOURS["held"]] in side for side in drawn), "between messages nobody idled"
    assert ["stalled", COLOURS["limited"]] in drawn[0]
    assert page.run("return document.querySelector('.legend').innerText").split("\n")[-2:] == ["held", "limited"]
    widths = page.run(BARS)
    assert widths[1] / widths[0] == pytest.approx(112 / 304, rel=0.01)


def test_narrow_page_is_not_wider_than_its_window(page: Opened) -> None:
    page.driver.set_window_size(500, 900)
    try:
        drawn = (
            "return [...document.querySelectorAll('.sides .main-svg')].map(plot => plot.getBoundingClientRect().right)"
        )
        wait_for(page, lambda: max(page.run(drawn)) <= 500)
        assert page.run("return document.documentElement.scrollWidth") <= 500
        assert page.console() == []
    finally:
        page.driver.set_window_size(1200, 1000)
