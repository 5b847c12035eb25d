"""What the bytes of the explained connection say."""

import struct
from collections.abc import Sequence

import pytest

from conchart.questions.dissect import Field, HandshakeMessage
from conchart.questions.explain import bytes as of_bytes
from tests.by_hand import tables_of


def test_messages_are_dissected_together_in_their_order_with_the_version_of_their_handshake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested: list[HandshakeMessage] = []

    def dissect(messages: Sequence[HandshakeMessage]) -> list[list[Field]]:
        requested.extend(messages)
        return [[] for _ in messages]

    monkeypatch.setattr(of_bytes, "dissect", dissect)
    tables = tables_of(
        messages=[
            {"stream": 0, "number": number, "handshake": handshake, "kind": kind, "code": code, "sender": sender,
             "body": body, "end_frame": 10 + number}
            for number, handshake, kind, code, sender, body in (
                (2, 0, "ServerHello", 2, "server", "b"), (1, 0, "ClientHello", 1, "client", "a"),
                (3, 0, "Finished", 20, "server", None), (4, 1, "ClientHello", 1, "client", "c"),
            )
        ],
        handshakes=[{"stream": 0, "number": 0, "version": "TLSv1.3"}],
    )  # fmt: skip
    found = of_bytes.dissected(tables, 0)
    assert [(one.name, one.frame, one.sender) for one in found] == [
        ("ClientHello", 11, "client"),
        ("ServerHello", 12, "server"),
        ("ClientHello", 14, "client"),
    ]
    assert [(one.kind, one.version, one.body) for one in requested] == [
        (1, "TLSv1.3", b"a"),
        (2, "TLSv1.3", b"b"),
        (1, None, b"c"),
    ]


def test_without_a_message_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_bytes, "dissect", None)
    assert of_bytes.dissected(tables_of(messages=[{"stream": 1, "number": 0, "body": "a"}]), 0) == []


def test_segments_are_listed_in_the_order_of_their_frames() -> None:
    tcp = struct.pack(">HHIIBBHHH", 40_000, 80, 0, 0, 0x50, 0x02, 0, 0, 0)
    segment = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, bytes(4), bytes(4)) + tcp
    packets = ((0, 7), (0, 2), (0, 3), (1, 4))
    tables = tables_of(packets=[{"stream": stream, "frame": frame, "seen_at": frame} for stream, frame in packets])
    tables.execute("UPDATE packets SET segment = ? WHERE frame <> 3", [segment])
    assert [packet.frame for packet in of_bytes.segments(tables, 0)] == [2, 7]
