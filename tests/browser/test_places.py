"""The page of several places: lanes by place, arrows whose slope is the path, delays over time."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

import conchart
from conchart import Trace
from conchart.outputs.page.page import render, write_html
from conchart.questions.explain import connections, ladder
from conchart.report.axis import time_axis
from conchart.report.delays import delays
from conchart.report.request_paths import RequestPath, journeys
from tests.browser.conftest import Opened, prefer
from tests.browser.test_accessible import CHECK, OPEN
from tests.browser.test_accessible import axe as axe  # noqa: PLC0414  (a fixture)
from tests.conftest import ROOT, places_of

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

LANES = """
    const texts = [...document.querySelectorAll("#journey svg text.place")];
    return texts.map((text) => text.textContent);
"""
ARROWS = """
    const line = (one) => ["x1", "y1", "x2", "y2"].map((name) => Number(one.getAttribute(name)));
    return [...document.querySelectorAll("#journey svg g[data-frame]")].map((group) => ({
      frame: Number(group.dataset.frame), lost: group.matches(".lost"),
      lines: [...group.querySelectorAll("line")].map(line),
      title: group.querySelector("title").textContent }));
"""


def read(case: str) -> Trace:
    return conchart.read(places={place: [path] for place, path in places_of(ROOT / "captures/places" / case).items()})


def opened(case: str, chromium: webdriver.Chrome, folder: Path) -> tuple[Opened, list[RequestPath]]:
    path = folder / "page.html"
    with read(case) as trace:
        write_html(trace, path)
        expected = list(journeys(trace, 20))
    return Opened(chromium, path), expected


@pytest.fixture
def narrow(chromium: webdriver.Chrome) -> Iterator[None]:
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_each_place_has_a_group_of_lanes_and_each_packet_an_arrow(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page, expected = opened("plain", chromium, tmp_path)
    assert page.run(LANES) == ["client", "lb", "app"]
    arrows = page.run(ARROWS)
    assert sorted(arrow["frame"] for arrow in arrows) == sorted(arrow.frame for arrow in expected[0].arrows)
    assert str(expected[0].wait)[1:] in page.run("return document.querySelector('#journey figcaption').textContent")
    assert page.console() == []


def test_the_slope_of_an_arrow_is_the_time_on_the_path(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page, expected = opened("plain", chromium, tmp_path)
    drawn = {arrow["frame"]: arrow["lines"] for arrow in page.run(ARROWS)}
    took = {
        arrow.frame: [came - left for (_, left), (_, came) in zip(arrow.seen, arrow.seen[1:], strict=False)]
        for arrow in expected[0].arrows
    }
    pixels = [x2 - x1 for frame in sorted(drawn) for x1, _, x2, _ in drawn[frame]]
    ns = [one for frame in sorted(took) for one in took[frame]]
    assert len(ns) == len(pixels) > 10
    per_pixel = sum(ns) / sum(pixels)
    assert pixels == pytest.approx([one / per_pixel for one in ns], abs=0.6)
    # Client and load balancer are 10 ms apart, load balancer and application 1 ms.
    assert max(ns) / min(ns) == pytest.approx(10, rel=0.1)


def test_another_exchange_is_chosen_with_the_keyboard(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page, expected = opened("plain", chromium, tmp_path)
    choice = Select(page.driver.find_element(By.ID, "journey-of"))
    assert len(choice.options) == len(expected)
    page.driver.find_element(By.ID, "journey-of").send_keys("\ue015")  # arrow down
    frames = {arrow["frame"] for arrow in page.run(ARROWS)}
    assert frames == {arrow.frame for arrow in expected[1].arrows}
    assert str(expected[1].wait)[1:] in page.run("return document.querySelector('#journey figcaption').textContent")


def test_a_lost_packet_ends_before_the_next_place(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page, expected = opened("loss", chromium, tmp_path)
    lost = [(n, arrow) for n, one in enumerate(expected) for arrow in one.arrows if arrow.lost_to]
    assert lost
    for number, arrow in lost:
        Select(page.driver.find_element(By.ID, "journey-of")).select_by_index(number)
        (drawn,) = (one for one in page.run(ARROWS) if one["frame"] == arrow.frame)
        assert drawn["lost"]
        assert drawn["title"].endswith(f"lost before {arrow.lost_to}")
        assert len(drawn["lines"]) == len(arrow.seen)


def test_the_table_says_the_same_as_the_arrows(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page, expected = opened("loss", chromium, tmp_path)
    rows: list[list[str]] = page.run(
        "return [...document.querySelectorAll('#journey tbody tr')].map(row => [...row.cells].map(c => c.textContent))"
    )
    places = [
        one.place
        for n, one in enumerate(expected[0].lanes)
        if one.place not in {p.place for p in expected[0].lanes[:n]}
    ]
    assert len(rows) == len(expected[0].arrows)
    for row, arrow in zip(rows, expected[0].arrows, strict=True):
        seen = dict(arrow.seen)
        for place, cell in zip(places, row[3:], strict=True):
            if place in seen:
                assert float(cell.replace("\u2009", "")) == pytest.approx(
                    (seen[place] - expected[0].start_at) / 1e6, abs=6e-4
                )
            else:
                assert cell == ("lost" if place == arrow.lost_to else "")


def test_delays_show_the_queue_in_its_direction_alone(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page, _ = opened("queue", chromium, tmp_path)
    tops = page.run(
        "return [...document.querySelectorAll('#delays figure')].map(figure => [figure.querySelector('b').textContent,"
        "Math.max(...[...figure.querySelectorAll('rect.longest')].map(bar => Number(bar.getAttribute('height')))),"
        "figure.querySelectorAll('.cross').length])"
    )
    by_path = {name: (height, crosses) for name, height, crosses in tops}
    assert set(by_path) == {"client → lb", "lb → app", "app → lb", "lb → client"}
    height, crosses = by_path.pop("lb → client")
    assert height > 50
    assert crosses > 3
    assert all(low < 6 and not lost for low, lost in by_path.values())


def test_delays_are_what_the_line_did() -> None:
    """2 Mbit/s and a queue of 20,000 bytes: 80 ms. The other paths have none."""
    with read("queue") as trace:
        by_path = {one.name: one for one in delays(trace, time_axis(trace))}
        ((lost,),) = trace.sql("SELECT count(*) FROM losses WHERE NOT captured_elsewhere").fetchall()
    assert 60_000_000 < by_path["lb → client"].most_ns < 85_000_000
    assert by_path["lb → client"].lost == lost == sum(point.lost for point in by_path["lb → client"].points)
    assert max(one.most_ns for name, one in by_path.items() if name != "lb → client") < 6_000_000
    assert all(sum(point.packets for point in one.points) == one.packets for one in by_path.values())


def test_it_fits_a_narrow_window(narrow: None, chromium: webdriver.Chrome, tmp_path: Path) -> None:  # noqa: ARG001
    page, _ = opened("loss", chromium, tmp_path)
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0
    size = "return document.querySelector('#journey svg').getBoundingClientRect().width"
    view = "return document.querySelector('#journey svg').viewBox.baseVal.width"
    assert page.run(view) == pytest.approx(page.run(size), abs=1), "letters keep their size"
    outside = page.run(
        "const box = document.querySelector('#between').getBoundingClientRect();"
        "return [...document.querySelectorAll('#between svg text')].filter(text => {"
        "const one = text.getBoundingClientRect(); return one.left < box.left - 1 || one.right > box.right + 1;"
        "}).map(text => text.textContent)"
    )
    assert outside == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, axe: str, chromium: webdriver.Chrome, tmp_path: Path) -> None:
    prefer(chromium, scheme)
    try:
        page, _ = opened("loss", chromium, tmp_path)
        page.run(OPEN)
        page.run(axe)
        assert page.driver.execute_async_script(CHECK) == []
    finally:
        prefer(chromium, "")


def test_on_paper_it_is_there_in_its_width(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    page, _ = opened("plain", chromium, tmp_path)
    page.run(
        "window.wide = []; window.addEventListener('beforeprint', () => window.wide.push("
        "document.querySelector('#journey svg').viewBox.baseVal.width))"
    )
    before = page.run("return document.querySelector('#journey svg').viewBox.baseVal.width")
    pdf = base64.b64decode(chromium.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert page.run("return window.wide") == [700]
    assert page.run("return document.querySelector('#journey svg').viewBox.baseVal.width") == before
    assert pdf.startswith(b"%PDF")


def test_the_page_of_one_capture_has_nothing_of_it() -> None:
    def scripts(text: str) -> Any:  # noqa: ANN401
        return {name: name in text for name in ("pictureOfPlaces", "delayChart", "#between svg", 'id="places"')}

    with conchart.read(places_of(ROOT / "captures/places/plain")["client"]) as trace:
        assert set(scripts(render(trace)).values()) == {False}
    with read("plain") as trace:
        assert set(scripts(render(trace)).values()) == {True}


def test_a_ladder_has_a_column_for_each_place(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    """Three of one host saw the backend's connection; each packet goes through all of them."""
    page, _ = opened("one-host", chromium, tmp_path)
    page.run("document.querySelector('tr[data-stream=\"2\"]').click()")
    with read("one-host") as trace:
        (found,) = connections(trace, 2)
        expected = ladder(found)
    facts = page.run("return [...document.querySelectorAll('.ladder dt')].map(dt => dt.nextSibling.textContent)")
    assert [says for name, says in expected.facts if name == "where"] == [one for one in facts if " = path " in one]
    page.run("document.querySelector('[data-scale=\"true\"]').click()")
    names = page.run("return [...document.querySelectorAll('.ladder text.place')].map(text => text.firstChild.data)")
    assert names == [name for name, _ in expected.places] == ["lb", "bridge", "app"]
    lines = page.run(
        "return [...document.querySelectorAll('.ladder g[data-frame]')]"
        ".map(group => group.querySelectorAll('line').length)"
    )
    assert lines == [len(rung.seen) - 1 for rung in expected.rungs]
    overlaps = page.run(
        "const box = (group, name) => group.querySelector(name)?.getBoundingClientRect();"
        "return [...document.querySelectorAll('.ladder g.by-client')].filter(group => box(group, '.time')"
        " && box(group, '.time').right > box(group, '.word').left).map(group => group.textContent)"
    )
    assert overlaps == []
