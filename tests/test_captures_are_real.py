"""The captures of the lessons show what their READMEs claim.

Read with dpkt and with nothing of conchart's, so that these facts can be held against conchart's own findings. Where
tshark is installed, its expert analysis has to agree.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import dpkt
import pytest

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
LAB_CASES = sorted(folder.name for folder in (CAPTURES / "reverse-proxy").iterdir())
CRAFTED_CASES = sorted(folder.name for folder in (CAPTURES / "crafted").iterdir())
ALL_CASES = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in CAPTURES.glob("*/*/input.pcap"))
HANDSHAKE_CASES = [case for case in ALL_CASES if case.startswith("handshakes/")]
MULTIPLEXED_CASES = [case for case in ALL_CASES if case.startswith("multiplexed/")]
ROUND_TRIP_CASES = [case for case in ALL_CASES if case.startswith("round-trips/")]
TLS_CASES = [case for case in LAB_CASES if case.startswith("https")]
MS = 1_000_000
BACKEND_PORT = 8080

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
LINKS = {1: dpkt.ethernet.Ethernet, 276: dpkt.sll2.SLL2}

# TLS 1.3, RFC 8446: record and message types, extensions, and the sizes that encryption does not hide.
CHANGE_CIPHER_SPEC, HANDSHAKE, APPLICATION_DATA = 20, 22, 23
CLIENT_HELLO, SERVER_HELLO = 1, 2
PRE_SHARED_KEY, SUPPORTED_VERSIONS = 41, 43
FINISHED_SIZES = (53, 69)
"""Header 4, SHA-256 or SHA-384 digest, inner content type 1, tag 16."""
ALERT_SIZE = 19

FLAWS = ("retransmission", "out_of_order", "lost_segment", "ack_lost_segment", "duplicate_ack", "zero_window")
FIELDS = (
    "frame.number",
    "tcp.stream",
    "udp.stream",
    "_ws.malformed",
    "tcp.checksum_bad.expert",
    "ip.checksum_bad.expert",
    "tcp.analysis.flags",
    *(f"tcp.analysis.{flaw}" for flaw in FLAWS),
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.reused_ports",
    "tcp.analysis.window_full",
    "tcp.analysis.window_update",
    "tcp.analysis.zero_window_probe",
)
"""What is asked of tshark, once per capture."""

Endpoint = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Segment:
    at: int
    """Nanoseconds since the Unix epoch."""
    sender: Endpoint
    receiver: Endpoint
    tcp: Any
    """dpkt's TCP segment."""

    @property
    def data(self) -> bytes:
        return bytes(self.tcp.data)


@dataclass(frozen=True, kw_only=True)
class Connection:
    client: Endpoint
    server: Endpoint
    segments: list[Segment] = field(default_factory=list)

    @property
    def opened_at(self) -> int:
        return self.segments[0].at

    def sent_by(self, end: Endpoint) -> list[Segment]:
        return [segment for segment in self.segments if segment.sender == end]

    def data_sent_by(self, end: Endpoint) -> list[Segment]:
        return [segment for segment in self.sent_by(end) if segment.data]

    def stream(self, end: Endpoint) -> tuple[bytes, list[tuple[int, int]]]:
        """All bytes that ``end`` sent, in order; and up to which offset they were there at which instant."""
        isn = next(segment.tcp.seq for segment in self.sent_by(end) if segment.tcp.flags & SYN)
        whole, arrivals = b"", []
        for segment in sorted(self.data_sent_by(end), key=lambda each: (each.tcp.seq - isn) % 2**32):
            if (segment.tcp.seq - isn - 1) % 2**32 == len(whole):
                whole += segment.data
                arrivals.append((len(whole), segment.at))
        return whole, arrivals


@dataclass(frozen=True, kw_only=True)
class Record:
    kind: int
    body: bytes
    at: int
    """When its last byte was there."""


def segments(path: Path) -> Iterator[Segment]:
    with path.open("rb") as file:
        reader = dpkt.pcap.Reader(file)
        for at, packet in reader:
            ip = LINKS[reader.datalink()](packet).data
            yield Segment(
                at=round(at * 10**9),
                sender=(dpkt.utils.inet_to_str(ip.src), ip.data.sport),
                receiver=(dpkt.utils.inet_to_str(ip.dst), ip.data.dport),
                tcp=ip.data,
            )


