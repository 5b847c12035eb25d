"""What departs from the record is said, and the law's captures hold what they claim. Nothing is counted here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import conchart
from tests.conftest import ROOT
from tests.cost import instructions, made_up
from tests.cost.instructions import STORIES, TIMES, departures, sizes, too_fast


def test_within_three_percent_is_the_same() -> None:
    assert departures({"a": 1_000, "b": 1_000, "none": 0}, {"a": 1_029, "b": 971, "none": 0}) == []


def test_what_departs_is_said_with_both_numbers() -> None:
    before = {"more": 1_000, "less": 1_000, "gone": 1, "none": 0}
    lines = departures(before, {"more": 1_031, "less": 900, "new": 5, "none": 1})
    assert lines == [
        "gone: recorded, and not counted any more",
        "less: 1,000 instructions before, 900 now (-10.0%)",
        "more: 1,000 instructions before, 1,031 now (+3.1%)",
        "new: 5 instructions, not recorded",
        "none: 0 instructions before, 1 now",
    ]


def test_growth_faster_than_the_capture_is_said() -> None:
    counts = {f"{shape}: {n}": n for shape in made_up.SHAPES for n in sizes(shape)}
    assert too_fast(counts) == []
    shape = next(iter(made_up.SHAPES))
    counts[f"{shape}: {sizes(shape)[1]}"] *= TIMES
    (line,) = too_fast(counts)
    assert line.startswith(f"{shape}: 16.00 times the instructions for 4 times as many")


def test_the_record_has_every_capture_of_the_budget(tmp_path: Path) -> None:
    names = {job.name for job in instructions.budget_jobs(tmp_path)}
    for machine, entry in json.loads(instructions.RECORD.read_text()).items():
        assert entry["instructions"].keys() == names, machine
        assert entry["why"], machine
    assert all((ROOT / story / "input.pcap").exists() for story in STORIES)


HELD = {
    "ports of a scan": "SELECT count(*) FROM connections WHERE client_ip = '10.0.0.1'",
    "clients, one after the other": "SELECT count(DISTINCT (client_ip, client_port)) FROM connections",
    "clients, all open at once": "SELECT count_if(closed_at > all(SELECT opened_at FROM connections)) FROM connections",
    "requests, one after the other": "SELECT count(*) FROM exchanges WHERE status = 200",
    "requests, pipelined": "SELECT count(*) FROM exchanges WHERE status = 200",
    "HTTP/2 streams, one after the other": "SELECT count(*) FROM exchanges WHERE status = 200",
    "HTTP/2 streams, all open at once": "SELECT count(*) FROM exchanges WHERE status = 200",
    "sealed records": "SELECT count(*) FROM records WHERE bytes = 105",
    "segments out of order": "SELECT (out_of_order_server) * 2 FROM connections",
    "lookups, one after the other": "SELECT count(*) FROM exchanges WHERE response_done_at IS NOT NULL",
    "lookups, all asked at once": "SELECT count(*) FROM exchanges WHERE response_done_at IS NOT NULL",
}


@pytest.mark.parametrize("shape", made_up.SHAPES)
def test_a_made_up_capture_holds_n_of_its_thing(tmp_path: Path, shape: str) -> None:
    capture = made_up.make(shape, 100, tmp_path / "input.pcap")
    with conchart.read(capture) as trace:
        assert trace.sql(HELD[shape]).fetchall() == [(100,)]
        assert trace.sql("SELECT undecodable, other, duplicates, truncated FROM captures").fetchall() == [
            (0, 0, 0, False)
        ]
