"""The line of an access log beside its request, in a browser."""

from pathlib import Path

import pytest
from selenium import webdriver

from conchart import read
from conchart.outputs.options import DrawOptions
from conchart.outputs.page.page import write_html
from tests.browser.conftest import Opened
from tests.conftest import ROOT, logs_of
from tests.logs.making import encrypted

pytestmark = pytest.mark.timeout(180)

DETAILS = "return [...document.querySelectorAll('#detail dt')].map(dt => [dt.textContent, dt.nextSibling.textContent])"


def log_lines(page: Opened) -> list[str]:
    return [value.replace("\u00a0", " ") for name, value in page.run(DETAILS) if name == "Access log"]


def test_the_details_of_a_connection_have_its_lines(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    case = ROOT / "captures/logs/three-clocks"
    with read(case / "input.pcap", **logs_of(case)) as trace:
        write_html(trace, tmp_path / "page.html")
    page = Opened(chromium, tmp_path / "page.html")
    page.visit(f"{(tmp_path / 'page.html').as_uri()}#stream=0")
    first, second, third = log_lines(page)
    assert "access.log:1" in first
    assert "log 101 ms, wire 263 ms: set-up of the connection 80.6 ms" in first
    assert "way between client and capture 80.6 ms" in second
    assert "response still in buffers 420 ms" in third
    assert page.console() == []


def test_names_from_the_log_are_marked(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    with encrypted(tmp_path) as trace:
        write_html(trace, tmp_path / "page.html")
    page = Opened(chromium, tmp_path / "page.html")
    page.visit(f"{(tmp_path / 'page.html').as_uri()}#stream=0")
    lines = log_lines(page)
    assert lines
    assert all("from the log" in line and "/wait-" in line for line in lines)


def test_the_page_of_one_connection_has_the_text_of_its_lines(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    case = ROOT / "captures/logs/three-clocks"
    with read(case / "input.pcap", **logs_of(case), explain=0) as trace:
        write_html(trace, tmp_path / "page.html", DrawOptions(explained=0))
    page = Opened(chromium, tmp_path / "page.html")
    page.visit((tmp_path / "page.html").as_uri())
    texts = page.run("return [...document.querySelectorAll('.logged code')].map(line => line.textContent)")
    assert texts == [line for line in (case / "access.log").read_text().splitlines() if line in texts]
    assert len(texts) == len(log_lines(page)) == 3
    assert page.console() == []
