"""What the bytes of the explained connection say: the fields of its handshake messages by scapy, its segments by dpkt.

In: a trace that was read with ``explain``. Out: fields and segments, as ``questions.dissect`` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conchart.questions.dissect import Field, HandshakeMessage, dissect
from conchart.store.tables import Tables

if TYPE_CHECKING:
    from conchart.questions.dissect.packets import Packet

_MESSAGES = """
    SELECT messages.kind, messages.code, messages.body, messages.sender, messages.end_frame, handshakes.version
    FROM messages LEFT JOIN handshakes ON handshakes.stream = messages.stream AND handshakes.number = messages.handshake
    WHERE messages.stream = $stream AND body IS NOT NULL ORDER BY messages.number
"""

_SEGMENTS = """
    SELECT frame, seen_at, segment FROM packets WHERE stream = $stream AND segment IS NOT NULL AND frame > $after
    ORDER BY frame LIMIT $most
"""
_AT_ONCE = 20_000
"""Segments that are fetched at once: a connection may have millions, each with its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dissected:
    """A handshake message and its fields."""

    name: str
    frame: int
    sender: str
    fields: list[Field]


def dissected(tables: Tables, stream: int) -> list[Dissected]:
    """Give the fields of each handshake message that can be read.

    Raises:
        MissingToolError: Scapy is not installed.
    """
    found = tables.fetch(_MESSAGES, {"stream": stream})
    messages = [
        HandshakeMessage(kind=code, version=version, body=body, sender=sender)
        for _, code, body, sender, _, version in found
    ]
    return [
        Dissected(name=name, frame=frame, sender=sender, fields=fields)
        for (name, _, _, sender, frame, _), fields in zip(found, dissect(messages) if messages else [], strict=True)
    ]


def segments(tables: Tables, stream: int) -> Iterator[Packet]:
    """Give the segments of the connection, header by header."""
    from conchart.questions.dissect.packets import packet_list

    after = -1
    while found := tables.fetch(_SEGMENTS, {"stream": stream, "after": after, "most": _AT_ONCE}):
        yield from packet_list(found)
        after = found[-1][0]
