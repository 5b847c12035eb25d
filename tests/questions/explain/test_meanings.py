"""What each step of a connection is for."""

from typing import Any

import pytest

from conchart.questions.explain.meanings import meaning
from conchart.questions.explain.payload_labels import HELLO_RETRY, PayloadLabel

FAILED = {"outcome": "failed", "alert": "unknown_ca", "alert_by": "client"}


@pytest.mark.parametrize(
    ("name", "row", "sender", "words"),
    [
        ("ClientHello", {}, "client", "Now it waits for the server's choice: a round trip."),
        ("ClientHello", {"sni": "shop.example"}, "client", "names the server it wants (shop.example)"),
        ("ClientHello", {"key_shares": "x25519"}, "client", "sends key shares (x25519): one that fits saves"),
        ("ClientHello", {"resumption_offered": "psk"}, "client", "offers to resume an earlier session"),
        ("ServerHello", {"version": "TLSv1.3", "cipher": "AES"}, "server", "chooses TLSv1.3, AES. From here on"),
        ("ServerHello", {"kind": "ticket"}, "server", "It takes up the offered session"),
        ("ServerHello", {}, "server", "chooses what it likes of it."),
        (HELLO_RETRY, {}, "server", "the client must begin again"),
        ("Certificate", {"certificates": 2, "certificate_bytes": 2_400}, "server", "2 certificates of 2.40 kB."),
        ("Certificate", {}, "client", "Who the client is"),
        ("CertificateVerify", {}, "client", "the client has the key"),
        ("ChangeCipherSpec", {"version": "TLSv1.2"}, "client", "What the client sends after this is encrypted."),
        ("ChangeCipherSpec", {"version": "TLSv1.3"}, "client", "It means nothing any more"),
        ("Finished", {"version": "TLSv1.3"}, "client", "may send its request at once"),
        ("Finished", {"version": "TLSv1.2", "kind": "full"}, "server", "Now both may send"),
        ("Finished", {"version": "TLSv1.2", "kind": "ticket"}, "client", "Now both may send"),
        ("Alert", FAILED, "client", "handshake: unknown_ca."),
        ("Alert", FAILED, "server", "an alert says which"),
    ],
)  # fmt: skip
def test_a_handshake_message_says_what_this_one_says(name: str, row: dict[str, Any], sender: str, words: str) -> None:
    assert words in meaning(PayloadLabel(name=name, row=row), sender)


def test_a_finished_before_the_last_one_says_no_more() -> None:
    for row, sender in (
        ({"version": "TLSv1.2", "kind": "full"}, "client"),
        ({"version": "TLSv1.2", "kind": "ticket"}, "server"),
        ({"version": "TLSv1.3"}, "server"),
    ):
        assert meaning(PayloadLabel(name="Finished", row=row), sender).endswith("the same.")
    assert "encrypted" not in meaning(PayloadLabel(name="ServerHello", row={"version": "TLSv1.2"}), "server")


@pytest.mark.parametrize(
    ("name", "part", "text"),
    [
        ("request", "", "With its last byte, the wait begins."),
        ("request", "begins", "The client asks."),
        ("request", "goes on", ""),
        ("request", "ends", "With its last byte, the wait begins."),
        ("response", "", "With its first byte, the wait is over."),
        ("response", "begins", "With its first byte, the wait is over."),
        ("response", "goes on", ""),
        ("response", "ends", ""),
    ],
)
def test_the_wait_lies_between_the_last_byte_of_a_request_and_the_first_of_its_response(
    name: str, part: str, text: str
) -> None:
    row = {"protocol": "http/1.1", "method": "GET", "needless": False}
    assert meaning(PayloadLabel(name=name, part=part, row=row), "client") == text


def test_what_servers_do_not_answer_is_not_waited_for() -> None:
    row = {"protocol": "mysql", "method": "Quit", "needless": True}
    assert meaning(PayloadLabel(name="request", row=row), "client") == "Nothing answers it."
    assert meaning(PayloadLabel(name="request", row=None), "client") == "With its last byte, the wait begins."


def test_of_what_has_no_meaning_nothing_is_said() -> None:
    assert meaning(PayloadLabel(name="application data"), "client") == ""
    assert meaning(PayloadLabel(name="KeyUpdate"), "client") != ""
