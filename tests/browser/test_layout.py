"""What stands where on a screen, a phone and paper: the answer within 400 pixels, then the lanes, nothing cut off."""

import base64
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import conchart
from conchart.labels.stalls import COLOURS
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from conchart.outputs.page.predictions import render as render_prediction
from conchart.questions.predict import Change, predict
from conchart.report.report import Report
from tests.browser.conftest import Opened, prefer
from tests.browser.test_page import RANGE, boxes, wait_for
from tests.charts.story import MS, Story
from tests.conftest import ROOT, TellTrace

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

FIRST = 400
"""Pixels within which the answer begins, and on a screen ends."""
SCREEN, PHONE, SHEET = (1400, 900), (390, 844), (718, 1000)
"""Width and height; of A4 between Chromium's margins."""
CAPTURES = {
    "faults": "captures/reverse-proxy/https-no-keepalive",
    "clean": "captures/findings/backend-no-keepalive-clean",
    "cut": "captures/crafted/gap",
    "proxy": "captures/hops/nginx-close-http-https-16",
}

BOX = "const { top, bottom, left, right } = document.querySelector(arguments[0]).getBoundingClientRect();" + (
    "return { top: top + scrollY, bottom: bottom + scrollY, left, right }"
)
# What sticks out of the page, but for what lies in a box that scrolls, or ends in dots.
CUT = """
    const width = document.documentElement.clientWidth;
    const fits = (one) => one && one !== document.body && (/auto|scroll/.test(getComputedStyle(one).overflowX)
      || getComputedStyle(one).textOverflow === "ellipsis" || fits(one.parentElement));
    return [...document.querySelectorAll("body *")]
      .filter((one) => one.checkVisibility() && !one.closest("svg, dialog, .unseen, .overview"))
      .filter((one) => one.getBoundingClientRect().right > width + 1 && !fits(one.parentElement))
      .map((one) => one.outerHTML.slice(0, 120));
"""
# The middle of a lane, and an instant on it, in the window.
LANE = """
    const { _size: size, xaxis } = document.getElementById("plot")._fullLayout;
    const plot = document.getElementById("plot").getBoundingClientRect();
    const labels = [...document.querySelectorAll("#plot .ytick")];
    const label = labels.find((one) => one.textContent.startsWith(`#${arguments[0]} `)).getBoundingClientRect();
    return [plot.left + size.l + xaxis.l2p(arguments[1]), (label.top + label.bottom) / 2].map(Math.round);
"""
# The part of the overview's last line that is filled.
FILLED = """
    const canvas = document.querySelector("#overview canvas");
    const { data } = canvas.getContext("2d").getImageData(0, canvas.height - 2, canvas.width, 1);
    return data.filter((_, i) => i % 4 === 3 && data[i]).length / canvas.width;
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("layout")
    for name, capture in CAPTURES.items():
        with conchart.read(next((ROOT / capture).glob("input.pcap*"))) as trace:
            write_html(trace, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in CAPTURES}


@pytest.fixture
def driver(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """A browser that forgets what it was told to be."""
    chromium.get("about:blank")
    yield chromium
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    prefer(chromium, "")


def resize(driver: webdriver.Chrome, size: tuple[int, int], *, mobile: bool = False) -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": mobile})


def drawn(page: Opened) -> None:
    """Wait until the lanes are as wide as their box."""
    wait_for(
        page,
        lambda: page.run(
            "return document.getElementById('plot')._fullLayout.width === document.getElementById('lanes').clientWidth"
        ),
    )


@pytest.mark.parametrize("name", CAPTURES)
def test_on_a_screen_the_answer_comes_first_and_then_the_lanes(
    name: str, pages: dict[str, Path], driver: webdriver.Chrome
) -> None:
    resize(driver, SCREEN)
    page = Opened(driver, pages[name])
    drawn(page)
    assert page.run(BOX, "#verdict ol")["bottom"] <= FIRST
    lanes = page.run(BOX, "#lanes")
    assert lanes["top"] < SCREEN[1] - 150, "lanes are seen without scrolling"
    assert page.run(BOX, "#legend")["bottom"] <= lanes["top"]
    assert page.run(BOX, "#legend")["bottom"] > lanes["top"] - 60, "the legend stands at the lanes"
    assert page.run(BOX, "#attribution")["top"] >= lanes["bottom"]
    assert page.run(CUT) == []
    chip = page.driver.find_element(By.CSS_SELECTOR, "#quality .chip").text
    assert chip == (
        "▲ 4\u2009380 bytes acknowledged but not captured, on 1 connection" if name == "cut" else "✓ capture complete"
    )
    assert page.run("return document.body.innerText").count("acknowledged but not captured") == (name == "cut")


@pytest.mark.parametrize("name", CAPTURES)
def test_on_a_phone_the_lanes_come_before_what_changes_them(
    name: str, pages: dict[str, Path], driver: webdriver.Chrome
) -> None:
    resize(driver, PHONE, mobile=True)
    page = Opened(driver, pages[name])
    drawn(page)
    assert page.run(BOX, "#verdict li")["bottom"] <= FIRST
    lanes = page.run(BOX, "#lanes")
    assert page.run(BOX, "#verdict")["bottom"] <= lanes["top"]
    assert lanes["bottom"] <= page.run(BOX, "#toolbar")["top"]
    assert page.run("return document.documentElement.scrollWidth") <= PHONE[0]
    assert page.run(CUT) == []
    assert page.driver.find_element(By.CSS_SELECTOR, ".by-finger").is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", CAPTURES)
def test_on_paper_there_is_all_but_what_one_can_press(
    name: str, scheme: str, pages: dict[str, Path], driver: webdriver.Chrome
) -> None:
    resize(driver, SHEET)
    prefer(driver, scheme)
    page = Opened(driver, pages[name])
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    assert page.run(BOX, "#verdict li")["bottom"] <= FIRST
    for pressed in ("#toolbar", "#overview", "#verdict .see", "#lanes-help"):
        assert not page.driver.find_element(By.CSS_SELECTOR, pressed).is_displayed(), pressed
    assert page.run(CUT) == []
    lanes, plot = page.run(BOX, "#lanes"), page.run(BOX, "#plot .main-svg")
    assert plot["bottom"] <= lanes["bottom"], "no lane is cut off"
    assert page.run("return document.getElementById('plot').layout.paper_bgcolor") == "#ffffff"
    page.run("window.dispatchEvent(new Event('afterprint'))")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    paper = {"light": "#ffffff", "dark": "#14171b"}[scheme]
    wait_for(page, lambda: page.run("return document.getElementById('plot').layout.paper_bgcolor") == paper)


def test_details_stand_beside_the_lane_that_was_clicked(pages: dict[str, Path], driver: webdriver.Chrome) -> None:
    resize(driver, SCREEN)
    page = Opened(driver, pages["proxy"])
    drawn(page)
    page.run("document.getElementById('lanes').scrollIntoView({ block: 'end' })")
    page.click_at(*page.run(LANE, 14, 20 * MS))
    detail = page.driver.find_element(By.ID, "detail")
    wait_for(page, detail.is_displayed)
    box = page.run("return document.getElementById('detail').getBoundingClientRect().toJSON()")
    assert box["bottom"] == SCREEN[1]
    assert box["height"] <= 0.45 * SCREEN[1]
    toolbar = page.run("return document.getElementById('toolbar').getBoundingClientRect().bottom")
    wait_for(page, lambda: toolbar < page.run(LANE, 14, 20 * MS)[1] < box["top"])
    assert page.driver.find_element(By.ID, "chosen-told").get_attribute("role") == "status"
    text = page.run("return document.getElementById('chosen-told').textContent")
    assert re.fullmatch(r"Connection 14, \S+ to \S+, complete, open for .*", text)
    assert page.run("return document.querySelector('#detail[aria-live], #detail [aria-live]')") is None
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert not detail.is_displayed()
    assert text
    assert not page.run("return document.getElementById('chosen-told').textContent")


def touch(page: Opened, kind: str, *points: tuple[float, float]) -> None:
    touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
    page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})


def test_a_tap_chooses_a_lane_and_two_fingers_zoom(pages: dict[str, Path], driver: webdriver.Chrome) -> None:
    resize(driver, PHONE, mobile=True)
    page = Opened(driver, pages["faults"])
    drawn(page)
    page.run("document.getElementById('lanes').scrollIntoView({ block: 'center' })")
    whole = page.run(RANGE)
    x, y = page.run(LANE, 2, 150 * MS)
    touch(page, "touchStart", (x - 20, y), (x + 20, y))
    touch(page, "touchMove", (x - 40, y), (x + 40, y))
    touch(page, "touchEnd")
    wait_for(page, lambda: page.run(RANGE)[1] - page.run(RANGE)[0] < 0.7 * (whole[1] - whole[0]))
    left, right = page.run(RANGE)
    inner = page.run("return document.getElementById('plot')._fullLayout._size.w")
    touch(page, "touchStart", (x, y))
    touch(page, "touchMove", (x - 15, y))
    touch(page, "touchMove", (x - 60, y))
    touch(page, "touchEnd")
    wait_for(page, lambda: page.run(RANGE)[0] > left + 0.9 * 60 / inner * (right - left))
    detail = page.driver.find_element(By.ID, "detail")
    assert not detail.is_displayed(), "no finger that moves taps"
    x, y = page.run(LANE, 2, sum(page.run(RANGE)) / 2)

    def tap() -> bool:
        touch(page, "touchStart", (x, y))
        touch(page, "touchEnd")
        time.sleep(1)
        return detail.is_displayed()

    # To Chromium, a tap right after a movement only stops what still rolls, and a finger that rests is no tap.
    wait_for(page, tap)
    assert page.driver.find_element(By.CSS_SELECTOR, "#detail h3").text == "Connection #2"
    assert page.console() == []


def test_the_overview_shows_and_takes_a_part_of_the_capture(pages: dict[str, Path], driver: webdriver.Chrome) -> None:
    resize(driver, SCREEN)
    page = Opened(driver, pages["faults"])
    drawn(page)
    whole = page.run(RANGE)
    strip = page.run("return document.getElementById('overview').getBoundingClientRect().toJSON()")
    inner = page.run("return document.getElementById('plot')._fullLayout._size.w")
    assert strip["width"] == pytest.approx(inner, abs=1), "its times stand above those of the lanes"
    # Each part of it that somebody waited in is filled.
    with conchart.read(ROOT / CAPTURES["faults"] / "input.pcap") as trace:
        ((waited,),) = trace.sql(
            "SELECT sum(waited_ns) / (SELECT max(last_at) - min(first_at) FROM captures) FROM servers "
            "WHERE role <> 'backend'"
        ).fetchall()
    assert page.run(FILLED) == pytest.approx(waited, abs=0.02), "one of its connections after the other is waited for"
    y = int(strip["top"] + strip["height"] / 2)

    def at(share: float) -> int:
        return int(strip["left"] + share * strip["width"])

    def drag(start: float, end: float) -> None:
        page.point_at(at(start), y)
        chain = webdriver.ActionChains(driver, duration=20)
        chain.click_and_hold()
        chain.w3c_actions.pointer_action.move_to_location(at(end), y)  # type: ignore[no-untyped-call]
        chain.release().perform()

    drag(0.25, 0.5)
    span = whole[1] - whole[0]
    wait_for(page, lambda: page.run(RANGE)[1] - page.run(RANGE)[0] == pytest.approx(span / 4, rel=0.02))
    taken = page.run(RANGE)
    window = page.run("return document.getElementById('overview-window').getBoundingClientRect().toJSON()")
    assert window["left"] == pytest.approx(at(0.25), abs=3)
    drag(0.4, 0.6)
    wait_for(page, lambda: page.run(RANGE)[0] == pytest.approx(taken[0] + 0.2 * span, rel=0.02))
    page.click_at(at(0.1), y)
    wait_for(page, lambda: page.run(RANGE)[0] < taken[0])
    webdriver.ActionChains(driver, duration=0).double_click().perform()
    wait_for(page, lambda: page.run(RANGE) == whole)


def test_what_was_held_between_messages_is_no_idling_and_requests_have_names(
    pages: dict[str, Path], driver: webdriver.Chrome
) -> None:
    resize(driver, SCREEN)
    page = Opened(driver, pages["faults"])
    drawn(page)
    data = page.run("return document.getElementById('plot').data.map(t => [t.name, t.x, t.y, t.fillcolor, t.text])")
    (held,) = [boxes(x, y) for name, x, y, colour, _ in data if name == "held" and colour == COLOURS["held"]]
    with conchart.read(ROOT / CAPTURES["faults"] / "input.pcap") as trace:
        expected = trace.sql(
            "SELECT start_at - o, end_at - o FROM phase_stalls, (SELECT min(first_at) AS o FROM captures) "
            "WHERE phase = 'idle' AND kind IN ('nagle', 'delayed-ack') ORDER BY start_at"
        ).fetchall()
    assert len(expected) == 3
    assert sorted((left, right) for left, right, _, _ in held) == expected
    (names,) = [text for name, _, _, _, text in data if name == "requests"]
    assert "/logo.png" in names


def test_lanes_are_sorted_by_time_or_by_cost(trace_of: TellTrace, tmp_path: Path, driver: webdriver.Chrome) -> None:
    story = Story()
    for port, at, took in ((1, 0, 10), (2, 20, 70), (3, 40, 30)):
        story.connect(("10.0.0.1", port), ("10.0.0.2", 80), at * MS, [("wait", took * MS)])
    story.capture()
    write_html(trace_of(story), tmp_path / "page.html")
    page = Opened(driver, tmp_path / "page.html")
    order = "return [...document.querySelectorAll('#plot .ytick text')].map(one => one.textContent.slice(0, 2))"
    tops = "return document.getElementById('plot').layout.yaxis.ticktext.map(one => one.slice(0, 2))"
    assert sorted(page.run(order)) == ["#0", "#1", "#2"]
    assert page.run(tops) == ["#0", "#1", "#2"]
    page.driver.find_element(By.CSS_SELECTOR, "#order option[value=cost]").click()
    wait_for(page, lambda: page.run(tops) == ["#1", "#2", "#0"])
    wait_for(page, lambda: "order=cost" in page.run("return location.hash"))


def test_keys_of_a_single_letter_can_be_switched_off(pages: dict[str, Path], driver: webdriver.Chrome) -> None:
    page = Opened(driver, pages["faults"])
    page.driver.find_element(By.ID, "help-open").click()
    page.driver.find_element(By.ID, "single-keys").click()
    page.driver.find_element(By.CSS_SELECTOR, "#help button").click()
    page.run("document.activeElement.blur()")
    body = page.driver.find_element(By.TAG_NAME, "body")
    body.send_keys("/n?")
    assert page.run("return document.activeElement === document.body")
    assert not page.run("return document.getElementById('help').open")
    assert not page.driver.find_element(By.ID, "finding-shown").is_displayed()
    again = Opened(driver, pages["faults"])
    assert not again.run("return document.getElementById('single-keys').checked"), "the browser remembers it"
    again.run("document.getElementById('single-keys').click()")
    page.driver.find_element(By.TAG_NAME, "body").send_keys("/")
    assert page.run("return document.activeElement.id") == "filter-text"


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explained") / "page.html"
    with conchart.read(ROOT / CAPTURES["faults"] / "input.pcap", explain=2) as trace:
        write_html(trace, path, DrawOptions(explained=2))
    return path


def test_the_page_of_explain_shows_its_title(explained: Path, driver: webdriver.Chrome) -> None:
    resize(driver, SCREEN)
    page = Opened(driver, explained)
    title = page.run("return document.querySelector('#detail h3').getBoundingClientRect().top")
    assert page.run("return document.getElementById('toolbar').getBoundingClientRect().bottom") <= title < 200


def test_a_ladder_is_printed_on_two_sheets(explained: Path, driver: webdriver.Chrome) -> None:
    page = Opened(driver, explained)
    paper = {"paperWidth": 8.27, "paperHeight": 11.69}
    pdf = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", paper)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 2


@pytest.mark.parametrize("size", [SCREEN, PHONE])
def test_nothing_of_a_prediction_is_cut_off(size: tuple[int, int], driver: webdriver.Chrome, tmp_path: Path) -> None:
    with conchart.read(ROOT / CAPTURES["faults"] / "input.pcap") as trace:
        text = render_prediction(predict(trace, Change(keepalive=True)), Report(trace))
    (tmp_path / "whatif.html").write_text(text, encoding="utf-8")
    resize(driver, size, mobile=size == PHONE)
    page = Opened(driver, tmp_path / "whatif.html")
    assert page.run(CUT) == []
    table = page.run(
        "const t = document.querySelector('.measures').parentElement; return [t.scrollWidth, t.clientWidth]"
    )
    assert table[0] <= table[1], "the difference is seen without scrolling"
    assert "https-no-keepalive/input.pcap" in page.driver.find_element(By.TAG_NAME, "header").text
    held = page.driver.find_elements(By.CSS_SELECTOR, ".timeline .stalled.w-held")
    assert len(held) == 6
    assert page.run("return getComputedStyle(arguments[0]).fill", held[0]) == "rgb(216, 96, 192)"
