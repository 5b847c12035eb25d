"""Pages as axe sees them: what WCAG 2.1 asks for at levels A and AA, and a program can check, contrast included."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

import conchart
from conchart.outputs.page.comparison import render_comparison
from conchart.outputs.page.page import render
from conchart.outputs.page.predictions import render as render_prediction
from conchart.questions.compare import compare
from conchart.questions.predict import Change, predict
from conchart.report.report import Report
from tests.browser.conftest import Opened, prefer
from tests.browser.test_page import wait_for
from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

AXE = ROOT / "tests/scripts/node_modules/axe-core/axe.min.js"
CAPTURES = ROOT / "captures/reverse-proxy"
CHECK = """
    const done = arguments[arguments.length - 1];
    const rules = { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] };
    const told = ({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`);
    axe.run(document, { runOnly: rules, resultTypes: ["violations"] })
      .then(({ violations }) => done(violations.flatMap(told)), (error) => done([String(error)]));
"""
OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


def page() -> str:
    with conchart.read(CAPTURES / "https-no-keepalive/input.pcap", packets=True) as trace:
        return render(trace)


def comparison() -> str:
    with (
        conchart.read(CAPTURES / "https-no-keepalive/input.pcap") as before,
        conchart.read(CAPTURES / "https-keepalive/input.pcap") as after,
    ):
        return render_comparison(compare(before, after))


def prediction() -> str:
    with conchart.read(CAPTURES / "https-no-keepalive/input.pcap") as trace:
        return render_prediction(predict(trace, Change(keepalive=True)), Report(trace))


@pytest.fixture
def axe() -> str:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci --prefix tests/scripts")
    return AXE.read_text(encoding="utf-8")


@pytest.fixture(params=["light", "dark", "print"])
def scheme(request: pytest.FixtureRequest, chromium: webdriver.Chrome) -> Iterator[str]:
    """What a person prefers; who prints prefers dark colours, which paper does not have."""
    prefer(chromium, "light" if request.param == "light" else "dark")
    yield request.param
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


@pytest.mark.parametrize("write", [page, comparison, prediction], ids=lambda write: write.__name__)
def test_axe_finds_nothing(
    write: Callable[[], str], scheme: str, axe: str, chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    path.write_text(write(), encoding="utf-8")
    opened = Opened(chromium, path)
    assert opened.run("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme != "light")
    opened.run(OPEN)
    if opened.driver.find_elements(By.ID, "table"):
        wait_for(opened, lambda: opened.run("return document.querySelectorAll('#table tbody tr').length > 0"))
        opened.driver.find_element(By.CSS_SELECTOR, "#table tbody tr").click()  # the detail panel, too
    if scheme == "print":
        features = [{"name": "prefers-color-scheme", "value": "dark"}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
        assert opened.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.run(axe)
    assert opened.driver.execute_async_script(CHECK) == []
