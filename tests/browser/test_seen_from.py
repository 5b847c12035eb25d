"""The switch between client, capture point and server: lanes, tables and ranges tell what `--seen-from` tells."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

import conchart
from conchart import Trace
from conchart.outputs.page.page import write_html
from conchart.reading.options import SeenFrom
from tests.browser.conftest import Opened
from tests.browser.test_page import RANGE, wait_for
from tests.browser.test_statistics import UNFOLD, measure, phases_shown
from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

CAPTURE = ROOT / "captures/round-trips/tls12-middle/input.pcap"
HASH = "return decodeURIComponent(location.hash)"
LANES = "return JSON.stringify(document.getElementById('plot').data.map((trace) => trace.x))"


def read(viewpoint: SeenFrom) -> Trace:
    return conchart.read(CAPTURE, seen_from=viewpoint, packets=True)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seen") / "page.html"
    with read("capture") as trace:
        write_html(trace, path)
    return path


@pytest.fixture
def page(chromium: webdriver.Chrome, path: Path) -> Iterator[Opened]:
    chromium.get("about:blank")  # the same address with another hash is the same page
    page = Opened(chromium, path)
    page.run(UNFOLD)
    yield page
    assert page.console() == []


def see_from(page: Opened, viewpoint: str) -> None:
    Select(page.driver.find_element(By.ID, "seen-from")).select_by_value(viewpoint)


def shown(page: Opened) -> str:
    value: str = page.run("return document.getElementById('seen-from').value")
    return value


def phases_of(viewpoint: SeenFrom) -> dict[str, int]:
    """The time of each phase while the capture lasted: what a page lets one measure first."""
    with read("capture") as captured, read(viewpoint) as trace:
        ((over_at,),) = captured.sql("SELECT max(closed_at) FROM connections").fetchall()
        found = trace.sql(
            """
            SELECT kind, sum(least(end_at, over_at) - greatest(start_at, first_at))::BIGINT
            FROM phases, (SELECT first_at FROM captures), (SELECT $over_at AS over_at)
            WHERE start_at < over_at AND end_at > first_at GROUP BY kind
            """,
            {"over_at": over_at},
        ).fetchall()
    return dict(found)


def test_a_range_and_the_lanes_follow_the_switch_and_come_back(page: Opened) -> None:
    whole, lanes = page.run(RANGE), page.run(LANES)
    note = page.driver.find_element(By.ID, "seen-note")
    assert not note.is_displayed()
    measure(page, "0", "10 s")
    assert phases_shown(page, 0) == phases_of("capture")
    see_from(page, "server")
    wait_for(page, lambda: phases_shown(page, 0) == phases_of("server"))
    assert note.is_displayed()
    wait_for(page, lambda: bool(page.run(LANES) != lanes))
    see_from(page, "capture")
    wait_for(page, lambda: phases_shown(page, 0) == phases_of("capture"))
    wait_for(page, lambda: page.run(RANGE) == whole)


def test_tables_and_details_tell_the_times_of_the_client(page: Opened) -> None:
    see_from(page, "client")
    with read("client") as trace:
        expected = trace.sql("SELECT closed_at - opened_at, waited_ns FROM connections ORDER BY stream").fetchall()
    rows = "[...document.querySelectorAll('#table tbody tr')]"
    script = f"return {rows}.map((row) => [...row.cells].map((cell) => cell.textContent))"
    wait_for(page, lambda: bool(page.run(script)))
    for cells, times in zip(page.run(script), expected, strict=True):
        for ns in times:
            assert any(abs(float(cell) - ns / 1e6) < 0.006 for cell in cells if cell.replace(".", "", 1).isdigit()), ns
    page.driver.find_element(By.CSS_SELECTOR, "#table tbody tr").click()
    wait_for(page, lambda: page.driver.find_element(By.ID, "detail").is_displayed())
    assert "told as captured" in page.driver.find_element(By.ID, "detail").text


def test_a_key_goes_round_and_a_link_says_it(page: Opened) -> None:
    page.driver.find_element(By.ID, "lanes").send_keys("v")
    assert shown(page) == "server"
    wait_for(page, lambda: "seen=server" in page.run(HASH))
    page.driver.find_element(By.ID, "lanes").send_keys("v")
    assert shown(page) == "client"
    page.driver.find_element(By.ID, "lanes").send_keys("v")
    assert shown(page) == "capture"
    wait_for(page, lambda: "seen=" not in page.run(HASH))
    page.run("location.hash = '#seen=client'")
    wait_for(page, lambda: shown(page) == "client")


def test_who_opens_a_link_sees_it_from_there(chromium: webdriver.Chrome, path: Path) -> None:
    chromium.get("about:blank")
    page = Opened(chromium, path)
    page.visit(f"{path.as_uri()}#seen=server")
    page.driver.refresh()
    wait_for(page, lambda: page.run("return document.documentElement.dataset.ready === 'true'"))
    assert shown(page) == "server"
    measure(page, "0", "10 s")
    durations = phases_shown(page, 0)
    assert durations["wait"] == phases_of("server")["wait"]
    assert page.console() == []


def test_a_page_made_as_an_end_saw_it_says_so_and_has_no_switch(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    made = tmp_path / "client.html"
    with read("client") as trace:
        write_html(trace, made)
    page = Opened(chromium, made)
    page.visit(f"{made.as_uri()}#seen=server")
    assert not page.driver.find_elements(By.ID, "seen-from")
    assert page.driver.find_element(By.ID, "seen").text == "Seen from the client"
    page.driver.find_element(By.ID, "lanes").send_keys("v")
    assert "Times as the client of each connection saw them" in page.driver.page_source
    assert page.console() == []
