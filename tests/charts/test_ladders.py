"""What the page holds of single packets: as much as it shows, and a sentence on the rest."""

import pytest

import conchart
from conchart.outputs.page import ladders
from conchart.outputs.page.page import render
from tests.charts.unpacked import Page
from tests.conftest import ROOT

CAPTURE = ROOT / "captures/reverse-proxy/https-no-keepalive/input.pcap"


def test_every_connection_of_a_small_capture_has_its_ladder() -> None:
    with conchart.read(CAPTURE) as trace:
        page = Page(render(trace))
        ((packets,),) = trace.sql("SELECT count(*) FROM packets").fetchall()
    assert len(page.data["rungs"]["frame"]) == packets
    assert "have a ladder here" not in page.text
    assert "left out" not in page.data["facts"]["name"]


def test_ladders_are_bounded_and_the_page_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladders, "MAX_RUNGS", 5)
    monkeypatch.setattr(ladders, "MAX_PACKETS", 30)
    with conchart.read(CAPTURE) as trace:
        ((total,),) = trace.sql("SELECT count(*) FROM connections").fetchall()
        page = Page(render(trace))
    rungs, silences = page.data["rungs"], page.data["silences"]
    shown = set(rungs["lane"])
    assert 0 < len(shown) < total
    assert all(rungs["lane"].count(lane) == 5 for lane in shown)
    # Those whose users waited the longest come first: the longest of all has a ladder.
    assert page.data["lanes"]["waited_ns"].index(max(page.data["lanes"]["waited_ns"])) in shown
    assert f"{len(shown)} of {total} connections have a ladder here" in page.text
    left = dict(
        zip(
            page.data["facts"]["lane"],
            zip(*(page.data["facts"][c] for c in ("name", "says")), strict=True),
            strict=True,
        )
    )
    assert all("after the first 5: conchart explain CAPTURE" in left[lane][1] for lane in shown)
    assert all(frame in rungs["frame"] for frame in silences["frame"])


def test_figures_of_other_programs_are_told_of_the_exchanges_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladders, "MAX_CLOCKS", 1)
    with conchart.read(ROOT / "captures/reverse-proxy/http-page/input.pcap") as trace:
        ((most,),) = trace.sql("SELECT max(number) FROM exchanges").fetchall()
        page = Page(render(trace))
    assert most > 0
    assert set(page.data["clocks"]["exchange"]) == {0}
