"""The oracle itself: log of the lines and captures say the same; clocks that were put wrong can be put right."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import dpkt
import pytest

from tests.reading.places.distortions import CASES, clocks, distorted, restored
from tests.reading.places.truth import Clock, Truth, records

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
SECOND = 10**9
WITH_DROPS = {"http3", "loss", "nat", "queue", "udp"}
CUT = {"offload"}
SEEDS = [pytest.param(seed, marks=() if seed < 5 else pytest.mark.thorough) for seed in range(20)]


def test_there_are_captures() -> None:
    assert len(CASES) >= 8
    assert {case.name for case in CASES} > WITH_DROPS | CUT


@each_case
def test_every_packet_is_at_both_places_or_in_the_log_of_what_was_dropped(case: Path) -> None:
    truth = Truth(case)
    assert bool(truth.losses) == (case.name in WITH_DROPS)
    for here, there in combinations(truth.captures, 2):
        unaccounted = truth.unaccounted(here, there)
        assert bool(unaccounted) == (case.name in CUT and "client" in (here, there) and "lb" in (here, there)), (
            here,
            there,
        )


@each_case
def test_a_dropped_packet_is_at_no_other_place(case: Path) -> None:
    truth = Truth(case)
    for loss in truth.losses:
        paired = {
            pair.here.frame + truth.first_frame(loss.from_place) - 1
            for pair in truth.place_packets(loss.from_place, loss.to_place)
        }
        assert loss.frame not in paired


@each_case
def test_no_packet_is_faster_than_the_line(case: Path) -> None:
    truth = Truth(case)
    for name, line in truth.document["lines"].items():
        ways = [pair.way_ns for pair in truth.place_packets(*name.split("-"))]
        back_ms = line["delay_ms"] if line["back_ms"] is None else line["back_ms"]
        assert min(way for way in ways if way > 0) >= line["delay_ms"] * 1e6
        assert min(-way for way in ways if way < 0) >= back_ms * 1e6
        least = truth.least_round_trip_ns(*name.split("-"))
        assert least is not None
        assert least <= (line["delay_ms"] + back_ms) * 1e6 + 3_000_000


def test_segments_were_cut_and_joined_where_the_case_says_so() -> None:
    truth = Truth(next(case for case in CASES if case.name == "offload"))
    most = {
        (place, sender): max(
            packet.length
            for packet in truth.packets[place]
            if packet.sender == sender and 443 in dict(packet.flow).values()
        )
        for place in ("client", "lb")
        for sender in ("client", "server")
    }
    assert most["lb", "client"] <= 1_460 < most["client", "client"], "cut on the way to the load balancer"
    assert most["lb", "server"] <= 1_460 < most["client", "server"], "joined on the way back"


def test_an_address_translation_is_seen_in_addresses_and_ports_and_in_nothing_else() -> None:
    truth = Truth(next(case for case in CASES if case.name == "nat"))
    pairs = truth.place_packets("client", "lb")
    assert len(pairs) > 50
    assert all(pair.here.flow.isdisjoint(pair.there.flow) for pair in pairs)
    assert len({pair.here.flow for pair in pairs}) == len({pair.there.flow for pair in pairs}) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_put_wrong_is_put_right_again(seed: int, tmp_path: Path) -> None:
    case = CASES[seed % len(CASES)]
    right = restored(case, tmp_path / "right")
    wrong = distorted(right, seed, tmp_path / "wrong")
    for place, capture in wrong.captures.items():
        clock = wrong.clocks[place]
        clocks().restore(capture, tmp_path / "back", document_of(clock))
        before, after, back = (list(records(path)) for path in (right.captures[place], capture, tmp_path / "back"))
        assert [raw for _, _, raw in before] == [raw for _, _, raw in after] == [raw for _, _, raw in back]
        for frame, ((_, true_at, _), (_, written_at, _), (_, back_at, _)) in enumerate(
            zip(before, after, back, strict=True), start=1
        ):
            reads = clock.reads(true_at)
            assert written_at == reads - reads % clock.resolution_ns
            assert back_at == clock.true(frame, written_at)
            assert 0 <= true_at - back_at <= clock.resolution_ns + 1


def document_of(clock: Clock) -> dict[str, object]:
    """Say of a clock what ``truth.json`` does."""
    return {
        "resolution_ns": clock.resolution_ns,
        "pieces": [
            {
                "true_at": piece.true_at, "written_at": piece.written_at, "drift_ppb": piece.drift_ppb,
                "frames": piece.frames,
            }
            for piece in clock.pieces
        ],
    }  # fmt: skip


def test_a_clock_is_exact_integers(tmp_path: Path) -> None:
    zero_at = 1_700_000_000_123_456_789
    times = [zero_at + since for since in (0, SECOND, 2 * SECOND - 1, 2 * SECOND, 4 * SECOND)]
    with (tmp_path / "right.pcap").open("wb") as file:
        writer = dpkt.pcap.Writer(file, nano=True)
        for _ in times:
            writer.writepkt_time(b"packet", 0)
    header, packet = (tmp_path / "right.pcap").read_bytes()[:24], (tmp_path / "right.pcap").read_bytes()[32:46]
    heads = (at.to_bytes(4, "little") for time in times for at in divmod(time, SECOND))
    text = b"".join(first + second + packet for first, second in zip(heads, heads, strict=True))
    (tmp_path / "right.pcap").write_bytes(header + text)
    clock = clocks().make_clock(
        zero_at=zero_at,
        offset_ns=37_000_000,
        drift_ppb=40_000,
        steps={2 * SECOND: -SECOND},
        slews={3 * SECOND: -60_000},
    )
    document = clocks().distort(tmp_path / "right.pcap", tmp_path / "wrong.pcap", clock)
    assert [at - zero_at for _, at, _ in records(tmp_path / "wrong.pcap")] == [
        37_000_000, 1_037_040_000, 2_037_079_998, 1_037_080_000, 3_037_060_000,
    ]  # fmt: skip
    assert [piece["frames"] for piece in document["pieces"]] == [[1, 3], [4, 4], [5, 5]]
    coarse = clocks().make_clock(zero_at=zero_at, resolution_ns=1_000_000)
    clocks().distort(tmp_path / "right.pcap", tmp_path / "coarse.pcap", coarse)
    assert {at % 1_000_000 for _, at, _ in records(tmp_path / "coarse.pcap")} == {0}
    assert (tmp_path / "coarse.pcap").read_bytes()[:4] == b"\xd4\xc3\xb2\xa1", "a file of microseconds"
