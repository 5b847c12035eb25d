"""The page as a person meets it: opened from disk, looked at, zoomed, sorted, filtered."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import conchart
from conchart.labels.stalls import COLOURS
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened
from tests.charts.story import MS, Story, many, reverse_proxy
from tests.charts.test_page import BIDI, HOSTILE, hostile_story
from tests.conftest import ROOT, TellTrace

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

Open = Callable[..., Opened]

RANGE = "return document.getElementById('plot')._fullLayout.xaxis.range.map(Number)"
ROWS = "return [...document.querySelectorAll('#table tbody tr')].map(row => Number(row.dataset.stream))"
LABELS = "return [...document.querySelectorAll('#plot .ytick text')].map(label => label.textContent)"


@pytest.fixture
def open_page(chromium: webdriver.Chrome, trace_of: TellTrace, tmp_path: Path) -> Open:
    def open_story(story: Story, options: DrawOptions | None = None) -> Opened:
        path = tmp_path / "page.html"
        write_html(trace_of(story), path, options or DrawOptions(packets=True))
        return Opened(chromium, path)

    return open_story


def boxes(x: list[float], y: list[float]) -> list[tuple[float, float, float, float]]:
    """Give left, right, top and bottom of the boxes that an outline encloses (``chart.js``)."""
    found, at, aside = [], 0, x[0]
    while at < len(x):
        if x[at] == aside:  # to the next row
            at += 1
        else:
            found.append((x[at], x[at + 1], y[at + 1], y[at]))
            at += 2
    return found


def wait_for(page: Opened, condition: Callable[[], bool]) -> None:
    """Redrawing takes a frame or two."""
    WebDriverWait(page.driver, 30, poll_frequency=0.05).until(lambda _: condition())


def point_at_lane(page: Opened, stream: int, at: float) -> None:
    """Move the mouse to a lane, so many nanoseconds after the start."""
    page.run("document.getElementById('plot').scrollIntoView({block: 'center'})")
    place = page.run(
        "const plot = document.getElementById('plot'), l = plot._fullLayout, box = plot.getBoundingClientRect();"
        "const lane = [...plot.querySelectorAll('.ytick')].find(t => t.textContent.startsWith(`#${arguments[0]} `));"
        "const y = lane.getBoundingClientRect();"
        "return [box.left + l._size.l + l.xaxis.l2p(arguments[1]), (y.top + y.bottom) / 2]",
        stream,
        at,
    )
    page.point_at(*map(int, place))


def test_page_opens_from_disk_without_network_and_without_complaints(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    assert page.console() == []
    (only,) = page.requests()
    assert only.startswith("file:")
    assert only.endswith("/page.html")


def test_every_connection_has_a_lane_and_a_row(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    assert sorted(label.split()[0] for label in page.run(LABELS)) == [f"#{i}" for i in range(6)]
    assert page.run(ROWS) == [0, 1, 2, 3, 4, 5]
    headings = page.run("return [...document.querySelectorAll('#plot .annotation-text')].map(a => a.textContent)")
    assert [heading.partition(":")[0] for heading in headings] == ["▾ front", "▾ backend"]


def test_bars_have_the_phases_edges_and_colours(open_page: Open) -> None:
    story = reverse_proxy()
    page = open_page(story)
    traces = page.run("return document.getElementById('plot').data.map(t => [t.name, t.x, t.y, t.fillcolor])")
    (tls,) = [boxes(x, y) for name, x, y, colour in traces if name == "tls" and colour == "#D55E00"]
    start = story.connections[0]["opened_at"]
    expected = [(p["start_at"] - start, p["end_at"] - start) for p in story.phases if p["kind"] == "tls"]
    assert [(left, right) for left, right, _, _ in tls] == expected
    filled = page.run("return document.querySelectorAll('#plot path.js-fill').length")
    assert filled == len([1 for _, _, _, colour in traces if colour])


def test_dragging_zooms_and_double_click_shows_everything_again(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    whole = page.run(RANGE)
    plot = page.driver.find_element(By.ID, "plot")
    page.run("arguments[0].scrollIntoView({block: 'center'})", plot)
    drag = ActionChains(page.driver, duration=80).move_to_element_with_offset(plot, -100, 30)
    drag.click_and_hold().move_by_offset(120, 0).move_by_offset(80, 0).release().perform()
    wait_for(page, lambda: page.run(RANGE) != whole)
    left, right = page.run(RANGE)
    inner = page.run("const s = document.getElementById('plot')._fullLayout._size; return s.w")
    assert right - left == pytest.approx((whole[1] - whole[0]) * 200 / inner, rel=0.03)
    assert whole[0] < left < right < whole[1]
    ActionChains(page.driver, duration=0).move_to_element_with_offset(plot, 100, 30).double_click().perform()
    wait_for(page, lambda: page.run(RANGE) == whole)
    assert page.console() == []


def test_keys_zoom_pan_and_walk_through_the_lanes(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    whole = page.run(RANGE)
    lanes = page.driver.find_element(By.ID, "lanes")
    lanes.send_keys("+")
    wait_for(page, lambda: page.run(RANGE)[1] - page.run(RANGE)[0] < 0.6 * (whole[1] - whole[0]))
    before = page.run(RANGE)
    lanes.send_keys(Keys.ARROW_RIGHT)
    wait_for(page, lambda: page.run(RANGE)[0] > before[0])
    lanes.send_keys("0")
    wait_for(page, lambda: page.run(RANGE) == whole)
    lanes.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert page.driver.find_element(By.CSS_SELECTOR, "#detail h3").text == "Connection #1"
    lanes.send_keys(Keys.ENTER)
    wait_for(page, lambda: page.run(RANGE)[1] - page.run(RANGE)[0] < 130e6)


def test_row_zooms_to_its_lane_and_lane_marks_its_row(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    page.driver.find_element(By.CSS_SELECTOR, "tr[data-stream='4']").click()
    wait_for(page, lambda: page.run(RANGE)[0] > 200e6)
    assert page.run("return document.getElementById('plot').layout.shapes.length") == 3
    page.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)  # the details, which lie below the lanes
    page.run("document.getElementById('plot').scrollIntoView({block: 'center'})")

    def chosen_by_its_name() -> bool:
        with suppress(StaleElementReferenceException):  # the lanes are drawn again once the details are gone
            lane = page.driver.find_element(By.XPATH, "//*[@class='ytick'][.//*[starts-with(text(), '#1 ')]]")
            ActionChains(page.driver, duration=0).move_to_element(lane).click().perform()
        return bool(page.run("return document.querySelector('tr.chosen')?.dataset.stream") == "1")

    wait_for(page, chosen_by_its_name)
    assert "tcp.stream eq 1" in page.driver.find_element(By.ID, "detail").text


def test_hovering_tells_times_frames_and_tls_facts(open_page: Open) -> None:
    page = open_page(reverse_proxy(), DrawOptions())
    point_at_lane(page, 0, 40e6)
    tip = page.driver.find_element(By.ID, "tip")
    wait_for(page, tip.is_displayed)
    for part in (
        "TLS handshake 84.000117 ms",
        "312.000 µs to 84.312117 ms after the start",
        "Frames 3 to 5 of tcp.stream eq 0",
        "TLSv1.2, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "full handshake",
        "SNI www.example.com",
        "2 round trips",
        "192.168.7.20:51344 → 192.168.7.1:443",
    ):
        assert part in tip.text  # in which Selenium makes no-break spaces plain ones


JOINED = "return [...document.querySelectorAll('#joins .bar-end')].map(end => end.getBoundingClientRect().toJSON())"
BARS = "return document.getElementById('plot').data.map(t => [t.name || '', t.x, t.y])"


def test_a_front_s_wait_is_split_inside_its_bar(open_page: Open) -> None:
    story = reverse_proxy()
    page = open_page(story)
    pieces = sorted(
        (start, end, name.removeprefix("inside wait: "))
        for name, x, y in page.run(BARS)
        if name.startswith("inside wait: ")
        for start, end, _, _ in boxes(x, y)
        if start < 131 * MS
    )
    request_done_at = 312_000 + 84 * MS + 117 + 95_000
    request = 86 * MS + 80_000
    # The request of 31 µs is too narrow to be seen: it is drawn with what is beside it.
    assert pieces[0][0] == request_done_at
    assert {name for _, _, name in pieces} >= {"proxy_in", "wait", "proxy_out"}
    (backend,) = [(start, end) for start, end, name in pieces if name == "wait"]
    assert backend[0] >= request
    assert backend[1] == request + 31_000 + 19 * MS
    assert pieces[-1][1] == pytest.approx(request_done_at + 21 * MS + 501, abs=2 * MS)


def test_hovering_a_wait_tells_what_it_consists_of_and_joins_the_lanes(open_page: Open) -> None:
    page = open_page(reverse_proxy(), DrawOptions())
    point_at_lane(page, 0, 95e6)
    tip = page.driver.find_element(By.ID, "tip")
    wait_for(page, tip.is_displayed)
    assert "Caused #3 10.9.0.3:8080 GET /page/0.html → 200 (by size, confidence 1.00)" in tip.text
    assert "proxy 1.59 ms connecting 80.0 µs request 31.0 µs backend 19.0 ms proxy 297 µs" in tip.text
    front, back = page.run(JOINED)
    assert front["bottom"] < back["top"]
    assert front["left"] == pytest.approx(back["left"], abs=1)
    assert page.run("return document.querySelectorAll('#joins .ribbon').length") == 1
    (lane,) = page.run("return [...document.querySelectorAll('#joins .lane')].map(l => l.getBoundingClientRect().top)")
    assert lane == pytest.approx(back["top"], abs=2), "the other lane is marked"
    point_at_lane(page, 0, 40e6)
    wait_for(page, lambda: page.run(JOINED) == [])


def test_hovering_what_a_front_caused_joins_it_with_the_front(open_page: Open) -> None:
    page = open_page(reverse_proxy(), DrawOptions())
    point_at_lane(page, 3, 95e6)
    tip = page.driver.find_element(By.ID, "tip")
    wait_for(page, tip.is_displayed)
    assert "Caused by #0 192.168.7.1:443 tls turn 0 (by size, confidence 1.00)" in tip.text
    front, back = page.run(JOINED)
    assert front["bottom"] < back["top"]
    page.driver.find_element(By.ID, "lanes").send_keys("+")
    wait_for(page, lambda: page.run(JOINED) == [])
    assert page.console() == []


def test_an_end_that_is_filtered_out_is_named_and_not_joined(open_page: Open) -> None:
    page = open_page(reverse_proxy(), DrawOptions())
    page.driver.find_element(By.ID, "filter-text").send_keys("51344")
    wait_for(page, lambda: page.run(ROWS) == [0])
    point_at_lane(page, 0, 95e6)
    tip = page.driver.find_element(By.ID, "tip")
    wait_for(page, tip.is_displayed)
    assert "Caused #3" in tip.text
    assert page.run(JOINED) == []


def stalled_proxy() -> Story:
    story = reverse_proxy()
    story.stall(1, "nagle", 140 * MS, 190 * MS, detail="delayed-ack", ack_delay_ns=41 * MS + 500_000)
    story.stall(0, "rto", 20 * MS, 20 * MS + 1_500_000, detail="tail", side="server", released_frame=None)
    return story


def test_stalls_are_marked_below_the_bars_they_explain(open_page: Open) -> None:
    assert "stalled" not in open_page(reverse_proxy()).run(
        "return document.getElementById('plot').data.map(t => t.name)"
    )
    page = open_page(stalled_proxy())
    traces = page.run("return document.getElementById('plot').data.map(t => [t.name, t.x, t.y, t.fillcolor])")
    marks = {colour: boxes(x, y) for name, x, y, colour in traces if name == "stalled"}
    ink = page.run("return getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
    ((left, right, top, bottom),) = marks[COLOURS["held"]]
    assert (left, right) == (140 * MS, 190 * MS)
    assert [(left, right) for left, right, _, _ in marks[ink]] == [(20 * MS, 21_500_000)]
    (tls,) = [boxes(x, y) for name, x, y, _ in traces if name == "tls"]
    assert any(above < top < below < bottom for _, _, above, below in tls), "over the lower edge of the bar"
    page.driver.find_element(By.CSS_SELECTOR, "#table tbody tr[data-stream='1']").click()
    detail = page.driver.find_element(By.ID, "detail")
    wait_for(page, lambda: "Stalled\nheld 50.0 ms" in detail.text)
    assert "held nagle 140.000000 ms 50.000000 ms 11 → 12 → 14 a small segment waits for a delayed" in detail.text


def test_stalls_too_narrow_to_be_seen_apart_are_drawn_as_one(open_page: Open) -> None:
    story = reverse_proxy()
    for i in range(500):
        story.stall(0, "sender", 10 * MS + 2_000 * i, 10 * MS + 2_000 * i + 1_000)
    page = open_page(story)
    (drawn,) = page.run(
        "return document.getElementById('plot').data.filter(t => t.name === 'stalled').map(t => t.x.length)"
    )
    assert drawn <= 2 * 4 + 2, "a millisecond is less than four pixels"


def test_hovering_tells_why_the_next_byte_did_not_come(open_page: Open) -> None:
    page = open_page(stalled_proxy(), DrawOptions())
    point_at_lane(page, 1, 160e6)
    tip = page.driver.find_element(By.ID, "tip")
    wait_for(page, tip.is_displayed)
    for part in (
        "TLS handshake 81.000117 ms",
        "held 50.000000 ms",
        "a small segment waits for a delayed acknowledgement (Nagle); 41.5 ms of it is the peer's delay; "
        "the client's byte did not come: TCP's doing, confidence 0.90",
        "Frames 11 → 12 → 14 of tcp.stream eq 1",
        "Stalled: held 50.0 ms",
    ):
        assert part in tip.text
    point_at_lane(page, 1, 205e6)
    wait_for(page, lambda: "nagle" not in tip.text)
    assert "Stalled: held 50.0 ms" in tip.text


def test_table_sorts_by_stalled_time(open_page: Open) -> None:
    page = open_page(stalled_proxy())
    page.driver.find_element(By.XPATH, "//table[@id='table']//button[text()='Stalled']").click()
    assert page.run(ROWS)[:2] == [1, 0]


def test_table_sorts_both_ways(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    head = page.driver.find_element(By.XPATH, "//table[@id='table']//button[text()='tls']")
    head.click()
    assert page.run(ROWS)[:3] == [0, 1, 2]
    head.click()
    assert page.run(ROWS) == [3, 4, 5, 2, 1, 0]
    page.driver.find_element(By.XPATH, "//table[@id='table']//button[text()='Client']").click()
    assert page.run(ROWS) == [3, 4, 5, 0, 1, 2]


def test_filters_keep_the_same_connections_in_lanes_and_table(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    text = page.driver.find_element(By.ID, "filter-text")
    text.send_keys("51345")
    assert page.run(ROWS) == [1]
    assert [label.split()[0] for label in page.run(LABELS)] == ["#1"]
    text.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)
    assert page.run(ROWS) == [0, 1, 2, 3, 4, 5]
    Select(page.driver.find_element(By.ID, "filter-app")).select_by_value("http/1.0")
    wait_for(page, lambda: page.run(ROWS) == [3, 4, 5])
    assert page.driver.find_element(By.ID, "filter-count").text == "3 of 6 connections"
    text.send_keys("no such thing")
    assert page.run(ROWS) == []
    assert page.console() == []


@pytest.mark.parametrize("text", [*HOSTILE, BIDI], ids=range(len(HOSTILE) + 1))
def test_hostile_text_is_shown_as_text(open_page: Open, text: str) -> None:
    page = open_page(hostile_story(text))
    page.driver.find_element(By.CSS_SELECTOR, "#table tbody tr").click()
    shown = "".join("\ufffd" if c in "\u2028\u2029\u202e\u202c\u200b\x1b\x00" else c for c in text)
    heading = page.run("return document.querySelector('#plot .annotation-text').textContent")
    assert shown[:20] in heading
    assert shown in page.run("return document.querySelector('#table tbody').textContent")
    assert shown in page.run("return document.getElementById('detail').textContent")
    assert page.run("return document.querySelectorAll('img, iframe, object, [onerror], [onmouseover]').length") == 0
    assert page.run("return [...document.querySelectorAll('a')].length") == 0
    assert page.console() == []  # the policy would have complained
    assert [url for url in page.requests() if not url.endswith("/page.html")] == []


def test_injected_script_would_not_run(open_page: Open) -> None:
    page = open_page(reverse_proxy())
    page.run("const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)")
    assert page.run("return window.hacked === undefined")
    assert any("Content Security Policy" in message for message in page.console())


def test_two_thousand_connections_stay_quick(open_page: Open) -> None:
    page = open_page(many(2_000), DrawOptions())
    assert page.console() == []
    assert len(page.run(ROWS)) < 80, "rows out of view must not stand in the page"
    shapes = page.run("return document.querySelectorAll('#plot path:not(.point)').length")
    assert shapes < 300, "lanes out of view must not be drawn, nor each phase on its own"
    # The last lane can be reached, and is drawn with its bars.
    lanes = page.driver.find_element(By.ID, "lanes")
    page.run("arguments[0].scrollTop = arguments[0].scrollHeight", lanes)
    bottom = (
        "document.getElementById('plot').layout.yaxis.range[0] > document.getElementById('lanes').scrollHeight - 60"
    )
    wait_for(page, lambda: page.run(f"return {bottom}"))
    page.driver.find_element(By.ID, "filter-text").send_keys("#1998")
    wait_for(page, lambda: page.run(ROWS) == [1998])


@pytest.mark.parametrize("width", [1200, 2500])
def test_nothing_sticks_out_sideways(open_page: Open, width: int) -> None:
    page = open_page(reverse_proxy())
    size = page.driver.get_window_size()
    try:
        page.driver.set_window_size(width, 1_000)
        wait_for(page, lambda: page.run("return document.getElementById('plot')._fullLayout.width") > 0.9 * width)
        assert page.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    finally:
        page.driver.set_window_size(size["width"], size["height"])


def test_an_encrypted_renegotiation_is_named(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with conchart.read(ROOT / "captures/handshakes/curl-apache-1.2-certificate-later/input.pcap") as trace:
        write_html(trace, path, DrawOptions())
    page = Opened(chromium, path)
    assert "full, renegotiation" in page.driver.find_element(By.CSS_SELECTOR, "tr[data-stream='0']").text
    page.driver.find_element(By.CSS_SELECTOR, "tr[data-stream='0']").click()
    wait_for(page, lambda: "renegotiation handshake" in page.driver.find_element(By.ID, "detail").text)
