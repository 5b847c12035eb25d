"""The ladder of a connection on the page; and every question of the worksheets, answered from the page alone."""

import base64
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

import conchart
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from conchart.questions.explain import connections, ladder
from tests.browser.conftest import Opened
from tests.browser.test_page import wait_for
from tests.browser.test_way import HASH, press
from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"
RUNGS = "return [...document.querySelectorAll('.ladder .rungs tr[data-frame]')].map(row => Number(row.dataset.frame))"
ARROWS = "return [...document.querySelectorAll('.ladder .to-scale g')].map(arrow => Number(arrow.dataset.frame))"


@pytest.fixture
def page(chromium: webdriver.Chrome, tmp_path: Path) -> Opened:
    path = tmp_path / "page.html"
    with conchart.read(CAPTURE) as trace:
        write_html(trace, path)
    return Opened(chromium, path)


def open_connection(page: Opened, stream: int) -> None:
    page.run(f"document.querySelector('tr[data-stream=\"{stream}\"]').click()")


def detail_text(page: Opened) -> str:
    text: str = page.run("return document.getElementById('detail').innerText")
    return " ".join(text.split())


def test_a_click_opens_the_ladder_that_the_terminal_prints(page: Opened) -> None:
    open_connection(page, 0)
    with conchart.read(CAPTURE) as trace:
        (connection,) = connections(trace, 0)
        expected = ladder(connection)
    assert page.run(RUNGS) == [rung.frame for rung in expected.rungs]
    text = detail_text(page)
    for rung in expected.rungs:
        assert " ".join(rung.label.split()) in text
        assert " ".join(rung.says.split()) in text
    for silence in expected.silences:
        assert " ".join(silence.says.split()) in text
    assert page.console() == []


def test_to_scale_arrows_slope_by_the_way_to_each_end(page: Opened) -> None:
    open_connection(page, 0)
    page.driver.find_element(By.CSS_SELECTOR, "[data-scale='true']").click()
    assert page.run("return document.activeElement.dataset.scale") == "true"
    with conchart.read(CAPTURE) as trace:
        (rtt,) = trace.sql("SELECT rtt_client_ns FROM connections WHERE stream = 0").fetchall()[0:1]
        frames = [
            frame for (frame,) in trace.sql("SELECT frame FROM packets WHERE stream = 0 ORDER BY frame").fetchall()
        ]
        ((span,),) = trace.sql(
            "SELECT closed_at - opened_at + rtt_client_ns / 2 * 2 + rtt_server_ns FROM connections WHERE stream = 0"
        ).fetchall()
    assert page.run(ARROWS) == frames
    first = page.run(
        "const line = document.querySelector('.to-scale g line');"
        "return [...['x1', 'y1', 'x2', 'y2'].map(name => Number(line.getAttribute(name))),"
        "Number(document.querySelector('.to-scale .life').getAttribute('y2')) - 26]"
    )
    x1, y1, x2, y2, height = first
    assert x1 < x2
    # Captured at the server: all of the slope is the way to the client.
    assert (y2 - y1) / height == pytest.approx(rtt[0] / 2 / span, rel=0.02)
    wait_for(page, lambda: "ladder=scale" in page.run(HASH))
    assert "stream=0" in page.run(HASH)
    link = page.driver.current_url
    page.driver.get("about:blank")
    page.driver.get(link)
    wait_for(page, lambda: page.run(ARROWS) == frames)
    assert page.console() == []


def test_a_key_leads_to_the_ladder(page: Opened) -> None:
    open_connection(page, 2)
    page.run("window.scrollTo(0, 0); document.activeElement.blur()")
    press(page, "l")
    wait_for(page, lambda: abs(page.run("return document.querySelector('.ladder').getBoundingClientRect().top")) < 300)