@cache
def connections(case: str) -> list[Connection]:
    """The connections of a capture, told apart by their addresses, ports and initial sequence number."""
    found: list[Connection] = []
    latest: dict[frozenset[Endpoint], Connection] = {}
    for segment in segments(CAPTURES / case / "input.pcap"):
        pair = frozenset((segment.sender, segment.receiver))
        known = latest.get(pair)
        opens = segment.tcp.flags & (SYN | ACK) == SYN
        if known is None or (opens and known.segments[0].tcp.seq != segment.tcp.seq):
            server, client = sorted((segment.sender, segment.receiver), key=lambda end: end[1])
            known = latest[pair] = Connection(client=client, server=server)
            found.append(known)
        known.segments.append(segment)
    return found


def front(case: str) -> list[Connection]:
    return [each for each in connections(f"reverse-proxy/{case}") if each.server[1] != BACKEND_PORT]


def back(case: str) -> list[Connection]:
    return [each for each in connections(f"reverse-proxy/{case}") if each.server[1] == BACKEND_PORT]


def crafted(case: str) -> Connection:
    (connection,) = connections(f"crafted/{case}")
    return connection


def records(connection: Connection, end: Endpoint) -> list[Record]:
    stream, arrivals = connection.stream(end)
    found, offset = [], 0
    while offset < len(stream):
        body_end = offset + 5 + int.from_bytes(stream[offset + 3 : offset + 5], "big")
        at = next(at for until, at in arrivals if until >= body_end)
        found.append(Record(kind=stream[offset], body=stream[offset + 5 : body_end], at=at))
        offset = body_end
    return found


def hello(connection: Connection, end: Endpoint) -> Record:
    """The one ClientHello or ServerHello of ``end``."""
    kind = CLIENT_HELLO if end == connection.client else SERVER_HELLO
    (found,) = (r for r in records(connection, end) if r.kind == HANDSHAKE and r.body[0] == kind)
    return found


def extensions(message: Record) -> dict[int, bytes]:
    """The extensions of a ClientHello or ServerHello, RFC 8446 sections 4.1.2 and 4.1.3."""
    body = message.body[4 + 2 + 32 :]
    body = body[1 + body[0] :]  # session id
    if message.body[0] == CLIENT_HELLO:
        body = body[2 + int.from_bytes(body[:2], "big") :]  # cipher suites
        body = body[1 + body[0] :]  # compression methods
    else:
        body = body[2 + 1 :]  # the one suite, the one method
    found, body = {}, body[2:]
    while body:
        size = int.from_bytes(body[2:4], "big")
        found[int.from_bytes(body[:2], "big")] = body[4 : 4 + size]
        body = body[4 + size :]
    return found


def finished_at(connection: Connection) -> int:
    """When the client's Finished was complete."""
    encrypted = (r for r in records(connection, connection.client) if r.kind == APPLICATION_DATA)
    return next(record.at for record in encrypted if len(record.body) in FINISHED_SIZES)


def answered_at(connection: Connection) -> int:
    """When the last byte of the last response was there."""
    if connection.server[1] != 443:
        return connection.data_sent_by(connection.server)[-1].at
    return max(r.at for r in records(connection, connection.server) if len(r.body) != ALERT_SIZE)


def handshake_share(case: str) -> float:
    """The handshake's part of the time from SYN to the last byte of the response."""
    (connection,) = front(case)
    handshake = finished_at(connection) - hello(connection, connection.client).at
    return handshake / (answered_at(connection) - connection.opened_at)


