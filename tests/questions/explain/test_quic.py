"""What is said of QUIC's packets where one socket had several connections, one after the other."""

from types import SimpleNamespace
from typing import Any

from conchart.questions.explain.quic import DatagramText, describe_datagrams

FRAMES = 3
"""Of the capture, for each connection: the client's hello, its request, the response."""


def frame(number: int, sender: str, kind: str, **columns: object) -> dict[str, object]:
    one = {"packet_type": "1-RTT", "stream_id": 0, "bytes": 100, "fin": False, "value": None, "text": None} | columns
    return one | {
        "frame": number, "packet": 0, "sender": sender, "kind": kind, "start_byte": 0, "packet_number": 0,
        "packet_bytes": 1_200,
    }  # fmt: skip


def frame_texts(connections: int) -> dict[int, DatagramText]:
    """Connections that each ask once, on stream 0."""
    quic: list[dict[str, object]] = []
    http3: list[dict[str, Any]] = []
    for first in range(1, FRAMES * connections + 1, FRAMES):
        quic += [
            frame(first, "client", "CRYPTO", packet_type="Initial", stream_id=None),
            frame(first + 1, "client", "STREAM"),
            frame(first + 2, "server", "STREAM"),
        ]
        http3 += [
            {"frame": first + 1, "sender": "client", "stream_id": 0, "start_byte": 0, "kind": "HEADERS", "bytes": 17},
            {"frame": first + 2, "sender": "server", "stream_id": 0, "start_byte": 0, "kind": "HEADERS", "bytes": 9},
        ]
    http3.sort(key=lambda row: (row["start_byte"], row["frame"]))
    connection: Any = SimpleNamespace(quic_frames=quic, http3_frames=http3, lost_packets=[], exchanges=[])
    return describe_datagrams(connection)


def test_each_connection_has_streams_of_its_own() -> None:
    found = frame_texts(4)
    words = [found[number].words for number in range(2, FRAMES * 4, FRAMES)]
    assert words == [["1-RTT 0: STREAM 0 (0–100) [HEADERS 17 B]"]] * 4


def test_what_is_said_grows_as_the_connections_do() -> None:
    few, many = (sum(len(one.words[0]) for one in frame_texts(count).values()) for count in (10, 40))
    assert many == 4 * few
