"""Finding one's way through the page: search, tables, keys, links."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import conchart
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened
from tests.browser.test_page import RANGE, ROWS, wait_for
from tests.charts.story import many
from tests.conftest import ROOT, TellTrace

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
FOCUS = "return document.activeElement.id || document.activeElement.tagName"
HASH = "return decodeURIComponent(location.hash)"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("way") / "page.html"
    with conchart.read(CAPTURE) as trace:
        write_html(trace, path)
    return path


@pytest.fixture
def page(chromium: webdriver.Chrome, path: Path) -> Opened:
    chromium.get("about:blank")  # the same address with another hash is the same page
    return Opened(chromium, path)


def type_search(page: Opened, text: str) -> None:
    box = page.driver.find_element(By.ID, "filter-text")
    box.clear()
    box.send_keys(text)


def press(page: Opened, *keys: str) -> None:
    """Press keys where the focus is."""
    page.driver.switch_to.active_element.send_keys(*keys)


def open_tab(page: Opened, name: str) -> None:
    page.driver.find_element(By.ID, f"tab-{name}").click()


def text_of(page: Opened, what: str) -> str:
    text: str = page.run("return document.getElementById(arguments[0]).textContent", what)
    return text


def test_search_keeps_what_it_finds_in_lanes_and_every_table(page: Opened) -> None:
    type_search(page, "host:10.77.2.20 path:/logo.png")
    assert len(page.run(ROWS)) == 1
    assert text_of(page, "tab-requests") == "Requests 1 of 6"
    assert text_of(page, "tab-handshakes") == "Handshakes 0 of 3"
    assert text_of(page, "filter-count") == "1 of 6 connections"
    type_search(page, "phase:tls > 20ms")
    assert page.run(ROWS) == [0, 2, 4]
    type_search(page, "-shop")
    assert page.run(ROWS) == [1, 3, 5]
    assert page.console() == []


def test_what_is_wrong_with_a_search_is_said_and_the_rest_holds(page: Opened) -> None:
    type_search(page, "shop duration > 5")
    assert text_of(page, "search-told") == "“duration” needs a unit: 5ms. Understood: shop"
    assert page.run(ROWS) == [0, 2, 4]
    type_search(page, "no such words")
    assert text_of(page, "table-note") == "No row has all that is looked for."
    assert page.run(ROWS) == []


def test_tables_are_tabs_that_sort_by_each_column(page: Opened) -> None:
    titles = page.run("return [...document.querySelectorAll('#tabs [role=tab]')].map(tab => tab.textContent)")
    assert [title.split()[0] for title in titles] == ["Connections", "Requests", "Handshakes", "Findings"]
    open_tab(page, "requests")
    assert page.run("return document.getElementById('tab-requests').ariaSelected") == "true"
    cells = "return [...document.querySelectorAll('#table tbody tr')].map(row => row.cells[arguments[0]].innerText)"
    buttons = page.run("return document.querySelectorAll('#table thead button').length")
    for column in range(buttons):
        page.run("document.querySelectorAll('#table thead button')[arguments[0]].click()", column)
        sorted_by = page.run("return [...document.querySelectorAll('#table th')].map(cell => cell.ariaSort)")
        assert [i for i, way in enumerate(sorted_by) if way != "none"] == [column]
        assert len(page.run(cells, 0)) == 6
    assert page.console() == []


def test_tabs_follow_the_arrow_keys(page: Opened) -> None:
    page.driver.find_element(By.ID, "tab-connections").click()
    press(page, Keys.ARROW_LEFT)
    assert page.run(FOCUS) == "tab-findings"
    press(page, Keys.HOME)
    press(page, Keys.ARROW_RIGHT)
    assert page.run(FOCUS) == "tab-requests"
    assert page.run("return document.getElementById('table-panel').getAttribute('aria-labelledby')") == "tab-requests"
    assert page.run("return [...document.querySelectorAll('[role=tab]')].map(tab => tab.tabIndex)") == [-1, 0, -1, -1]


def test_a_row_of_a_finding_shows_its_connections(page: Opened) -> None:
    open_tab(page, "findings")
    row = page.driver.find_element(By.CSS_SELECTOR, "#table tbody tr")
    number = row.get_attribute("data-finding-row")
    row.click()
    wait_for(page, lambda: page.driver.find_element(By.ID, "finding-shown").is_displayed())
    pressed = page.run("return document.querySelector('[data-finding][aria-pressed=true]').dataset.finding")
    assert pressed == number


def test_rows_follow_the_keys_and_enter_chooses(page: Opened) -> None:
    page.run("document.body.focus()")
    press(page, "t")
    assert page.run("return document.activeElement.dataset.stream") == "0"
    press(page, Keys.ARROW_DOWN)
    press(page, Keys.ARROW_DOWN)
    assert page.run("return document.activeElement.dataset.stream") == "2"
    press(page, Keys.END)
    assert page.run("return document.activeElement.dataset.stream") == "5"
    press(page, Keys.ENTER)
    wait_for(page, lambda: page.run(RANGE)[0] > 300e6)
    assert "Connection #5" in page.driver.find_element(By.ID, "detail").text


def test_keys_reach_search_help_and_findings(page: Opened) -> None:
    press(page, "/")
    assert page.run(FOCUS) == "filter-text"
    assert "a phrase" in text_of(page, "search-told")
    press(page, "n?/")
    assert page.run("return document.getElementById('filter-text').value") == "n?/"
    press(page, Keys.ESCAPE)
    assert page.run("return document.getElementById('filter-text').value") == ""
    page.run("document.activeElement.blur()")
    press(page, "?")
    assert page.run("return document.getElementById('help').open")
    assert "phase:tls > 20ms" in page.driver.find_element(By.ID, "help").text
    press(page, Keys.ESCAPE)
    assert not page.run("return document.getElementById('help').open")
    shown = (
        "return [...document.querySelectorAll('#findings [data-finding]')].findIndex(one => one.ariaPressed === 'true')"
    )
    last = page.run("return document.querySelectorAll('#findings [data-finding]').length") - 1
    for key, place in (("n", 0), ("n", 1), ("p", 0), ("p", last)):
        press(page, key)
        assert page.run(shown) == place
    assert page.console() == []


def test_escape_closes_the_details_and_then_clears_the_finding(page: Opened) -> None:
    press(page, "n")
    lanes = page.driver.find_element(By.ID, "lanes")
    lanes.send_keys(Keys.ARROW_DOWN)
    detail = page.driver.find_element(By.ID, "detail")
    wait_for(page, detail.is_displayed)
    lanes.send_keys(Keys.ESCAPE)
    assert not detail.is_displayed()
    assert page.run("return document.querySelector('tr.chosen')") is None
    assert page.driver.find_element(By.ID, "finding-shown").is_displayed()
    lanes.send_keys(Keys.ESCAPE)
    assert not page.driver.find_element(By.ID, "finding-shown").is_displayed()
    assert page.run(ROWS) == [0, 1, 2, 3, 4, 5]


VIEW = """
    const value = id => document.getElementById(id).value;
    return [value("filter-text"), value("filter-server"), value("filter-app"), value("lane-height"),
        document.querySelector("[role=tab][aria-selected=true]").id,
        [...document.querySelectorAll("#table th")].map(cell => cell.ariaSort),
        [...document.querySelectorAll("#table tbody tr")].map(row => row.dataset.stream),
        document.querySelector("#detail h3")?.textContent, document.getElementById("detail").hidden,
        document.getElementById("plot").layout.annotations.map(heading => heading.text),
        document.getElementById("plot").layout.xaxis.range.map(Number).map(Math.round)]
