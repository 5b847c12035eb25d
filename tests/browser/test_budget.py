"""A page of very many connections: small enough to be sent, with nothing left out, and quick to move about in.

What a movement costs is counted: how often the lanes are drawn for it, points that Plotly is given, elements that it
makes of them. Times are printed (``pytest -s``): machines differ.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from conchart.analysis.quality import appraise
from conchart.analysis.servers import describe_servers
from conchart.analysis.waits import charge_servers, count_waits, explain_phases
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened
from tests.browser.test_page import RANGE, wait_for
from tests.charts.crowd import KINDS, crowd
from tests.conftest import empty_trace

pytestmark = pytest.mark.timeout(600)

CONNECTIONS = 180_000
BUDGET = 15_000_000
"""Bytes beside Plotly."""

COUNTS = """
    const done = arguments[arguments.length - 1];
    const text = atob(document.getElementById("data").textContent);
    const packed = new Blob([Uint8Array.from(text, (letter) => letter.charCodeAt(0))]);
    new Response(packed.stream().pipeThrough(new DecompressionStream("deflate-raw"))).json()
      .then(({ tables }) => done(Object.fromEntries(Object.entries(tables).map(([name, { rows }]) => [name, rows]))));
"""
# From a key to the frame after Plotly has drawn: milliseconds, drawings, points, elements that were made for it.
PRESS = """
    const [key, done] = arguments;
    const [lanes, plot] = ["lanes", "plot"].map((id) => document.getElementById(id));
    const { react } = Plotly;
    let [drawings, elements] = [0, 0];
    document.createElementNS = (...told) => {
      elements += 1;
      return Document.prototype.createElementNS.apply(document, told);
    };
    Plotly.react = (element, ...told) => {
      if (element === plot) drawings += 1;
      return react(element, ...told);
    };
    const began = performance.now();
    plot.once("plotly_afterplot", () => requestAnimationFrame(() => {
      Plotly.react = react;
      delete document.createElementNS;
      const points = plot.data.reduce((sum, { x }) => sum + x.length, 0);
      done([performance.now() - began, drawings, points, elements]);
    }));
    lanes.dispatchEvent(new KeyboardEvent("keydown", { key }));
"""
MOST_POINTS = 10_000
"""Two for a bar, of what a screen can show of a million phases."""
MOST_ELEMENTS = 600
"""For marks, labels and each colour: none for a bar."""


@contextmanager
def timed(what: str) -> Iterator[None]:
    began = perf_counter()
    yield
    print(f"{what}: {perf_counter() - began:.2f} s")  # noqa: T201


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a crowd, in which nobody has looked for links or findings."""
    path = tmp_path_factory.mktemp("budget") / "page.html"
    with empty_trace() as trace:
        with timed("tables"):
            crowd(trace, CONNECTIONS)
        with timed("analysis"):
            for work_out in (explain_phases, count_waits, charge_servers, describe_servers, appraise):
                work_out(trace)
        with timed("page"):
            write_html(trace, path, DrawOptions())
    return path


def test_a_page_of_180000_connections_keeps_to_its_budget(large: Path) -> None:
    text = large.read_text(encoding="utf-8")
    before, _, after = text.partition('id="plotly"')
    besides = len(text.encode()) - len(after.partition("</script>")[0].encode())
    print(f"page: {besides / 1e6:.1f} MB beside Plotly")  # noqa: T201
    assert before
    assert besides < BUDGET


def test_a_page_of_180000_connections_has_them_all_and_answers(large: Path, chromium: webdriver.Chrome) -> None:
    with timed("opened"):
        page = Opened(chromium, large)
        wait_for(page, lambda: page.run("return document.querySelectorAll('#table tbody tr').length > 0"))
    counts = page.driver.execute_async_script(COUNTS)
    assert counts["lanes"] == counts["exchanges"] == CONNECTIONS
    assert counts["phases"] == len(KINDS) * CONNECTIONS > 1_000_000
    assert [limit.text for limit in page.driver.find_elements(By.CSS_SELECTOR, ".limit") if limit.text] == []
    assert "180\u2009000 connections" in page.driver.find_element(By.ID, "filter-count").text
    whole = page.run(RANGE)
    lanes = page.driver.find_element(By.ID, "lanes")
    page.driver.set_script_timeout(60)
    for key in ("+", "+", "+", "ArrowRight", "ArrowRight", "ArrowLeft", "-", "0"):
        took, drawings, points, elements = page.driver.execute_async_script(PRESS, key)
        print(f"{key}: {took:.0f} ms, {points} points, {elements} elements")  # noqa: T201
        assert drawings == 1, key
        assert 0 < points <= MOST_POINTS, key
        assert elements <= MOST_ELEMENTS, key
    assert page.run(RANGE) == whole
    lanes.send_keys("+", Keys.ARROW_RIGHT)
    wait_for(page, lambda: page.run(RANGE)[0] > whole[0])
    assert page.console() == []
