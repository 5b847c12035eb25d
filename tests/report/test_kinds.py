"""What was captured, counted by kind."""

from conchart.report.kinds import CaptureFile, files, network, tallies, times
from tests.by_hand import Row, connection, tables_of


def test_files_are_listed_as_they_were_given() -> None:
    captures = [
        {"capture": number, "path": f"{name}.pcap", "format": "pcap", "packets": number, "bytes": 10}
        for number, name in ((1, "a"), (0, "b"))
    ]
    rest: Row = {"format": "pcap", "link_types": None, "resolution_ns": None, "bytes": 10}
    assert files(tables_of(captures=captures)) == (
        CaptureFile(path="b.pcap", packets=0, **rest),
        CaptureFile(path="a.pcap", packets=1, **rest),
    )


def test_connections_are_counted_by_how_they_ended_and_udp_by_whether_somebody_answered() -> None:
    states = ("reset", "complete", "complete", "reset", "complete")
    rows = [connection(stream, state=state) for stream, state in enumerate(states)]
    rows += [
        connection(5, transport="udp"),
        connection(6, transport="udp", state="abandoned"),
        connection(7, transport="udp", state="unanswered"),
        connection(8, transport="udp", state="unanswered", server="224.0.0.251:5353"),
    ]
    assert tallies(tables_of(connections=rows)).connections == (
        ("complete", 3),
        ("UDP unanswered", 2),
        ("reset", 2),
        ("UDP", 1),
        ("UDP to a group", 1),
    )


def test_handshakes_and_requests_are_counted_by_kind() -> None:
    handshakes = [
        {"stream": 0, "number": 0, "version": "TLSv1.3", "kind": "full", "outcome": "complete"},
        {"stream": 1, "number": 0, "version": "TLSv1.3", "kind": "full", "outcome": "complete"},
        {"stream": 2, "number": 0, "version": "TLSv1.2", "outcome": "failed"},
        {"stream": 0, "number": 1, "outcome": "complete"},
        {"stream": 1, "number": 1, "version": "TLSv1.2", "outcome": "failed"},
        {"stream": 3, "number": 0, "outcome": "incomplete"},
    ]
    exchanges = [{"stream": 0, "number": number, "protocol": ("h2", "dns", "h2")[number]} for number in range(3)]
    counted = tallies(tables_of(handshakes=handshakes, exchanges=exchanges))
    assert counted.handshakes == (
        ("TLSv1.2 failed", 2),
        ("TLSv1.3 full", 2),
        ("encrypted renegotiation", 1),
        ("incomplete", 1),
    )
    assert counted.requests == (("h2", 2), ("dns", 1))
    assert counted.connections == ()


def test_kinds_of_time_are_those_that_lasted() -> None:
    rows = [
        {"phase": "wait", "total_ns": 5},
        {"phase": "wait", "kind": "nagle", "detail": "late-ack", "total_ns": 5},
        # Nobody needs other words for a handshake that was lost.
        {"phase": "syn", "kind": "rto", "detail": "syn", "total_ns": 5},
        {"phase": "tls", "total_ns": 0},
    ]
    assert times(tables_of(times=rows)) == {
        ("wait", None, None): 5,
        ("wait", "nagle", "late-ack"): 5,
        ("syn", "rto", None): 5,
    }


def test_the_network_is_counted_in_both_directions() -> None:
    nothing: Row = dict.fromkeys(
        (
            f"{count}_{side}"
            for count in ("retransmits", "out_of_order", "zero_windows")
            for side in ("client", "server")
        ),
        0,
    )
    one = {"syn_retransmits": 1, "retransmits_client": 2, "retransmits_server": 3}
    other = {
        "zero_windows_server": 1, "zero_windows_client": 1, "out_of_order_client": 1, "out_of_order_server": 2,
    }  # fmt: skip
    rows = [connection(0, **nothing | one), connection(1, **nothing | other)]
    assert network(tables_of(connections=rows)) == (
        "1 SYN sent again",
        "5 segments sent again",
        "3 segments out of order",
        "2 full receive windows",
    )
    assert network(tables_of(connections=[connection(0, **nothing)])) == ()
    assert network(tables_of()) == ()
