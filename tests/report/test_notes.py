"""What is said of single requests and races: the page has the terminal's sentences, and none of its own."""

from pathlib import Path
from typing import Any

import pytest

from conchart import read
from conchart.outputs.page.page import render
from conchart.report.report import report_of
from tests.charts.unpacked import Page
from tests.conftest import ROOT, logs_of

CAPTURES = ROOT / "captures"
IDS = CAPTURES / "traces/ids"
LOGGED = CAPTURES / "logs/three-clocks"
CASES: dict[str, tuple[Path, dict[str, Any]]] = {
    "Race": (CAPTURES / "udp/ip-race-lost", {}),
    "Span": (IDS, {"spans": sorted(IDS.glob("*.otlp.json"))}),
    "Access log": (LOGGED, logs_of(LOGGED)),
}


@pytest.mark.parametrize("title", CASES)
def test_the_page_says_what_the_terminal_says(title: str) -> None:
    case, options = CASES[title]
    with read(case / "input.pcap", **options) as trace:
        with report_of(trace) as report:
            lines = [line.strip() for one in report.details() for line in one.lines]
        notes = Page(render(trace)).data["notes"]
    assert set(notes["title"]) == {title}
    assert sorted(says for says in lines if says in notes["says"]) == sorted(notes["says"]) != []
    assert all((number is None) == (title == "Race") for number in notes["number"])


def test_a_page_without_such_facts_has_no_table_of_notes() -> None:
    with read(CAPTURES / "crafted/gap/input.pcap") as trace:
        assert "notes" not in Page(render(trace)).data


def test_scripts_have_none_of_these_sentences() -> None:
    script = (ROOT / "conchart/outputs/page/scripts/describe.js").read_text(encoding="utf-8")
    for words in ("the race against", "span of", "open after", "set-up of the connection", "on the wire"):
        assert words not in script
        assert any(words in path.read_text(encoding="utf-8") for path in (ROOT / "conchart/report").glob("*.py"))
