"""The panel of findings as a person meets it."""

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

import conchart
from conchart.outputs.limits import PAGE
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened
from tests.browser.test_page import LABELS, RANGE, ROWS, wait_for
from tests.charts.test_page import HOSTILE
from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

RULES = ROOT / "tests/findings/rules"
CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
HEADINGS = "return [...document.querySelectorAll('#findings > ol > li summary')].map(line => line.innerText)"


def opened(chromium: webdriver.Chrome, folder: Path, change: str = "") -> Opened:
    path = folder / "page.html"
    with conchart.read(CAPTURE, findings=[RULES]) as trace:
        if change:
            trace.execute(change)
        write_html(trace, path)
    return Opened(chromium, path)


def button(page: Opened, number: int) -> WebElement:
    return page.driver.find_element(By.CSS_SELECTOR, f"#findings button[data-finding='{number}']")


def test_a_class_that_predicts_first_opens_the_answer_itself(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    """``?findings=closed``: verdict and findings are folded, and work once they are open."""
    page = opened(chromium, tmp_path)
    visible = "return [...document.querySelectorAll('#verdict, #findings')].map(one => one.checkVisibility())"
    assert page.run(visible) == [True, True]
    page.visit(page.run("return location.href") + "?findings=closed")
    assert page.run(visible) == [False, False]
    text = page.run("return document.body.innerText")
    assert "Opening a connection takes time" not in text
    assert "The answer" in text
    answer, findings = page.driver.find_elements(By.CSS_SELECTOR, "details.covered > summary")
    answer.click()
    assert page.run(visible) == [True, False]
    findings.click()
    assert page.run(visible) == [True, True]
    assert "Opening a connection takes time" in page.run("return document.body.innerText")
    button(page, 0).click()
    wait_for(page, lambda: "finding=0" in page.run("return location.hash"))
    assert page.console() == []


def test_findings_stand_after_the_lanes_worst_first(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page = opened(chromium, tmp_path)
    order = page.run("return [...document.querySelectorAll('body > section')].map(section => section.id)")
    assert order == ["verdict", "connections", "attribution", "findings", "more"]
    first, *others = (" ".join(line.split()) for line in page.run(HEADINGS))
    assert first.startswith("serious Opening a connection takes time front shop.example (10.77.1.1:443), client")
    assert first.endswith("236 ms 77 %")
    grades = [line.split()[0] for line in others]
    assert grades == sorted(grades, key=["serious", "warning", "note"].index)
    folded = page.run("return [...document.querySelectorAll('#findings > ol > li details')].map(entry => entry.open)")
    assert folded == [True, *(grade != "note" for grade in grades)]
    text = page.driver.find_element(By.CSS_SELECTOR, "#findings li").text
    for words in (
        "costs 236 ms of 304 ms that users waited (3 delays on 3 connections; median 80.4 ms)",
        "3 connections opened",
        "the client 10.77.1.10",
        "Somebody waits for it.",
        "keep connections\nnginx: keepalive_timeout 75s;",
        "TLS handshakes take time (front shop.example (10.77.1.1:443)): 3 handshakes of 69.7 ms "
        "3 delays on 3 connections, 205 ms",
        "frames 1, 3, 5",
        "conchart findings slow-opening explains it.",
    ):
        assert words in text
    assert page.console() == []


def test_a_button_shows_the_lanes_of_a_finding_and_takes_it_back(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page = opened(chromium, tmp_path)
    whole = page.run(RANGE)
    page.driver.find_element(By.ID, "filter-text").send_keys("10.77.2")
    assert page.run(ROWS) == [1, 3, 5]
    button(page, 0).click()
    wait_for(page, lambda: page.run(ROWS) == [0, 2, 4])
    wait_for(page, lambda: sorted(label.split()[0] for label in page.run(LABELS)) == ["#0", "#2", "#4"])
    assert page.driver.find_element(By.ID, "filter-text").get_attribute("value") == ""
    assert page.driver.find_element(By.ID, "filter-count").text == "3 of 6 connections"
    assert button(page, 0).get_attribute("aria-pressed") == "true"
    shown = page.driver.find_element(By.ID, "finding-shown")
    assert shown.text == "Opening a connection takes time ✕"
    assert page.run("return document.getElementById('lanes').getBoundingClientRect().top < window.innerHeight")
    shown.click()
    wait_for(page, lambda: page.run(ROWS) == [0, 1, 2, 3, 4, 5])
    wait_for(page, lambda: page.run(RANGE) == whole)
    assert not shown.is_displayed()
    assert button(page, 0).get_attribute("aria-pressed") == "false"
    assert page.console() == []


def test_a_finding_zooms_to_its_lanes(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page = opened(chromium, tmp_path, "UPDATE findings SET streams = [2] WHERE number = 0")
    whole = page.run(RANGE)
    assert button(page, 0).text == "Show its 1 connection"
    button(page, 0).click()
    wait_for(page, lambda: page.run(RANGE)[1] - page.run(RANGE)[0] < 0.5 * (whole[1] - whole[0]))
    left, right = page.run(RANGE)
    assert left < 103e6 < 217e6 < right, "all of connection 2"


def test_the_keyboard_reaches_everything(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page = opened(chromium, tmp_path)
    first, *_ = page.driver.find_elements(By.CSS_SELECTOR, "#findings summary")
    page.run("arguments[0].focus()", first)
    first.send_keys(Keys.ENTER)
    wait_for(page, lambda: not page.run("return document.querySelector('#findings details').open"))
    first.send_keys(Keys.ENTER)
    wait_for(page, lambda: page.run("return document.querySelector('#findings details').open"))
    first.send_keys(Keys.TAB)
    assert page.run("return document.activeElement.dataset.finding") == "0"
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for(page, lambda: page.run(ROWS) == [0, 2, 4])
    assert page.run("return document.activeElement.id") == "lanes"


def test_what_is_left_out_is_said(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    more = (
        "UPDATE findings SET streams = range(1040) WHERE number = 0;"
        f"INSERT INTO findings SELECT findings.* REPLACE (10 + i AS number, [77] AS streams) "
        f"FROM findings, range({PAGE.findings + 5}) r(i) WHERE number = 0;"
        "DELETE FROM findings WHERE number BETWEEN 2 AND 9"
    )
    page = opened(chromium, tmp_path, more)
    assert button(page, 0).text.replace("\u2009", "") == "Show its 1040 connections"
    panel = page.driver.find_element(By.ID, "findings").text
    assert "6 more are not listed: those above cost more." in panel
    assert len(page.run(HEADINGS)) == PAGE.findings
    button(page, 0).click()
    wait_for(page, lambda: page.driver.find_element(By.ID, "filter-count").text == "6 connections")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_shown_as_text(chromium: webdriver.Chrome, tmp_path: Path, text: str) -> None:
    columns = ", ".join(f"{name} = $text" for name in ("server", "who", "evidence", "advice", "title"))
    path = tmp_path / "page.html"
    with conchart.read(CAPTURE, findings=[RULES]) as trace:
        trace.execute(f"UPDATE findings SET {columns}", {"text": text.replace("\n", " ")})
        write_html(trace, path)
    page = Opened(chromium, path)
    button(page, 0).click()
    assert page.run("return document.querySelectorAll('img, iframe, object, [onerror], [onmouseover]').length") == 0
    assert page.run("return window.hacked === undefined")
    assert page.console() == []


@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_sticks_out_sideways(chromium: webdriver.Chrome, tmp_path: Path, width: int) -> None:
    long = "UPDATE findings SET evidence = repeat('x', 250), advice = repeat('y', 250), server = repeat('z', 250)"
    page = opened(chromium, tmp_path, long)
    try:
        page.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False},
        )
        wait_for(page, lambda: page.run("return window.innerWidth") == width)
        assert page.run(
            "const page = document.documentElement.clientWidth;"
            "return [...document.querySelectorAll('#findings *')].every(e => e.getBoundingClientRect().right <= page)"
        )
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
