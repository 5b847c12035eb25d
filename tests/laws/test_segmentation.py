"""TCP's cutting and the network's reordering are not the conversation: neither changes a TLS or HTTP fact."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.laws.files import Format
from tests.laws.hello import Kind, Tls
from tests.laws.reading import Row, Scratch
from tests.laws.strategies import Conversation, cuts, http_conversations, orders, tls_conversations
from tests.laws.talk import Cut, Finish, Order, Say, Talk

HANDSHAKE = (
    "number", "version", "cipher", "named_group", "sni", "alpn", "kind", "outcome", "hello_retry", "client_auth",
    "early_data", "false_start", "alert", "certificates", "certificate_bytes", "bytes_client", "bytes_server",
    "round_trips", "ja3", "ja4", "inferred",
)  # fmt: skip
EXCHANGE = (
    "number", "protocol", "method", "host", "target", "status", "request_bytes", "response_bytes",
    "client_keepalive", "server_keepalive", "inferred",
)  # fmt: skip

LONGEST_MOVE_NS = 200_000
"""So much later comes a segment at most that others overtook: up to three places of 50 µs each."""


def facts(rows: list[Row], names: tuple[str, ...]) -> list[Row]:
    """The columns that do not speak of packets or times."""
    return [{name: row[name] for name in names} for row in rows]


@given(tls_conversations(), cuts(), orders())
def test_recutting_and_reordering_change_no_tls_fact(
    scratch: Scratch, conversation: Conversation, cut: Cut, order: Order
) -> None:
    plain = scratch.read(Format().write(conversation.talk.packets()))
    other = scratch.read(Format().write(conversation.talk.packets(cut, order)))
    assert facts(other.handshakes, HANDSHAKE) == facts(plain.handshakes, HANDSHAKE)
    assert facts(other.exchanges, EXCHANGE) == facts(plain.exchanges, EXCHANGE)


@pytest.mark.parametrize("kind", ["full", "session-id", "ticket"])
def test_a_flight_whose_second_half_comes_first_is_the_same_flight(scratch: Scratch, kind: Kind) -> None:
    tls = Tls(version="TLSv1.2", kind=kind, cipher=0xC030)
    messages = tls.messages()
    talk = Talk(steps=[*(Say(who, data) for who, data in messages), Finish("client"), Finish("server")])
    plain = facts(scratch.read(Format().write(talk.packets())).handshakes, HANDSHAKE)
    for _, flight in messages:
        for place in range(1, len(flight), 9):
            halves = (flight[:place], flight[place:])
            packets = talk.packets(
                lambda data, flight=flight, halves=halves: list(halves) if data == flight else [data],  # type: ignore[misc]
                lambda segments: segments[::-1],
            )
            assert facts(scratch.read(Format().write(packets)).handshakes, HANDSHAKE) == plain, (kind, place)


@given(http_conversations(), cuts(), orders())
def test_recutting_and_reordering_change_no_http_fact(
    scratch: Scratch, conversation: Conversation, cut: Cut, order: Order
) -> None:
    plain = scratch.read(Format().write(conversation.talk.packets()))
    other = scratch.read(Format().write(conversation.talk.packets(cut, order)))
    assert facts(other.exchanges, EXCHANGE) == facts(plain.exchanges, EXCHANGE)


@given(http_conversations() | tls_conversations(), cuts())
def test_recutting_moves_no_first_byte(scratch: Scratch, conversation: Conversation, cut: Cut) -> None:
    plain = scratch.read(Format().write(conversation.talk.packets()))
    other = scratch.read(Format().write(conversation.talk.packets(cut)))
    for column in ("hello_at", "server_hello_at"):
        assert [row[column] for row in other.handshakes] == [row[column] for row in plain.handshakes]
    # Early data follows the ClientHello within one message, so its first byte is not the first of a segment.
    early = int(conversation.tls is not None and conversation.tls.kind == "psk-0rtt")
    for column in ("request_at", "response_at"):
        assert [row[column] for row in other.exchanges[early:]] == [row[column] for row in plain.exchanges[early:]]


@given(http_conversations() | tls_conversations(), cuts(), orders())
def test_stream_bytes_are_those_that_were_said(
    scratch: Scratch, conversation: Conversation, cut: Cut, order: Order
) -> None:
    played = conversation.talk.packets(cut, order)
    (row,) = scratch.read(Format().write(played)).connections
    client = conversation.talk.client
    sent = sum(len(packet.payload) for packet in played if packet.source == client)
    received = sum(len(packet.payload) for packet in played if packet.source != client)
    assert (row["bytes_client"], row["bytes_server"]) == (sent, received)
    # What comes later than a round trip behind its successor looks like a copy of something lost.
    if conversation.talk.rtt > LONGEST_MOVE_NS:
        assert (row["retransmits_client"], row["retransmits_server"]) == (0, 0)
    assert (row["missing_client"], row["missing_server"]) == (0, 0)