def test_the_page_of_explain_opens_at_its_ladder_with_fields(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / "explained.html"
    with conchart.read(CAPTURE, explain=2) as trace:
        write_html(trace, path, DrawOptions(explained=2))
    page = Opened(chromium, path)
    wait_for(page, lambda: page.run("return document.querySelectorAll('.ladder .fields').length") == 2)
    assert "Connection #2" in detail_text(page)
    fields = page.run("return document.querySelector('.ladder .fields').textContent")
    assert "server_name" in fields
    assert "shop.example" in fields
    assert page.console() == []


def test_a_class_that_predicts_first_sees_packets_and_no_explanations(page: Opened) -> None:
    """By the switch and by the address; packets, frames and times stay."""
    with conchart.read(CAPTURE) as trace:
        (connection,) = connections(trace, 0)
        expected = ladder(connection)
    says = [*(rung.says for rung in expected.rungs), *(silence.says for silence in expected.silences)]
    says += [*(clock.meaning for clock in expected.clocks), *(text for _, text in expected.facts)]
    explanations = {" ".join(text.split()) for text in says if text}

    def shown() -> set[str]:
        text = " ".join(page.run("return document.querySelector('.ladder').textContent").split())
        return {words for words in explanations if words in text}

    def switch() -> None:
        page.driver.find_element(By.CSS_SELECTOR, "[data-explanations]").click()

    assert len(explanations) > 20
    open_connection(page, 0)
    assert shown() == explanations
    for scale, packets in (("false", RUNGS), ("true", ARROWS)):
        page.driver.find_element(By.CSS_SELECTOR, f"[data-scale='{scale}']").click()
        switch()
        assert page.run("return document.activeElement.matches('[data-explanations][aria-pressed=false]')")
        assert shown() == set()
        assert page.run(packets) == [rung.frame for rung in expected.rungs]
        switch()
        assert shown() > set()
    # Another connection is told in the same way.
    page.visit(page.run("return location.href.replace(/#.*/, '')") + "?explanations=closed")
    for stream in (1, 0):
        open_connection(page, stream)
        assert shown() == set()
    assert page.run(RUNGS) == [rung.frame for rung in expected.rungs]
    switch()
    assert shown() == explanations
    assert page.console() == []


@pytest.mark.parametrize("width", [400, 1200])
def test_it_fits_the_window(chromium: webdriver.Chrome, page: Opened, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        open_connection(page, 0)
        for scale in ("false", "true"):
            page.run(f"document.querySelector('[data-scale=\"{scale}\"]').click()")
            assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_on_paper_the_ladder_is_there(chromium: webdriver.Chrome, page: Opened) -> None:
    open_connection(page, 0)
    pdf = base64.b64decode(chromium.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    before = pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ")
    page.run("document.getElementById('detail').hidden = true")
    without = base64.b64decode(chromium.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert len(pdf) > len(without) + 2_000, before


def test_a_capture_that_is_too_large_says_what_to_type(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with conchart.read(CAPTURE) as trace:
        trace.execute("DELETE FROM packets")
        write_html(trace, path)
    page = Opened(chromium, path)
    open_connection(page, 4)
    assert "conchart explain CAPTURE 4" in detail_text(page)


ANSWERS = [
    # Lesson 1, section 1: 12.2 ms from the SYN to the last byte; 10.3 of them the TCP handshake, 1.8 a wait.
    (
        "reverse-proxy/http",
        0,
        [
            "12.188 24",
            "TCP handshake 0 ns 10.318",
            "Wait for the server",
            "1.83 ms in which the server works",
            "caused #1",
        ],
    ),
    # Section 2: one connection with three requests; each picture waits for a round trip within it.
    (
        "reverse-proxy/http-page",
        0,
        ["request #2: GET /", "the sender waits a round trip until it may send more (slow start)"],
    ),
    # Section 3: who is silent? The server for 5.8 ms (packets 6 and 8), the client for a second (packets 14 to 16).
    (
        "reverse-proxy/https-slow-client",
        0,
        [
            "30.992 6",
            "1.03 s in which the client computes",
            "client 1.04 s, server 5.85 ms",
            "1 081.383 14",
            "1 156.847 24",
        ],
    ),
    # Section 4: 4.3 ms of silence before the ClientHello (3 and 4); tickets (10 and 11) before the response.
    (
        "reverse-proxy/https",
        0,
        [
            "4.34 ms in which nobody owes anybody a byte, until the client",
            "10 (NewSessionTicket)",
            "11 (NewSessionTicket)",
        ],
    ),
    # Sections 5 and 6: a full handshake each; what wget holds back for 57 ms, packets 8 to 10.
    (
        "reverse-proxy/https-no-keepalive",
        2,
        ["full handshake", "in which both wait for each other: a small segment waits for a delayed acknowledgement"],
    ),
    (
        "reverse-proxy/https-no-keepalive",
        0,
        ["23.452 8 ChangeCipherSpec", "6 bytes", "70.147 9", "80.402 10 (Finished)", "56.9 ms in which both wait"],
    ),
    ("reverse-proxy/https-keepalive", 0, ["request #2", "54.0 ms in which both wait"]),
    # Round trips, question 1: both are right; the server computes 178 ms, seen from either end.
    (
        "round-trips/slow-server-client",
        0,
        ["218 ms in which the server computes", "server 178 ms", "40.3 ms to the server"],
    ),
    (
        "round-trips/slow-server-server",
        0,
        ["178 ms in which the server computes", "server 178 ms", "40.3 ms to the client"],
    ),
    # Question 2: the client computed 188 ms; 40 of the 228 are distance.
    (
        "round-trips/slow-client-server",
        0,
        ["client 188 ms", "228 ms in which the client computes", "40.3 ms of it is the way"],
    ),
    # Question 3: two round trips.
    ("round-trips/hello-retry-client", 0, ["TLS handshake 2", "HelloRetryRequest", "the client must begin again"]),
    # Why resuming looks slower: nobody computes, nothing is lost; who speaks last?
    (
        "stalls/resumed-held-client",
        0,
        ["ChangeCipherSpec, (Finished)", "in which both wait for each other", "a delayed acknowledgement (Nagle)"],
    ),
    ("stalls/full-held-client", 0, ["Now both may send application data", "request"]),
    ("stalls/nagle-tls13-client", 0, ["(NewSessionTicket)", "in which both wait for each other"]),
]
"""Capture, connection, and what a student finds in its details, in the words of the page."""


@pytest.mark.parametrize(("case", "stream", "found"), ANSWERS, ids=[f"{case}-{stream}" for case, stream, _ in ANSWERS])
def test_the_questions_of_the_worksheets_are_answered_by_the_page(
    chromium: webdriver.Chrome, tmp_path: Path, case: str, stream: int, found: list[str]
) -> None:
    path = tmp_path / "page.html"
    with conchart.read(ROOT / "captures" / case / "input.pcap") as trace:
        write_html(trace, path)
    page = Opened(chromium, path)
    open_connection(page, stream)
    text = detail_text(page)
    assert [words for words in found if " ".join(words.split()) not in text] == []


def test_question_four_is_in_the_fields(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    """Round trips, question 4: who declined tickets? The client: its ClientHello has no session_ticket (35)."""
    path = tmp_path / "page.html"
    with conchart.read(ROOT / "captures/round-trips/tls12-client/input.pcap", explain=0) as trace:
        write_html(trace, path, DrawOptions(explained=0))
    page = Opened(chromium, path)
    wait_for(page, lambda: page.run("return document.querySelectorAll('.ladder .fields').length") > 0)
    fields = page.run("return document.querySelector('.ladder .fields').textContent")
    assert "extensions" in fields
    assert "session_ticket" not in fields
