"""A page that cannot be drawn says why, and what to try."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

import conchart
from conchart.outputs.page.comparison import render_comparison
from conchart.outputs.page.page import render
from conchart.questions.compare import compare
from tests.browser.conftest import Opened
from tests.browser.test_page import wait_for
from tests.conftest import ROOT

pytestmark = pytest.mark.timeout(180)  # a browser on a busy machine

CAPTURES = [ROOT / f"captures/round-trips/{name}/input.pcap" for name in ("tls12-middle", "hello-retry-middle")]
Tell = Callable[[str], str]

WITHOUT_STREAMS = "delete window.DecompressionStream"
WITHOUT_RAW_DEFLATE = """
    window.DecompressionStream = class {
        constructor(form) { if (form === 'deflate-raw') throw new TypeError(form) }
    }"""


@pytest.fixture(scope="module")
def page() -> str:
    with conchart.read(CAPTURES[0]) as trace:
        return render(trace)


def block(name: str, page: str) -> tuple[int, int]:
    """Where the text of a block begins and ends."""
    found = re.search(rf'id="{name}"[^>]*>([^<]*)', page)
    assert found
    return found.span(1)


def changed(name: str, page: str, change: Callable[[str], str]) -> str:
    start, end = block(name, page)
    return page[:start] + change(page[start:end]) + page[end:]


@pytest.fixture
def failure_message(chromium: webdriver.Chrome, tmp_path: Path) -> Iterator[Tell]:
    """Open a page that cannot be drawn, and give the message that it shows."""

    def open_page(text: str) -> str:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        chromium.get("about:blank")
        chromium.get(path.as_uri())
        opened = Opened.__new__(Opened)
        opened.driver = chromium
        wait_for(opened, lambda: bool(chromium.find_elements(By.ID, "failed")))
        (message,) = chromium.find_elements(By.ID, "failed")
        assert message.is_displayed()
        assert message.rect["y"] < 100
        assert chromium.find_element(By.TAG_NAME, "h1").is_displayed()
        return message.text

    yield open_page
    chromium.get("about:blank")


@pytest.mark.parametrize("script", [WITHOUT_STREAMS, WITHOUT_RAW_DEFLATE], ids=["no streams", "no raw deflate"])
def test_a_browser_that_cannot_unpack_is_too_old(
    chromium: webdriver.Chrome, failure_message: Tell, page: str, script: str
) -> None:
    command = "Page.addScriptToEvaluateOnNewDocument"
    added = chromium.execute_cdp_cmd(command, {"source": script})
    try:
        message = failure_message(page)
    finally:
        chromium.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    assert "this browser is too old" in message
    assert "Firefox 113" in message


@pytest.mark.parametrize("name", ["data", "data-lanes", "data-phases", "plotly"])
@pytest.mark.parametrize(
    "change",
    [lambda text: text[: len(text) // 2], lambda text: "????" + text[4:], lambda _: "", lambda text: text[::-1]],
    ids=["cut", "no base64", "empty", "other bytes"],
)
def test_damaged_data_is_told(failure_message: Tell, page: str, name: str, change: Callable[[str], str]) -> None:
    message = failure_message(changed(name, page, change))
    assert f'the file is damaged (part "{name.removeprefix("data-")}" cannot be read)' in message
    assert "Copy the file again" in message


@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
def test_a_file_that_was_cut_short_is_told(failure_message: Tell, page: str, share: float) -> None:
    assert "its end is missing" in failure_message(page[: int(len(page) * share)])


def test_a_script_that_fails_is_told(failure_message: Tell, page: str) -> None:
    """Here an element of the page is missing, as after an extension that removes some."""
    message = failure_message(page.replace('id="lanes-note"', 'id="something-else"'))
    assert "its script failed (TypeError" in message
    assert "Open the file in a current version" in message


def test_a_script_that_was_changed_does_not_run_and_is_told(failure_message: Tell, page: str) -> None:
    assert "its script was changed" in failure_message(page.replace("const HEADING = 26;", "const HEADING = 27;"))


def test_a_script_that_the_browser_cannot_parse_is_told(
    chromium: webdriver.Chrome, failure_message: Tell, page: str
) -> None:
    """Newer syntax than the browser knows; without the policy, which would refuse the changed script before."""
    policy = re.compile('<meta http-equiv="Content-Security-Policy"[^>]*>')
    message = failure_message(policy.sub("", page).replace("const HEADING = 26;", "const HEADING = @26;"))
    assert "its script failed (SyntaxError" in message


def test_a_comparison_that_is_damaged_is_told(failure_message: Tell) -> None:
    with conchart.read(CAPTURES[0]) as before, conchart.read(CAPTURES[1]) as after:
        text = render_comparison(compare(before, after))
    assert 'part "data" cannot be read' in failure_message(
        changed("data", text, lambda packed: packed[: len(packed) // 2])
    )


def test_a_page_that_is_drawn_says_nothing(chromium: webdriver.Chrome, page: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    opened = Opened(chromium, path)
    opened.run("setTimeout(() => { throw new Error('later') })")
    wait_for(opened, lambda: bool(opened.console()))
    assert not chromium.find_elements(By.ID, "failed")
