"""A choice of packets: what makes no sense is refused, what selects nothing says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import conchart
from conchart.errors import UsageError
from conchart.labels.units import parse_when
from conchart.reading.selection import selection
from tests.conftest import ROOT

CAPTURE = ROOT / "captures/crafted/gap/input.pcap"
"""17 packets in 72 ms."""


@pytest.mark.parametrize(
    ("start", "end"), [("5", "2"), ("1m", "60s"), ("2026-11-20T00:00:00Z", "@5"), (7, 7), ("@3", 2_999_999_999)]
)
def test_a_window_without_an_instant_is_refused(start: int | str, end: int | str) -> None:
    with pytest.raises(UsageError, match="no packet can be selected") as caught:
        conchart.read("is never opened.pcap", start=start, end=end)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("start", "end"), [("1h", "@5"), (5, "2"), ("2", None), (None, "2"), (0, 1)])
def test_other_windows_are_for_the_capture_to_tell(start: int | str | None, end: int | str | None) -> None:
    assert selection(None, start, end, None)


def test_a_choice_is_told_as_options_that_choose_the_same() -> None:
    chosen = selection("host 10.0.0.5 or port 443", "1m2.5s", 1_700_000_000_000_000_007, 3)
    assert str(chosen) == "-f 'host 10.0.0.5 or port 443' -s 62.5 -e @1700000000.000000007 -c 3"
    assert (parse_when("62.5"), parse_when("@1700000000.000000007")) == (chosen.start, chosen.end)
    assert str(selection("", None, None, None)) == ""


def test_the_trace_knows_what_was_chosen() -> None:
    with conchart.read(CAPTURE, CAPTURE, filter="tcp", count=20) as trace:
        rows = trace.sql("SELECT selected, selection FROM captures ORDER BY capture").fetchall()
        assert rows == [(17, "-f tcp -c 20"), (3, "-f tcp -c 20")]
    with conchart.read(CAPTURE) as trace:
        assert trace.sql("SELECT selection FROM captures").fetchall() == [(None,)]


@pytest.mark.parametrize(
    ("choice", "words"), [({"filter": "port 1"}, "-f 'port 1'"), ({"start": "1h", "end": "@5"}, "-s 3600 -e @5")]
)
def test_a_choice_of_nothing_says_so_in_the_place_of_praise(tmp_path: Path, choice: dict[str, str], words: str) -> None:
    with conchart.read(CAPTURE, **choice) as trace:  # type: ignore[arg-type]
        trace.write(tmp_path / "out.txt")
    text = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert f"selected nothing: none of 17 packets fits {words}" in text.splitlines()
    assert "capture complete" not in text
