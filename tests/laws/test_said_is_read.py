"""What was said is what is read: the script of a conversation is the oracle."""

from __future__ import annotations

from hypothesis import given

from tests.laws.files import Format
from tests.laws.hello import CIPHERS
from tests.laws.reading import Scratch
from tests.laws.strategies import Conversation, cuts, http_conversations, orders, tls_conversations
from tests.laws.talk import Cut, Order


@given(http_conversations(), cuts(), orders())
def test_http_exchanges_are_those_that_were_said(
    scratch: Scratch, conversation: Conversation, cut: Cut, order: Order
) -> None:
    tables = scratch.read(Format().write(conversation.talk.packets(cut, order)))
    read = [{fact: row[fact] for fact in ("method", "target", "host", "status")} for row in tables.exchanges]
    assert read == conversation.exchanges
    assert {row["protocol"] for row in tables.exchanges} == {"http/1.1"}
    assert not any(row["inferred"] for row in tables.exchanges)


@given(tls_conversations(), cuts(), orders())
def test_a_handshake_is_the_one_that_was_said(
    scratch: Scratch, conversation: Conversation, cut: Cut, order: Order
) -> None:
    tls = conversation.tls
    assert tls is not None
    tables = scratch.read(Format().write(conversation.talk.packets(cut, order)))
    (row,) = tables.handshakes
    assert row["version"] == tls.version
    assert row["sni"] == tls.sni
    assert row["kind"] == tls.kind
    assert row["cipher"] == CIPHERS[tls.cipher]
    assert row["hello_retry"] is tls.retry
    assert row["alpn"] == tls.alpn
    assert row["outcome"] == "complete"
    assert row["certificates"] == (1 if tls.version == "TLSv1.2" and tls.kind == "full" else None)