@cache
def wireshark(case: str) -> dict[str, list[int]]:
    """What tshark says of each frame: the frames for which a field of :data:`FIELDS` has a value."""
    program = shutil.which("tshark")
    if not program:
        pytest.skip("tshark is not installed")
    options = ["-n", "-T", "fields", *(word for name in FIELDS for word in ("-e", name))]
    if case.startswith("crafted/"):
        options += ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    command = [program, *options, "-r", str(CAPTURES / case / "input.pcap")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    return {
        name: [number for number, row in enumerate(rows, start=1) if row[column]] for column, name in enumerate(FIELDS)
    }


# Every capture


def test_all_cases_are_there() -> None:
    assert LAB_CASES == [
        "http",
        "http-page",
        "https",
        "https-keepalive",
        "https-no-keepalive",
        "https-slow-client",
    ]
    assert set(CRAFTED_CASES) >= {
        "gap",
        "midstream",
        "port-reuse",
        "reordering",
        "syn-retransmission",
        "zero-window",
    }


@pytest.mark.parametrize("case", ALL_CASES)
def test_capture_is_small_and_explained(case: str) -> None:
    assert (CAPTURES / case / "input.pcap").stat().st_size < 300_000
    assert "make-captures" in (CAPTURES / case / "README.md").read_text()


@pytest.mark.parametrize("case", [case for case in ALL_CASES if case not in HANDSHAKE_CASES + ROUND_TRIP_CASES])
def test_every_frame_is_sound(case: str) -> None:
    said = wireshark(case)
    assert sorted(said["tcp.stream"] + said["udp.stream"]) == said["frame.number"]
    assert case.startswith("udp/") or not said["udp.stream"]
    assert said["_ws.malformed"] == []


def test_no_private_key_is_committed() -> None:
    marker = b"PRIVATE" + b" KEY-----"
    files = (path for folder in ("captures", "examples") for path in (CAPTURES.parent / folder).rglob("*"))
    assert [path for path in files if path.is_file() and marker in path.read_bytes()] == []


# The laboratory


@pytest.mark.parametrize(
    ("case", "client_connections", "backend_connections"),
    [
        ("http", 1, 1),
        ("http-page", 1, 3),
        ("https", 1, 1),
        ("https-slow-client", 1, 1),
        ("https-no-keepalive", 3, 3),
        ("https-keepalive", 1, 3),
    ],
)
def test_each_leg_has_as_many_connections_as_its_story(
    case: str, client_connections: int, backend_connections: int
) -> None:
    assert (len(front(case)), len(back(case))) == (client_connections, backend_connections)


@pytest.mark.parametrize("case", LAB_CASES)
def test_every_connection_is_whole_and_nothing_was_sent_twice(case: str) -> None:
    for connection in front(case) + back(case):
        assert connection.segments[0].tcp.flags & (SYN | ACK) == SYN
        for end in (connection.client, connection.server):
            assert any(segment.tcp.flags & FIN for segment in connection.sent_by(end))
            assert len(connection.stream(end)[0]) == sum(len(each.data) for each in connection.sent_by(end))


@pytest.mark.parametrize("case", LAB_CASES)
def test_network_of_the_laboratory_is_flawless(case: str) -> None:
    said = wireshark(f"reverse-proxy/{case}")
    assert [said[f"tcp.analysis.{flaw}"] for flaw in FLAWS] == [[]] * len(FLAWS)


@pytest.mark.parametrize("case", LAB_CASES)
def test_backend_speaks_http_1_0_once_per_connection(case: str) -> None:
    for connection in back(case):
        request, response = (connection.stream(end)[0] for end in (connection.client, connection.server))
        assert request.startswith(b"GET /")
        assert request.count(b"GET /") == 1
        head, _, body = response.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.0 200 OK\r\n")
        assert f"Content-Length: {len(body)}".encode() in head


@pytest.mark.parametrize("case", LAB_CASES)
def test_client_is_10_ms_away_and_backend_is_not(case: str) -> None:
    for leg, least, most in ((front(case), 10 * MS, 13 * MS), (back(case), 0, MS)):
        for connection in leg:
            syn, syn_ack, ack = connection.segments[:3]
            assert least <= ack.at - syn.at < most
            assert syn_ack.at - syn.at < MS


@pytest.mark.parametrize("case", LAB_CASES)
def test_each_backend_connection_serves_within_one_client_connection(case: str) -> None:
    for behind in back(case):
        (around,) = (each for each in front(case) if each.opened_at < behind.opened_at < answered_at(each))
        assert answered_at(behind) < answered_at(around)


def test_http_page_keeps_one_client_connection_for_three_requests() -> None:
    (connection,) = front("http-page")
    assert connection.stream(connection.client)[0].count(b" HTTP/1.1\r\n") == 3
    assert connection.stream(connection.server)[0].count(b"HTTP/1.1 200 OK\r\n") == 3


@pytest.mark.parametrize("case", TLS_CASES)
def test_every_handshake_is_full_and_tls_1_3(case: str) -> None:
    for connection in front(case):
        offer, choice = (extensions(hello(connection, end)) for end in (connection.client, connection.server))
        assert choice[SUPPORTED_VERSIONS] == b"\x03\x04"
        assert PRE_SHARED_KEY not in offer
        assert PRE_SHARED_KEY not in choice


@pytest.mark.parametrize("case", TLS_CASES)
def test_backend_hears_nothing_before_the_handshake_ends(case: str) -> None:
    for connection in front(case):
        assert not [each for each in back(case) if connection.opened_at < each.opened_at <= finished_at(connection)]


def test_slow_client_spends_four_fifths_of_its_time_in_the_handshake() -> None:
    assert handshake_share("https-slow-client") >= 0.8


def test_fast_client_spends_half_of_its_time_in_the_handshake_at_most() -> None:
    assert handshake_share("https") <= 0.5


def test_one_line_of_configuration_saves_a_third_of_the_page() -> None:
    before, after = (
        max(map(answered_at, front(case))) - front(case)[0].opened_at
        for case in ("https-no-keepalive", "https-keepalive")
    )
    assert before - after > 100 * MS
    assert after < before * 2 / 3


@pytest.mark.parametrize("case", ["https-no-keepalive", "https-keepalive"])
def test_wget_waits_in_each_handshake_for_a_delayed_acknowledgement(case: str) -> None:
    for connection in front(case):
        change, finished = (
            segment
            for segment in connection.data_sent_by(connection.client)[1:3]  # after the ClientHello
        )
        assert change.data[0] == CHANGE_CIPHER_SPEC
        assert finished.at == finished_at(connection)
        heard = next(each for each in connection.sent_by(connection.server) if each.at > change.at)
        assert not heard.data
        assert heard.at - change.at > 35 * MS
        assert finished.at - heard.at > 10 * MS, "a round trip, as it had to wait for this acknowledgement"


# Handshakes and round trips


def tshark_fields(case: str, *words: str) -> list[list[str]]:
    """What tshark says of a capture, its secrets given, one row per frame."""
    wireshark(case)  # skips where there is none
    folder = CAPTURES / case
    command = ["tshark", "-n", "-2", "-r", str(folder / "input.pcap"), "-T", "fields", "-E", "separator=|", *words]
    command += ["-o", f"tls.keylog_file:{folder / 'keys.log'}"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split("|") for line in lines]


@pytest.mark.parametrize("case", HANDSHAKE_CASES + MULTIPLEXED_CASES)
def test_secrets_are_beside_the_capture(case: str) -> None:
    assert (CAPTURES / case / "keys.log").is_file()


@pytest.mark.parametrize("case", ROUND_TRIP_CASES)
def test_truth_is_beside_the_capture(case: str) -> None:
    assert (CAPTURES / case / "truth.json").is_file()


def test_captures_of_handshakes_stay_small_together() -> None:
    cases = HANDSHAKE_CASES + ROUND_TRIP_CASES
    assert sum((CAPTURES / case / "input.pcap").stat().st_size for case in cases) < 4_000_000


def test_transum_takes_a_session_ticket_for_the_response() -> None:
    case = "handshakes/rustls-nginx-1.3-ticket-or-response"
    transum = ["--enable-protocol", "transum", "-o", "transum.tcp_port_ranges:443", "-Y", "transum.st"]
    said = {
        int(frame): float(s) for frame, s in tshark_fields(case, *transum, "-e", "frame.number", "-e", "transum.st")
    }
    rows = tshark_fields(case, "-Y", "http", "-e", "frame.number", "-e", "frame.time_epoch")
    (request, request_at), (_, response_at) = ((int(frame), float(at)) for frame, at in rows)
    assert said[request] < 0.0005
    assert response_at - request_at > 0.002


# HTTP/2 inside TLS

FRESH = [
    f"multiplexed/{name}"
    for name in (
        "chromium-apache-later",
        "chromium-haproxy-shop",
        "curl-haproxy-upload",
        "go-haproxy-walks",
        "h2load-haproxy-six",
        "java-haproxy-walk",
    )
]
"""Made when the reading of the others stood: they take part in no half."""
HALVED = [case for case in MULTIPLEXED_CASES if case not in FRESH]
HELD_OUT = HALVED[1::2]


def test_captures_of_http_2_stay_small_together() -> None:
    assert sum((CAPTURES / case / "input.pcap").stat().st_size for case in MULTIPLEXED_CASES) < 3_000_000


def test_each_client_meets_each_server_in_both_halves() -> None:
    halves = (HELD_OUT, [case for case in HALVED if case not in HELD_OUT])
    pairs = [{tuple(case.removeprefix("multiplexed/").split("-")[:2]) for case in half} for half in halves]
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) == 5 * 3


