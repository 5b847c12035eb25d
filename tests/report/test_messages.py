"""Messages of gRPC and WebSocket, exchange by exchange: what page and terminal say is what the table has."""

from pathlib import Path

import conchart
from conchart.report.facts import MESSAGES
from conchart.report.messages import BY_EXCHANGE, are_there
from conchart.report.rows import rows
from tests.conftest import ROOT

CALLS = ROOT / "captures/messages/grpc/input.pcap"
SOCKETS = ROOT / "captures/messages/websocket/input.pcap"


def sentences(path: Path) -> list[str]:
    with conchart.read(path) as trace:
        assert are_there(trace)
        return [MESSAGES.of(row) for row in rows(trace, f"FROM ({BY_EXCHANGE}) ORDER BY stream, number")]


def test_of_a_stream_its_messages_and_its_longest_pause_are_told() -> None:
    texts = sentences(CALLS)
    assert len(texts) == 7
    assert texts[0] == "1 message of the client (7 B), 1 message of the server (14 B)"
    assert texts[1] == (
        "1 message of the client (3 B), 5 messages of the server (75 B), "
        "longest pause between two of the server's 201 ms (frames 30 → 32)"
    )
    assert texts[4] == "1 message of the client (7 B)"


def test_control_frames_are_counted_apart_and_end_no_pause() -> None:
    texts = sentences(SOCKETS)
    assert texts[0] == (
        "6 messages of the server (88 B), 4 control frames, "
        "longest pause between two of the server's 202 ms (frames 12 → 14)"
    )


def test_the_pause_is_that_of_the_query_in_the_documents() -> None:
    with conchart.read(CALLS) as trace:
        ((gap, frame),) = trace.sql(
            """SELECT start_at - lag(end_at) OVER (PARTITION BY stream, exchange ORDER BY number) AS gap_ns, start_frame
            FROM exchange_messages WHERE sender = 'server' AND exchange = 1 ORDER BY gap_ns DESC NULLS LAST LIMIT 1"""
        ).fetchall()
        found = trace.sql(f"SELECT gap_ns, gap_end_frame FROM ({BY_EXCHANGE}) WHERE number = 1").fetchall()
    assert found == [(gap, frame)]


def test_a_capture_without_messages_has_no_column_for_them() -> None:
    with conchart.read(ROOT / "captures/h2c/parallel/input.pcap") as trace:
        assert not are_there(trace)
        assert trace.sql(f"FROM ({BY_EXCHANGE})").fetchall() == []
