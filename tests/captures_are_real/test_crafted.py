"""What was crafted is what Wireshark flags."""

from __future__ import annotations

import pytest

from tests.captures_are_real.seen import (
    ACK,
    CRAFTED_CASES,
    FIN,
    MS,
    RST,
    SYN,
    connections,
    crafted,
    wireshark,
)


@pytest.mark.parametrize("case", CRAFTED_CASES)
def test_crafted_checksums_are_valid(case: str) -> None:
    frames = wireshark(f"crafted/{case}")
    assert frames["tcp.checksum_bad.expert"] == frames["ip.checksum_bad.expert"] == []


@pytest.mark.parametrize(
    ("case", "flag", "frames"),
    [
        ("syn-retransmission", "retransmission", [2]),
        ("zero-window", "zero_window", [12, 14, 16]),
        ("zero-window", "zero_window_probe", [13, 15]),
        ("zero-window", "window_full", [11]),
        ("zero-window", "window_update", [17]),
        ("gap", "lost_segment", [12]),
        ("gap", "ack_lost_segment", [10, 14]),
        ("gap", "retransmission", []),
        ("port-reuse", "reused_ports", [14]),
        ("midstream", "flags", []),
        ("pipelining", "flags", []),
        ("refused", "flags", []),
        ("reordering", "out_of_order", [9]),
        ("reordering", "duplicate_ack", [19, 20, 21]),
        ("reordering", "fast_retransmission", [22]),
    ],
)
def test_wireshark_flags_what_was_crafted(case: str, flag: str, frames: list[int]) -> None:
    assert wireshark(f"crafted/{case}")[f"tcp.analysis.{flag}"] == frames


def test_syn_is_sent_again_after_one_second() -> None:
    first, again, answer = crafted("syn-retransmission").segments[:3]
    assert first.tcp.flags == again.tcp.flags == SYN
    assert first.tcp.seq == again.tcp.seq
    assert again.at - first.at == 1000 * MS
    assert answer.at - again.at == 20 * MS


def test_refused_connections_are_a_syn_and_a_reset() -> None:
    refused = connections("crafted/refused")
    assert [[segment.tcp.flags for segment in each.segments] for each in refused] == [[SYN, RST | ACK]] * 2


def test_window_is_shut_for_one_and_a_half_seconds() -> None:
    connection = crafted("zero-window")
    shut = [segment for segment in connection.sent_by(connection.client) if segment.tcp.win == 0]
    opened = next(segment for segment in connection.sent_by(connection.client) if segment.at > shut[-1].at)
    assert opened.at - shut[0].at == 1500 * MS


def test_gap_lacks_three_segments_that_the_client_acknowledges() -> None:
    connection = crafted("gap")
    captured = sum(len(segment.data) for segment in connection.sent_by(connection.server))
    (goodbye,) = (segment for segment in connection.sent_by(connection.client) if segment.tcp.flags & FIN)
    acknowledged = goodbye.tcp.ack - connection.segments[1].tcp.seq - 1
    assert acknowledged - captured == 3 * 1460


def test_reused_port_is_two_connections() -> None:
    first, second = connections("crafted/port-reuse")
    assert (first.client, first.server) == (second.client, second.server)
    assert first.segments[0].tcp.seq != second.segments[0].tcp.seq
    assert second.opened_at - first.segments[-1].at > 2000 * MS


def test_midstream_has_no_opening_and_one_whole_exchange() -> None:
    connection = crafted("midstream")
    assert not any(segment.tcp.flags & SYN for segment in connection.segments)
    assert connection.segments[0].sender == connection.server
    assert connection.segments[0].data
    (request,) = connection.data_sent_by(connection.client)
    assert request.data.startswith(b"GET /after HTTP/1.1\r\n")


def test_reordering_swaps_two_segments_and_repeats_one() -> None:
    connection = crafted("reordering")
    sequence = [segment.tcp.seq for segment in connection.data_sent_by(connection.server)]
    first_copies = list(dict.fromkeys(sequence))
    assert len(sequence) - len(first_copies) == 1
    assert sum(later < earlier for earlier, later in zip(first_copies, first_copies[1:], strict=False)) == 1
    head, _, body = connection.stream(connection.server)[0].partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head


def test_pipelined_requests_are_all_out_before_the_first_response() -> None:
    connection = crafted("pipelining")
    requests, responses = (connection.data_sent_by(end) for end in (connection.client, connection.server))
    assert requests[-1].at < responses[0].at
    assert connection.stream(connection.client)[0].count(b"GET /") == 3
    assert connection.stream(connection.server)[0].count(b"HTTP/1.1 200 OK\r\n") == 3
