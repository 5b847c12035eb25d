"""The lanes as pictures, compared with those in ``goldens``, within what machines draw differently.

`pytest tests/browser/test_pictures.py --update-golden` takes them anew; a person looks at them. Text is hidden, and
the lanes lie in the window's corner, whatever is above them on the page: no two machines have the same fonts.
"""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened, prefer
from tests.browser.test_page import wait_for
from tests.charts.story import MS, US, Story, reverse_proxy
from tests.conftest import TellTrace

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

GOLDENS = Path(__file__).with_name("goldens")
HEIGHT = 800
UNLIKE = 0.03
"""Share of the pixels with something on them that may differ."""
STEP = 40
"""By how much they differ, in one of the colours of 256 levels."""

ALONE = """
    const style = document.createElement("style");
    style.textContent = `
      #lanes { position: fixed; inset: 0 0 auto 0; z-index: 99 }
      html, #lanes { scrollbar-width: none }
      #lanes text { visibility: hidden }`;
    document.head.append(style);
"""
HEADINGS = """
    return [...document.querySelectorAll("#plot .annotation-text")].filter((text) => text.textContent.startsWith("▾"))
      .map((text) => text.getBoundingClientRect()).map(({ x, y, height }) => [x + 5, y + height / 2].map(Math.round));
"""
FITS = """
    return document.getElementById("plot")._fullLayout.width === document.getElementById("lanes").clientWidth
      && document.getElementById("lanes").getBoundingClientRect().width === innerWidth;
"""
PLACE = "return { x: 0, y: 0, width: innerWidth, height: document.getElementById('lanes').offsetHeight, scale: 1 }"
COMPARE = """
    const [taken, golden, step, done] = arguments;
    const pixels = async (png) => {
      const image = new Image();
      image.src = `data:image/png;base64,${png}`;
      await image.decode();
      const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, image.width, image.height);
    };
    Promise.all([pixels(taken), pixels(golden)]).then(([a, b]) => {
      if (a.width !== b.width || a.height !== b.height) {
        done(`${a.width} x ${a.height}, not ${b.width} x ${b.height} pixels`);
        return;
      }
      const [paper, margin] = [b.data, 4 * (20 * b.width + 20)];
      const differ = (one, i, other, j) => [0, 1, 2].some((n) => Math.abs(one[i + n] - other[j + n]) > step);
      let [drawn, unlike] = [0, 0];
      for (let i = 0; i < a.data.length; i += 4) {
        drawn += Number(differ(a.data, i, paper, margin) || differ(b.data, i, paper, margin));
        unlike += Number(differ(a.data, i, b.data, i));
      }
      done(unlike / drawn);
    }, (error) => done(String(error)));
"""


def stalled() -> Story:
    """A proxy's connections, on two of which the next byte did not come for a while."""
    story = reverse_proxy()
    story.stall(0, "nagle", 20 * MS, 60 * MS)
    story.stall(1, "sender", 160 * MS, 190 * MS, side="server")
    return story


def busy() -> Story:
    """Many connections to three servers, short and long ones, which share lanes."""
    story = Story()
    for i in range(120):
        pace = 1 + (i * 7_919) % 17
        story.connect(
            (f"172.16.0.{i % 4 + 1}", 20_000 + i),
            (f"10.9.0.{i % 3 + 1}", 443),
            (i // 3) * 31 * MS,
            [
                ("syn", 3 * MS),
                ("tls", pace * 2 * MS),
                ("request", 800 * US),
                ("wait", pace * 9 * MS),
                ("transfer", pace * 3 * MS),
                ("close", 4 * MS),
            ],
            tls={},
        )
    story.capture()
    return story


PICTURES = {
    "light": (stalled, 1000, "light", False),
    "dark": (stalled, 1000, "dark", False),
    "narrow": (stalled, 420, "light", False),
    "folded": (busy, 1000, "light", True),
}
"""What is drawn, in a window of what width, in which colours, and whether its groups are folded."""


@pytest.fixture
def driver(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """A browser that forgets what windows and colours it was told to have."""
    yield chromium
    prefer(chromium, "")
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def picture(page: Opened) -> str:
    """Take a picture of the lanes, as PNG in base64."""
    clip = page.run(PLACE)
    taken = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})
    png: str = taken["data"]
    return png


def fold_all(page: Opened) -> None:
    """Click on headings until none is unfolded."""
    while places := page.run(HEADINGS):
        page.click_at(*places[0])
        wait_for(page, lambda: len(page.run(HEADINGS)) < len(places))


@pytest.mark.parametrize("name", PICTURES)
def test_lanes_look_as_they_did(
    name: str, driver: webdriver.Chrome, trace_of: TellTrace, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    story, width, scheme, folded = PICTURES[name]
    view = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)
    prefer(driver, scheme)
    path = tmp_path / "page.html"
    write_html(trace_of(story()), path, DrawOptions())
    page = Opened(driver, path)
    wait_for(page, lambda: page.run("return document.querySelectorAll('#plot path.js-fill').length > 3"))
    page.run(ALONE)
    wait_for(page, lambda: page.run(FITS))
    if folded:
        fold_all(page)
    wait_for(page, lambda: picture(page) == picture(page))
    taken, golden = picture(page), GOLDENS / f"{name}.png"
    if pytestconfig.getoption("--update-golden"):
        golden.write_bytes(base64.b64decode(taken))
    unlike = driver.execute_async_script(COMPARE, taken, base64.b64encode(golden.read_bytes()).decode(), STEP)
    (tmp_path / "taken.png").write_bytes(base64.b64decode(taken))
    assert isinstance(unlike, float | int), unlike
    assert unlike < UNLIKE, f"{unlike:.2%} of what is drawn in {tmp_path / 'taken.png'} is not as in {golden}"