@pytest.mark.parametrize("case", MULTIPLEXED_CASES)
def test_readme_says_whether_a_case_is_held_out_or_fresh(case: str) -> None:
    page = (CAPTURES / case / "README.md").read_text()
    assert ("\n**Held out**" in page, "\n**Fresh**" in page) == (case in HELD_OUT, case in FRESH)


# Crafted


@pytest.mark.parametrize("case", CRAFTED_CASES)
def test_crafted_checksums_are_valid(case: str) -> None:
    said = wireshark(f"crafted/{case}")
    assert said["tcp.checksum_bad.expert"] == said["ip.checksum_bad.expert"] == []


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


# UDP


@dataclass(frozen=True, kw_only=True)
class Datagram:
    at: int
    """Nanoseconds since the Unix epoch."""
    sender: Endpoint
    receiver: Endpoint
    data: bytes


def datagrams(case: str) -> list[Datagram]:
    """The UDP datagrams of a capture taken on a TUN interface: packets begin with their IP header."""
    found = []
    with (CAPTURES / "udp" / case / "input.pcap").open("rb") as file:
        for at, packet in dpkt.pcap.Reader(file):
            ip = dpkt.ip.IP(packet)
            if isinstance(ip.data, dpkt.udp.UDP):
                ends = (
                    (dpkt.utils.inet_to_str(ip.src), ip.data.sport),
                    (dpkt.utils.inet_to_str(ip.dst), ip.data.dport),
                )
                found.append(Datagram(at=round(at * 10**9), sender=ends[0], receiver=ends[1], data=bytes(ip.data.data)))
    return found


