"""Zooming and panning: what Plotly drew is moved, and Plotly draws once, when the movement rests."""

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium import webdriver

from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened
from tests.browser.test_page import RANGE, wait_for
from tests.charts.story import MS, reverse_proxy
from tests.conftest import TellTrace

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

# Steps, a frame for each, while the clock stands still and nothing rests until ``rest()``: how fast the machine is, is
# no matter. Gives how often Plotly drew the lanes, and which nodes came or went.
MOVE = """
    const [keys, done] = arguments;
    const [lanes, plot] = ["lanes", "plot"].map((id) => document.getElementById(id));
    const [later, { react }, counted] = [window.setTimeout, Plotly, { drawings: 0, nodes: 0 }];
    const now = performance.now();
    performance.now = () => now;
    window.setTimeout = (action, ms, ...more) => {
      if (ms !== 100) return later(action, ms, ...more);
      window.rest = action;
      return 0;
    };
    Plotly.react = (element, ...told) => {
      if (element === plot) counted.drawings += 1;
      return react(element, ...told);
    };
    const observer = new MutationObserver((changes) => {
      for (const { addedNodes, removedNodes } of changes) counted.nodes += addedNodes.length + removedNodes.length;
    });
    observer.observe(plot, { childList: true, subtree: true });
    const step = ([key, ...more]) => {
      if (!key) {
        window.setTimeout = later;
        Plotly.react = react;
        delete performance.now;
        observer.disconnect();
        done(counted);
        return;
      }
      lanes.dispatchEvent(new KeyboardEvent("keydown", { key }));
      requestAnimationFrame(() => requestAnimationFrame(() => step(more)));
    };
    step(keys);
"""
# Pixels from the plot's left: the middles of the axis's numbers and of what is measured, where bars of each colour end.
PLACES = """
    const plot = document.getElementById("plot");
    const { left } = plot.getBoundingClientRect();
    const places = (selector) => [...document.querySelectorAll(`#plot ${selector}`)]
      .filter((node) => getComputedStyle(node).visibility !== "hidden")
      .map((node) => [node.textContent, node.getBoundingClientRect()])
      .map(([text, box]) => [text, (box.left + box.right) / 2 - left]);
    const styled = ["translate", "scale"].map((name) => `#plot [style*="${name}"]`).join();
    return {
      ticks: places(".xtick text"),
      measured: places(".layer-above .shapelayer path"),
      bars: [...plot.querySelectorAll(".js-fill")].map((node) => node.getBoundingClientRect().right - left),
      inner: [plot._fullLayout._size.l, plot._fullLayout._size.w],
      styles: document.querySelectorAll(styled).length,
    };
"""
REST = "window.rest()"

Open = Callable[[], Opened]


@pytest.fixture
def page(chromium: webdriver.Chrome, trace_of: TellTrace, tmp_path: Path) -> Opened:
    path = tmp_path / "page.html"
    write_html(trace_of(reverse_proxy()), path, DrawOptions(packets=True))
    opened = Opened(chromium, path)
    opened.run(
        "document.getElementById('range-from').value = '100 ms';"
        "document.getElementById('range-to').value = '140 ms';"
        "document.getElementById('range-form').requestSubmit()"
    )
    wait_for(opened, lambda: bool(opened.run(PLACES)["measured"]))
    return opened


def move(page: Opened, *keys: str) -> dict[str, int]:
    page.driver.set_script_timeout(60)
    counted: dict[str, int] = page.driver.execute_async_script(MOVE, list(keys))
    return counted


def test_steps_of_a_movement_make_no_element_and_plotly_draws_when_it_rests(page: Opened) -> None:
    whole = page.run(RANGE)
    assert move(page, "+", "ArrowRight", "ArrowRight", "-", "+", "ArrowLeft") == {"drawings": 0, "nodes": 0}
    assert page.run(RANGE) == whole, "Plotly knows nothing of it yet"
    page.run(REST)
    wait_for(page, lambda: page.run(RANGE)[0] > whole[0])
    assert page.run(PLACES)["styles"] == 0, "everything is where Plotly put it"
    assert page.console() == []


@pytest.mark.parametrize("keys", [("+",), ("ArrowRight",), ("+", "ArrowLeft", "ArrowRight"), ("+", "+", "-")])
def test_what_is_moved_lies_where_it_is_drawn_then(page: Opened, keys: tuple[str, ...]) -> None:
    # Not from everything, from which nothing can be panned.
    move(page, "+", "ArrowLeft")
    page.run(REST)
    assert move(page, *keys)["drawings"] == 0
    moved = page.run(PLACES)
    page.run(REST)
    drawn = page.run(PLACES)
    (left, right), (begin, width) = page.run(RANGE), drawn["inner"]
    assert moved["ticks"]
    for text, place in (*moved["ticks"], *drawn["ticks"]):
        assert place == pytest.approx(begin + (float(text) * MS - left) / (right - left) * width, abs=2), text
    assert dict(moved["measured"]) == pytest.approx(dict(drawn["measured"]), abs=2)
    ends = [end for end in moved["bars"] if begin < end < begin + width]
    assert ends
    for end in ends:
        assert any(end == pytest.approx(one, abs=2) for one in drawn["bars"]), end


def test_who_drags_after_a_movement_drags_what_is_seen(page: Opened) -> None:
    whole = page.run(RANGE)
    move(page, "+", "ArrowRight")
    page.run("document.getElementById('lanes').dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))")
    left, right = page.run(RANGE)
    assert right - left == pytest.approx((whole[1] - whole[0]) / 2)
    assert page.run(PLACES)["styles"] == 0


def test_a_leap_is_drawn_at_once(page: Opened) -> None:
    move(page, "+")
    page.run(REST)
    assert move(page, "0")["drawings"] == 1
