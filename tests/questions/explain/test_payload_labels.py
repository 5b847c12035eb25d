"""What a packet carries, in a word or two."""

from types import SimpleNamespace
from typing import Any

import pytest

from conchart.questions.explain.payload_labels import HELLO_RETRY, PayloadLabel, cargo

Row = dict[str, Any]


def exchange(number: int, first: int, done: int, answered: int, ended: int) -> Row:
    return {
        "number": number, "method": "GET", "target": f"/{number}", "answer": "200", "request_at": first,
        "request_done_at": done, "response_at": answered, "response_done_at": ended,
    }  # fmt: skip


def packet(frame: int, sender: str, size: int = 100) -> Row:
    return {"frame": frame, "seen_at": frame, "sender": sender, "bytes": size}


def handshake(**facts: Any) -> Row:  # noqa: ANN401
    return {
        "number": 0, "hello_at": 0, "server_hello_at": 2, "server_done_at": 9, "client_finished_at": 11,
        "version": "TLSv1.3", "kind": "full", "outcome": "complete", "client_auth": False, "early_data": False,
        "early_data_offered": False, "hello_retry": False, **facts,
    }  # fmt: skip


def record(frame: int, sender: str, kind: str = "ApplicationData", cover: str = "sealed", size: int = 100) -> Row:
    return {
        "kind": kind, "sender": sender, "cover": cover, "bytes": size, "start_at": frame, "end_at": frame,
        "end_frame": frame,
    }  # fmt: skip


def carried(**rows: Any) -> dict[int, list[str]]:  # noqa: ANN401
    defaults: dict[str, Any] = dict.fromkeys(
        ("packets", "exchanges", "records", "messages", "handshakes", "contents"), []
    )
    connection: Any = SimpleNamespace(**defaults | rows)
    return {frame: [one.label for one in some] for frame, some in cargo(connection).items() if some}


def test_each_packet_says_which_part_of_a_request_or_response_it_is() -> None:
    packets = [packet(frame, "client") for frame in (1, 2, 3)] + [packet(frame, "server") for frame in (7, 8)]
    assert carried(packets=packets, exchanges=[exchange(0, 1, 3, 7, 8)]) == {
        1: ["request begins: GET /0"],
        2: ["request goes on"],
        3: ["request ends"],
        7: ["response begins: 200"],
        8: ["response ends"],
    }


def test_a_message_in_one_packet_is_whole_and_of_several_exchanges_the_number_is_told() -> None:
    several = [exchange(0, 1, 1, 5, 5), exchange(1, 2, 2, 6, 6)]
    packets = [packet(1, "client"), packet(2, "client"), packet(6, "server"), packet(9, "client", 0)]
    assert carried(packets=packets, exchanges=several) == {
        1: ["request #0: GET /0"],
        2: ["request #1: GET /1"],
        6: ["response #1: 200"],
    }


def test_of_many_in_one_packet_three_are_told() -> None:
    many = [exchange(number, 1, 1, 5, 5) for number in range(5)]
    ((labels),) = carried(packets=[packet(1, "client")], exchanges=many).values()
    assert len(labels) == 4
    assert labels[-1] == "and 2 more"


def message(kind: str, sender: str, frame: int, *, opened: bool = False) -> Row:
    return {"kind": kind, "sender": sender, "end_frame": frame, "opened": opened, "handshake": 0}


def test_messages_that_can_be_read_are_named_in_the_frame_that_ends_them() -> None:
    found = carried(
        handshakes=[handshake()],
        messages=[message("ClientHello", "client", 1), message("ServerHello", "server", 2)],
        records=[record(1, "client", "Handshake", "clear"), record(2, "server", "Handshake", "clear")],
    )
    assert found == {1: ["ClientHello"], 2: ["ServerHello"]}


def test_a_first_server_hello_that_asks_for_another_hello_is_a_retry() -> None:
    hellos = [message("ServerHello", "server", frame) for frame in (2, 4)]
    records = [record(frame, "server", "Handshake", "clear") for frame in (2, 4)]
    found = carried(handshakes=[handshake(hello_retry=True)], messages=hellos, records=records)
    assert found == {2: [HELLO_RETRY], 4: ["ServerHello"]}
    assert carried(handshakes=[handshake()], messages=hellos, records=records)[2] == ["ServerHello"]


@pytest.mark.parametrize(
    ("facts", "frames", "names"),
    [
        ({}, (4, 5, 6, 7), ["EncryptedExtensions", "Certificate", "CertificateVerify", "Finished"]),
        ({"kind": "psk"}, (4, 5), ["EncryptedExtensions", "Finished"]),
        ({}, (4, 5, 6), ["EncryptedExtensions", "handshake message", "Finished"]),
        ({}, (4,), ["EncryptedExtensions … Finished"]),
        ({"outcome": "incomplete"}, (4, 5), ["handshake message", "handshake message"]),
    ],
)
def test_what_tls_1_3_seals_is_named_by_its_place(facts: Row, frames: tuple[int, ...], names: list[str]) -> None:
    found = carried(handshakes=[handshake(**facts)], records=[record(frame, "server") for frame in frames])
    assert [found[frame] for frame in frames] == [[f"({name})"] for name in names]


def test_a_clients_flight_has_what_the_server_asked_for() -> None:
    found = carried(
        handshakes=[handshake(client_auth=True)], records=[record(frame, "client") for frame in (9, 10, 11)]
    )
    assert [found[frame] for frame in (9, 10, 11)] == [["(Certificate)"], ["(CertificateVerify)"], ["(Finished)"]]


@pytest.mark.parametrize(
    ("sent", "facts", "name"),
    [
        (record(20, "server"), {}, "(NewSessionTicket)"),
        (record(20, "client"), {}, "(data)"),
        (record(20, "client", size=24), {}, "(Alert)"),
        (record(20, "server"), {"version": "TLSv1.2"}, "(data)"),
        (record(20, "client", cover="clear"), {}, "data"),
        (record(1, "client"), {"early_data_offered": True}, "(early data)"),
        (record(20, "server", "Alert", "clear"), {}, "Alert"),
        (record(20, "client", "ChangeCipherSpec", "clear"), {}, "ChangeCipherSpec"),
        (record(20, "client", "Handshake"), {"version": "TLSv1.2"}, "(Finished)"),
    ],
)
def test_records_beside_exchanges_are_named_as_far_as_their_size_and_side_tell(
    sent: Row, facts: Row, name: str
) -> None:
    assert carried(handshakes=[handshake(**facts)], records=[sent]) == {sent["end_frame"]: [name]}


def test_a_record_that_is_part_of_a_request_is_told_with_its_packet_alone() -> None:
    found = carried(
        handshakes=[handshake()], records=[record(20, "client")], exchanges=[exchange(0, 20, 20, 30, 30)],
        packets=[packet(20, "client")],
    )  # fmt: skip
    assert found == {20: ["request: GET /0"]}


def test_messages_inside_exchanges_are_named() -> None:
    contents = [{"kind": kind, "end_frame": frame} for frame, kind in enumerate(("text", "message", "ping"))]
    assert carried(contents=contents) == {0: ["text message"], 1: ["message"], 2: ["ping"]}


def test_what_is_hidden_stands_in_brackets() -> None:
    assert PayloadLabel(name="Finished", hidden=True).label == "(Finished)"
    assert (
        PayloadLabel(name="request", part="goes on", number=2, row={"method": None, "target": None}).label
        == "request #2 goes on"
    )
    assert PayloadLabel(name="request", row={"method": None, "target": None}).label == "request"
