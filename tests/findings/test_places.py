"""Findings of several places: what they say is what the labs did, and frames of both captures show it."""

import json
from pathlib import Path
from typing import Any

import pytest

import conchart
from conchart import Trace
from tests.conftest import ROOT, places_of
from tests.reading.places.distortions import clocks

CAPTURES = ROOT / "captures/places"


def read(case: str) -> Trace:
    return conchart.read(places=places_of(CAPTURES / case))


def found(trace: Trace, finding: str) -> list[dict[str, Any]]:
    query = "SELECT * FROM findings WHERE finding = $finding ORDER BY number"
    relation = trace.fetch_named(query, {"finding": finding})
    return [dict(zip(relation[0], row, strict=True)) for row in relation[1]]


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "finding"), [
    ("whose-fault-2", "host-delay"), ("detour", "asymmetric-path"), ("offload", "offload-artifact"),
    ("clock-set", "clock-step"), ("queue", "queueing-delay"), ("queue", "loss-between"), ("loss", "loss-between"),
    ("firewall", "middlebox-changes"), ("syn-proxy", "middlebox-changes"),
])  # fmt: skip
def test_the_frames_of_a_finding_are_of_more_than_one_place(case: str, finding: str) -> None:
    with read(case) as trace:
        rows = found(trace, finding)
        assert rows
        for row in rows:
            places = trace.fetch(
                "SELECT DISTINCT place FROM place_packets WHERE frame IN (SELECT unnest($frames))",
                {"frames": row["frames"]},
            )
            # Both instants of a host's delay are of its own place: one clock.
            assert len(places) == 1 if finding == "host-delay" else len(places) >= 2, row["frames"]


def test_the_host_that_answers_late_is_the_one_that_the_lab_made_slow() -> None:
    with read("whose-fault-2") as trace:
        (row,) = found(trace, "host-delay")
        assert (row["server_ip"], row["server_port"], row["count"]) == ("10.93.2.30", 8080, 20), "all that were asked"
        assert row["each_ns"] == pytest.approx(74_000_000, abs=1_000_000), "/wait-74"
        assert row["who"] == "the host behind app; the path to it is not the cause"
        assert row["cost_ns"] == row["critical_ns"]
    for case in ("whose-fault-1", "whose-fault-3"):
        with read(case) as trace:
            assert not [row for row in found(trace, "host-delay") if row["server_ip"] == "10.93.2.30"], case


def test_the_step_of_a_clock_is_the_lab_s() -> None:
    truth = json.loads((CAPTURES / "clock-set/truth.json").read_text())["clocks"]["lb"]["pieces"]
    with read("clock-set") as trace:
        (row,) = found(trace, "clock-step")
        assert row["evidence"].startswith("the clock of lb was set back by 1.50 s")
        last_before = truth[0]["frames"][1]
        at_lb = trace.fetch(
            """
            SELECT frame - (SELECT min(first_frame) FROM paths WHERE place = 'lb') + 1 FROM place_packets
            WHERE frame IN (SELECT unnest($frames)) AND place = 'lb' ORDER BY ALL
            """,
            {"frames": row["frames"]},
        )
        ((before,), (after,)) = at_lb
        assert last_before - 20 < before <= last_before < after < last_before + 20


def test_two_milliseconds_out_and_18_back_are_told_only_by_clocks_that_are_right(tmp_path: Path) -> None:
    folder = CAPTURES / "asymmetric"
    truth = json.loads((folder / "truth.json").read_text())["clocks"]
    files = {}
    for place, clock in truth.items():
        (piece,) = clock["pieces"]
        files[place] = str(tmp_path / f"{place}.pcap")
        put_right = clocks().make_clock(zero_at=piece["written_at"], offset_ns=piece["true_at"] - piece["written_at"])
        clocks().distort(folder / f"{place}.pcap", Path(files[place]), put_right)
    with conchart.read(places=files) as trace:
        assert found(trace, "asymmetric-path") == []
    with conchart.read(places=files, trusted_clocks=("lb", "app")) as trace:
        rows = [row for row in found(trace, "asymmetric-path") if row["server_port"] == 443]
        assert [row["evidence"].split(": ")[1].split(" (")[0] for row in rows] == [
            "at least 2.0 ms there, 18.0 ms back"
        ]


def test_a_client_that_waits_for_a_middlebox_is_not_slow() -> None:
    with read("syn-proxy") as trace:
        assert found(trace, "gap-before-clienthello") == []
