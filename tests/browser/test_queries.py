"""The table of what stores were asked, in a browser."""

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from conchart import read
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened
from tests.charts.story import MS, Story
from tests.charts.test_page import BIDI, HOSTILE
from tests.conftest import ROOT, TellTrace

pytestmark = pytest.mark.timeout(180)

CELLS = """return [...document.querySelectorAll('#table tbody tr')]
    .map(row => [...row.cells].map(cell => cell.textContent.trim()))"""
TAB = "return document.getElementById('tab-queries').textContent"


@pytest.fixture
def page(chromium: webdriver.Chrome, tmp_path: Path) -> Opened:
    path = tmp_path / "page.html"
    with read(ROOT / "captures/findings/repeated-queries/input.pcap") as trace:
        write_html(trace, path)
    opened = Opened(chromium, path)
    opened.driver.find_element(By.ID, "tab-queries").click()
    return opened


def look_for(page: Opened, text: str) -> None:
    page.run(
        "const box = document.getElementById('filter-text'); box.value = arguments[0];"
        "box.dispatchEvent(new Event('input', { bubbles: true }))",
        text,
    )


def shows(page: Opened, tab: str) -> None:
    WebDriverWait(page.driver, 30, poll_frequency=0.05).until(lambda _: page.run(TAB) == tab)


def test_queries_are_grouped_by_shape(page: Opened) -> None:
    lines, sold = page.run(CELLS)
    statement = "SELECT name, price FROM line WHERE sold = ? ORDER BY place"
    times = ["72", "58.154", "0.532", "3.942", "5.350"]
    assert lines[1:] == [statement, "10.98.2.30:5432", "postgresql", *times, "147", "6", "12"]
    assert (sold[4], sold[-2:]) == ("6", ["6", "1"])
    assert page.console() == []


def test_a_click_selects_the_connection_of_the_longest_wait(page: Opened) -> None:
    page.driver.find_element(By.CSS_SELECTOR, "#table tbody tr").click()
    WebDriverWait(page.driver, 30).until(lambda _: "stream=1" in page.run("return location.hash"))
    assert page.run("return document.querySelector('#table tbody tr').classList.contains('chosen')")


def test_queries_are_sorted_and_searched_as_the_other_tables(page: Opened) -> None:
    page.run("[...document.querySelectorAll('#table th button')].find(b => b.textContent === 'p50').click()")
    assert [row[4] for row in page.run(CELLS)] == ["6", "72"]
    look_for(page, "path:buyer")
    shows(page, "Queries 1 of 2")
    assert [row[4] for row in page.run(CELLS)] == ["6"]
    look_for(page, "nothing-like-it")
    shows(page, "Queries 0 of 2")
    look_for(page, "")
    shows(page, "Queries 2")


def test_a_page_without_stores_has_no_such_table(
    chromium: webdriver.Chrome, trace_of: TellTrace, proxy_story: Story, tmp_path: Path
) -> None:
    write_html(trace_of(proxy_story), tmp_path / "page.html")
    page = Opened(chromium, tmp_path / "page.html")
    assert page.run("return document.getElementById('tab-queries')") is None


@pytest.mark.parametrize("text", [*HOSTILE, BIDI], ids=range(len(HOSTILE) + 1))
def test_hostile_statements_are_shown_as_text(
    chromium: webdriver.Chrome, trace_of: TellTrace, tmp_path: Path, text: str
) -> None:
    story = Story()
    phases = [("request", MS), ("wait", MS), ("transfer", MS)]
    facts = {"protocol": "mysql", "method": "Query", "target": text, "host": None, "status": 0}
    story.connect(("10.0.0.1", 50_000), ("10.0.0.2", 3306), 0, phases, exchange=facts)
    story.capture()
    write_html(trace_of(story), tmp_path / "page.html")
    page = Opened(chromium, tmp_path / "page.html")
    page.driver.find_element(By.ID, "tab-queries").click()
    shown = "".join("\ufffd" if c in "\u2028\u2029\u202e\u202c\u200b\x1b\x00" else c for c in text)
    assert shown in page.run("return document.querySelector('#table tbody').textContent")
    assert page.run("return document.querySelectorAll('img, iframe, object, [onerror], [onmouseover]').length") == 0
    assert page.console() == []
