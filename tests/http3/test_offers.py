"""Where HTTP/3 is offered: HTTPS records held against tshark, Alt-Svc, and the findings about offers that are not used.

In: captures/udp; of early data captures/http3.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import conchart
from tests.http3.test_truth import opened
from tests.tshark import ask, needs_tshark

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "udp"
KEYS = {0: "mandatory", 1: "alpn", 2: "no-default-alpn", 3: "port", 4: "ipv4hint", 5: "ech", 6: "ipv6hint"}
VALUES = {
    "mandatory": "mandatory.key",
    "alpn": "alpn",
    "port": "port",
    "ipv4hint": "ipv4hint.ip",
    "ipv6hint": "ipv6hint.ip",
}


@needs_tshark
@pytest.mark.parametrize("case", ["services", "http3-blocked"])
def test_tshark_reads_the_same_service_bindings(case: str) -> None:
    capture = CAPTURES / case / "input.pcap"
    names = ["svcpriority", "targetname", "svcparam.key", *(f"svcparam.{value}" for value in VALUES.values())]
    fields = ["frame.number", *(f"dns.svcb.{name}" for name in names)]
    words: list[str | Path] = ["-r", capture, "-Y", "dns.svcb.svcpriority", "-T", "fields", "-E", "aggregator=;"]
    lines = ask([*words, *(word for field in fields for word in ("-e", field))]).splitlines()
    expected = {}
    for line in lines:
        frame, priority, target, keys, *cells = line.split("\t")
        values = dict(zip(VALUES, cells, strict=True))
        expected[int(frame)] = [f"{priority} {'.' if target == '<Root>' else target}"]
        for key in keys.split(";") if keys else []:
            name = KEYS[int(key)]
            value = values.get(name, "").replace(";", ",")
            if name == "mandatory":
                value = ",".join(KEYS[int(one)] for one in value.split(","))
            expected[int(frame)].append(f"{name}={value}" if value else name)
    with conchart.read(capture) as trace:
        ours = trace.sql("SELECT response_frame, alternatives FROM exchanges WHERE method = 'HTTPS'").fetchall()
    assert {frame: " ".join(words) for frame, words in expected.items()} == {frame: each for frame, (each,) in ours}


def test_alt_svc_is_read_where_there_are_keys_and_nowhere_else() -> None:
    case = CAPTURES / "http3-offered"
    question = "SELECT DISTINCT protocol, alternatives FROM exchanges WHERE alternatives IS NOT NULL"
    with conchart.read(case / "input.pcap", keylog=case / "keys.log") as trace:
        assert trace.sql(question).fetchall() == [("h2", ['h3=":443"; ma=2592000'])]
    with conchart.read(case / "input.pcap") as trace:
        assert trace.sql(question).fetchall() == []


@needs_tshark
def test_altsvc_frames_are_those_of_tshark_and_belong_to_the_next_response() -> None:
    """The server sends no Alt-Svc field: each offer came in a frame of its connection, or of the request's stream."""
    case = CAPTURES / "http3-altsvc"
    words: list[str | Path] = ["-r", case / "input.pcap", "-o", f"tls.keylog_file:{case / 'keys.log'}"]
    fields = ("tcp.stream", "http2.altsvc.origin", "http2.altsvc.field_value")
    lines = ask([*words, "-Y", "http2.type == 10", "-T", "fields", *(word for it in fields for word in ("-e", it))])
    expected = [tuple(line.split("\t")) for line in lines.splitlines()]
    assert {origin for _, origin, _ in expected} == {"https://shop.example", ""}
    with conchart.read(case / "input.pcap", keylog=case / "keys.log") as trace:
        ours = trace.sql("""
            SELECT transport_stream::VARCHAR, unnest(alternatives)
            FROM exchanges JOIN connections USING (stream) WHERE protocol = 'h2' ORDER BY stream, number""").fetchall()
        ((count, cost_ns, streams),) = trace.sql("""
            SELECT count, cost_ns, streams FROM findings WHERE finding = 'h3-not-used'""").fetchall()
        _, *later = trace.sql("""
            SELECT stream, ack_at - syn_at FROM connections WHERE transport = 'tcp' ORDER BY syn_at""").fetchall()
    assert ours == [(stream, value) for stream, _, value in expected]
    assert len(ours) == 10
    # The first connection told the client; each later one costs its round trip.
    assert (count, sorted(streams)) == (4, sorted(stream for stream, _ in later))
    assert cost_ns == pytest.approx(sum(waited for _, waited in later), rel=0.02)


def test_a_blocked_port_costs_what_the_browser_waited_for_it() -> None:
    case = CAPTURES / "http3-blocked"
    with conchart.read(case / "input.pcap") as trace:
        (found,) = trace.sql("""
            SELECT cost_ns, vain_ns, frames FROM findings WHERE finding = 'udp-blocked-fallback'""").fetchall()
        (waited,) = trace.sql("""
            SELECT syn_at - hello_at, [hello_frame, first_frame]
            FROM connections, (SELECT hello_at, hello_frame FROM handshakes WHERE quic_version IS NOT NULL)
            WHERE syn_at > hello_at""").fetchall()
    # The second try, beside the TCP connection that the browser has by then, costs nothing.
    assert found == (waited[0], waited[0], waited[1])


def test_an_offer_that_is_not_used_costs_a_round_trip_a_connection() -> None:
    case = CAPTURES / "http3-offered"
    with conchart.read(case / "input.pcap", keylog=case / "keys.log") as trace:
        ((count, cost_ns),) = trace.sql("""
            SELECT count, cost_ns FROM findings WHERE finding = 'h3-not-used'""").fetchall()
        ((tcp_ns,),) = trace.sql("""
            SELECT sum(ack_at - syn_at) FROM (
                SELECT * FROM connections WHERE transport = 'tcp' ORDER BY syn_at OFFSET 1)""").fetchall()
    assert count == 4
    assert cost_ns == pytest.approx(tcp_ns, rel=0.02)


@pytest.mark.parametrize(
    ("case", "allowed", "unused"),
    [("resumed", [True] * 4, 3), ("early", [True] * 2, 0), ("early-refused", [True] * 2, 0), ("one", [True], 0)],
)
def test_tickets_allow_early_data_and_who_does_not_use_it_is_told(case: str, allowed: list[bool], unused: int) -> None:
    with opened(case) as trace:
        rows = trace.sql("SELECT early_data_allowed FROM handshakes ORDER BY stream").fetchall()
        counts = trace.sql("SELECT count FROM findings WHERE finding = '0rtt-unused'").fetchall()
    assert [each for (each,) in rows] == allowed
    assert counts == ([(unused,)] if unused else [])