"""


def test_a_link_shows_the_same_view(page: Opened, path: Path) -> None:
    entries = page.run("return history.length")
    type_search(page, "shop wait > 0ms")
    page.run(
        "const s = document.getElementById('filter-server'); s.value = '10.77.1.1:443';"
        "s.dispatchEvent(new Event('change'))"
    )
    page.run("const s = document.getElementById('lane-height'); s.value = '16'; s.dispatchEvent(new Event('change'))")
    open_tab(page, "requests")
    for _ in range(2):
        page.driver.find_element(By.XPATH, "//table[@id='table']//button[starts-with(., 'Took')]").click()
    page.driver.find_element(By.CSS_SELECTOR, "tr[data-stream='2']").click()
    lanes = page.driver.find_element(By.ID, "lanes")
    lanes.send_keys("+")
    wait_for(page, lambda: "x=" in page.run(HASH) and "stream=2" in page.run(HASH) and "sort=took" in page.run(HASH))
    wait_for(
        page, lambda: page.run(HASH).split("x=")[1].split("&")[0].split("_") == [str(x) for x in page.run(VIEW)[-1]]
    )
    assert page.run("return history.length") == entries, "no entry for each view"
    view, link = page.run(VIEW), page.run("return location.href")
    page.driver.get("about:blank")
    page.visit(link)
    wait_for(page, lambda: page.run(VIEW) == view)
    assert page.console() == []
    # Another link to the page that is open.
    page.run("location.hash = '#q=-shop&tab=handshakes'")
    wait_for(page, lambda: page.run("return document.getElementById('filter-text').value") == "-shop")
    assert page.run(VIEW)[4] == "tab-handshakes"
    assert page.run(VIEW)[8] is True


def test_a_link_tells_the_finding_and_what_is_folded(page: Opened) -> None:
    press(page, "n")
    page.run("document.getElementById('plot').scrollIntoView({block: 'center'})")
    place = page.run(
        "const box = document.getElementById('plot').getBoundingClientRect();"
        "const { _size: size } = document.getElementById('plot')._fullLayout;"
        "return [box.left + size.l + 10, box.top + size.t + 12]"
    )
    page.point_at(*map(int, place))
    webdriver.ActionChains(page.driver).click().perform()
    wait_for(page, lambda: "folded=s0" in page.run(HASH) and "finding=" in page.run(HASH))
    view, link = page.run(VIEW), page.run("return location.href")
    page.driver.get("about:blank")
    page.visit(link)
    wait_for(page, lambda: page.run(VIEW) == view)
    assert page.driver.find_element(By.ID, "finding-shown").is_displayed()


@pytest.mark.parametrize(
    "part",
    [
        "x=5_1&finding=77&stream=99&tab=cellar&sort=x&server=nobody&app=none&open=s77&folded=__proto__&height=9",
        "q=%E0%A4%A&x=9e99_-1&axis=1",
        "x=-9999999999999999_9999999999999999&sort=constructor&tab=constructor",
        "finding=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
    ],
)
def test_a_broken_link_opens_the_page_all_the_same(page: Opened, path: Path, part: str) -> None:
    before: Any = page.run(VIEW)
    page.driver.get("about:blank")
    page.visit(f"{path.as_uri()}#{part}")
    wait_for(page, lambda: page.run(ROWS) == [0, 1, 2, 3, 4, 5] or "q=" in part)
    wait_for(page, lambda: page.run(VIEW)[-1] == before[-1])
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert page.console() == []


def test_the_filter_of_a_connection_is_copied(page: Opened) -> None:
    page.run("window.copied = []; navigator.clipboard.writeText = async text => { window.copied.push(text) }")
    page.driver.find_element(By.CSS_SELECTOR, "tr[data-stream='3']").click()
    page.run("document.querySelector(\"tr[data-stream='1'] .copy\").click()")
    page.run("document.querySelector('#detail .copy').click()")
    press(page, "c")
    assert page.run("return window.copied") == ["tcp.stream eq 1", "tcp.stream eq 3", "tcp.stream eq 3"]
    assert "Connection #3" in page.driver.find_element(By.ID, "detail").text, "copying chooses nothing"


def test_only_rows_in_view_stand_in_the_page(chromium: webdriver.Chrome, trace_of: TellTrace, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_html(trace_of(many(4_000)), path)
    page = Opened(chromium, path)
    table = page.driver.find_element(By.ID, "table")
    assert table.get_attribute("aria-rowcount") == "4001"
    assert len(page.run(ROWS)) < 80

    def in_view() -> list[int]:
        rows: list[int] = page.run(
            "const box = document.getElementById('table-box').getBoundingClientRect();"
            "return [...document.querySelectorAll('#table tbody tr')].filter(row => {"
            "const { top, bottom } = row.getBoundingClientRect(); return bottom > box.top && top < box.bottom })"
            ".map(row => Number(row.dataset.stream))"
        )
        return rows

    scroll = "const box = document.getElementById('table-box'); box.scrollTop = arguments[0] * box.scrollHeight"
    reached: list[tuple[float, Callable[[list[int]], bool]]] = [
        (0.5, lambda rows: abs(rows[0] - 2_000) < 40),
        (1, lambda rows: rows[-1] == 3_999),
        (0, lambda rows: rows[0] == 0),
    ]
    for share, there in reached:
        page.run(scroll, share)
        # Scrolled far, the box is empty until the browser's next frame.
        wait_for(page, lambda there=there: bool(rows := in_view()) and there(rows))  # type: ignore[misc]
        assert len(page.run(ROWS)) < 80
    page.run("document.getElementById('table-box').scrollIntoView()")
    press(page, "t")
    press(page, Keys.END)
    wait_for(page, lambda: page.run("return document.activeElement.dataset.stream") == "3999")
    assert page.run("return document.activeElement.getAttribute('aria-rowindex')") == "4001"
    press(page, Keys.PAGE_UP)
    assert 3_900 < int(page.run("return document.activeElement.dataset.stream")) < 3_999
    type_search(page, "#1998")
    wait_for(page, lambda: page.run(ROWS) == [1998])
    assert page.console() == []