def questions(case: str, name: str) -> list[tuple[Datagram, Any]]:
    """The DNS messages about a name, in the order of the capture."""
    messages = ((each, dpkt.dns.DNS(each.data)) for each in datagrams(case) if 53 in (each.sender[1], each.receiver[1]))
    return [(each, message) for each, message in messages if message.qd[0].name == name]


@pytest.mark.parametrize(
    ("name", "wait_ms", "rcode"), [("shop.example", 10, 0), ("slow.example", 130, 0), ("none.example", 10, 3)]
)
def test_a_name_is_answered_after_that_time(name: str, wait_ms: int, rcode: int) -> None:
    messages = [(each, message) for each, message in questions("dns-before-http", name) if message.qd[0].type == 1]
    (asked, query), (answered, response) = messages
    assert (query.id, query.qr, response.qr, response.rcode) == (response.id, 0, 1, rcode)
    assert wait_ms * MS <= answered.at - asked.at < (wait_ms + 20) * MS


def test_a_lost_query_is_sent_again_after_one_second() -> None:
    messages = [(each, message) for each, message in questions("dns-before-http", "lost.example") if not message.qr]
    first, again = ([each for each, message in messages if message.qd[0].type == kind] for kind in (1, 28))
    for lost, repeated in (first, again):
        assert lost.data == repeated.data
        assert lost.sender == repeated.sender
        assert 1000 * MS <= repeated.at - lost.at < 1100 * MS


def test_a_long_answer_is_truncated_over_udp() -> None:
    _, (answered, response) = questions("dns-truncated", "long.example")
    assert response.op & dpkt.dns.DNS_TC
    assert len(answered.data) <= 512


def test_quic_begins_with_padded_initial_packets_and_goes_on_in_all_types() -> None:
    sent = [each for each in datagrams("http3") if 443 in (each.sender[1], each.receiver[1])]
    assert len({frozenset((each.sender, each.receiver)) for each in sent}) == 1
    first = [each.data for each in sent[:2]]
    assert all(data[0] & 0xF0 == 0xC0 and data[1:5] == b"\0\0\0\1" and len(data) >= 1200 for data in first)
    assert any(data[0] & 0x80 == 0 for data in (each.data for each in sent))


def test_secrets_of_http3_are_beside_the_capture() -> None:
    assert "CLIENT_TRAFFIC_SECRET_0" in (CAPTURES / "udp/http3/keys.log").read_text()
