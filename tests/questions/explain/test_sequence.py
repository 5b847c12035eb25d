"""The packets of a connection: who sent what, and what it is for."""

from types import SimpleNamespace
from typing import Any

from conchart.labels.units import THIN_SPACE
from conchart.questions.explain.payload_labels import PayloadLabel
from conchart.questions.explain.sequence import LadderRow, rungs, several_places

MS = 1_000_000


def packet(frame: int, sender: str, flags: str, size: int = 0, **facts: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "frame": frame, "seen_at": frame, "sender": sender, "flags": flags, "bytes": size, "seq": None, "ack": None,
        "window_bytes": None, "mark": None, **facts,
    }  # fmt: skip


def connection(*packets: Any, **facts: Any) -> Any:  # noqa: ANN401
    about = {
        "transport": "tcp", "mss_client": 1460, "mss_server": None, "rtt_client_ns": None, "rtt_server_ns": 20 * MS,
        "rst_foreign": False, "rst_frame": None, **facts.pop("about", {}),
    }  # fmt: skip
    defaults: dict[str, Any] = {
        "exchanges": [], "quic_frames": [], "http3_frames": [], "lost_packets": [], "places": [], "seen": [],
    }  # fmt: skip
    return SimpleNamespace(about=about, packets=list(packets), **defaults | facts)


def rung_texts(*packets: Any, carried: Any = None, **facts: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    return [(rung.label, rung.says) for rung in rungs(connection(*packets, **facts), carried or {})]


def test_a_connection_is_opened() -> None:
    opening = (packet(1, "client", "S"), packet(2, "server", "SA"), packet(3, "client", "A", ack=1))
    assert rung_texts(*opening, about={"rtt_client_ns": MS}) == [
        ("SYN", f"The client asks for a connection. It takes segments of up to 1{THIN_SPACE}460 bytes."),
        ("SYN-ACK", "The server accepts. From the capture to the server and back it is 20.0 ms."),
        ("ACK", "The connection is open for the client, 1.00 ms away and back: it may send."),
    ]


def test_an_acknowledgement_names_the_segment_up_to_which_it_covers() -> None:
    packets = (
        packet(1, "server", "A", ack=1),
        packet(4, "client", "PA", 100, seq=1),
        packet(5, "client", "PA", 50, seq=101),
        packet(6, "server", "A", ack=151),
        packet(7, "server", "A", ack=120),
    )
    says = [sentence for _, sentence in rung_texts(*packets)]
    assert says[0] == says[4] == "An acknowledgement: nothing new is said."
    assert says[3] == "An acknowledgement of everything up to frame 5: nothing new is said."


def test_what_was_sent_again_names_the_first_time() -> None:
    packets = (
        packet(4, "client", "PA", 100, seq=1),
        packet(9, "client", "PA", 100, seq=1, mark="retransmit"),
        packet(10, "client", "PA", 30, seq=500, mark="retransmit"),
    )
    assert rung_texts(*packets)[1:] == [
        ("sent again", "The same bytes as frame 4, sent again."),
        ("sent again", "The same as before, sent again."),
    ]


def test_an_end_says_what_it_leaves_without_an_answer() -> None:
    ended = {"ended_frame": 7, "ended_by": "client", "response_at": None, "protocol": "http/1.1"}
    assert rung_texts(packet(7, "client", "FA")) == [("FIN", "The client has sent everything: it closes its side.")]
    assert rung_texts(packet(7, "client", "FA"), exchanges=[ended]) == [
        ("FIN", "The client closes its side, without an answer.")
    ]
    cut = {**ended, "response_at": 5}
    assert rung_texts(packet(7, "client", "R"), exchanges=[cut]) == [
        ("RST", "The client breaks the connection off, in the middle of the response.")
    ]
    assert rung_texts(packet(7, "client", "R"), exchanges=[{**cut, "ended_by": None}])[0][1].endswith("off.")


def test_a_reset_may_be_somebody_elses() -> None:
    foreign = {"rst_foreign": True, "rst_frame": 7}
    says = rung_texts(packet(7, "server", "R"), packet(8, "server", "R"), about=foreign)
    assert says[0][1].startswith("Something on the path, in the server's name, breaks")
    assert says[1][1].startswith("The server breaks")


def test_what_a_packet_carries_is_its_label_and_several_of_the_same_are_counted() -> None:
    here = [
        PayloadLabel(name="Finished", row={"version": "TLSv1.3"}),
        PayloadLabel(name="NewSessionTicket"),
        PayloadLabel(name="NewSessionTicket"),
    ]
    ((label, says),) = rung_texts(packet(4, "server", "PA", 100), carried={4: here})
    assert label == "Finished, 2 × NewSessionTicket"
    assert says.startswith("Finished: a checksum of the whole handshake")
    assert says.count("NewSessionTicket: a ticket") == 1


def test_what_is_sent_again_carries_nothing_anew() -> None:
    for mark in ("retransmit", "duplicate", "keepalive"):
        ((label, _),) = rung_texts(
            packet(4, "server", "PA", 100, mark=mark), carried={4: [PayloadLabel(name="Finished", row={})]}
        )
        assert "Finished" not in label
    ((label, _),) = rung_texts(
        packet(4, "server", "PA", 9, mark="out_of_order"), carried={4: [PayloadLabel(name="Finished", row={})]}
    )
    assert label == "out of order, Finished"


def test_datagrams_and_bytes_of_which_nothing_is_known_are_told_by_their_size() -> None:
    assert rung_texts(packet(1, "client", "", 30), about={"transport": "udp"}) == [("30 bytes", "A datagram.")]
    assert rung_texts(packet(1, "client", "PA", 30)) == [("30 B", "A piece of what is being sent.")]


def step(frame: int, at: int) -> LadderRow:
    return LadderRow(
        frame=frame, seen_at=at, sender="client", flags="PA", bytes=1, seq=None, ack=None, window_bytes=None,
        mark=None, label="x", says="It asks.",
    )  # fmt: skip


def seen(frame: int, *instants: int, flags: str = "PA", size: int = 100, lost_to: str | None = None) -> dict[str, Any]:
    places = ["client", "lb"][: len(instants)]
    return {
        "frame": frame, "seen_at": min(instants), "sender": "client", "flags": flags, "bytes": size, "places": places,
        "instants": list(instants), "lost_to": lost_to,
    }  # fmt: skip


def test_each_packet_says_which_place_saw_it_when_and_those_of_other_places_are_added() -> None:
    rows = [seen(1, 10, 15), seen(200, 5, flags="S", size=0), seen(3, 30, lost_to="lb"), seen(201, 31, size=7)]
    found = several_places(connection(places=["client", "lb"], seen=rows), [step(1, 10), step(3, 30), step(4, 40)])
    assert [(one.frame, one.label, one.seen) for one in found] == [
        (200, "SYN", (("client", 5),)),
        (1, "x", (("client", 10), ("lb", 15))),
        (3, "x", (("client", 30),)),
        (201, "7 B", (("client", 31),)),
        (4, "x", ()),
    ]
    assert (found[2].lost_to, found[2].says) == ("lb", "It asks. It was lost between client and lb.")


def test_where_one_place_captured_packets_are_as_they_are() -> None:
    steps = [step(1, 10)]
    assert several_places(connection(places=["client"], seen=[seen(1, 10)]), steps) is steps
