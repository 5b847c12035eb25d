"""The times that other programs print for an exchange."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from conchart.questions.explain.clocks import clocks
from conchart.report.rows import Row

ABOUT: Row = {"rtt_client_ns": 20, "syn_at": 0, "ack_at": 100}
HANDSHAKE: Row = {"quic_version": None, "hello_at": 110, "ready_at": 200, "version": "TLSv1.3", "kind": "full"}
EXCHANGE: Row = {
    "number": 0, "request_at": 210, "request_done_at": 230, "response_at": 300, "response_done_at": 350,
}  # fmt: skip


def figures(
    *exchanges: Row, about: Row = ABOUT, handshakes: Sequence[Row] = (), most: int | None = None
) -> dict[str, int | None]:
    connection: Any = SimpleNamespace(about=about, handshakes=handshakes, exchanges=list(exchanges or (EXCHANGE,)))
    return {clock.name: clock.took_ns for clock in clocks(connection, most)}


def test_curl_counts_from_the_beginning_and_a_browser_each_step_by_itself() -> None:
    """The client is half of 20 ns away from the capture point, there and back."""
    assert figures(handshakes=[HANDSHAKE]) == {
        "time_connect": 100, "time_appconnect": 200, "time_pretransfer": 210, "time_starttransfer": 320,
        "time_total": 370, "connect": 200, "ssl": 100, "send": 20, "wait": 90, "receive": 50,
        "transum.reqspread": 20, "transum.st": 70, "transum.rspspread": 50, "transum.art": 140,
    }  # fmt: skip


def test_the_servers_finished_of_tls_1_2_has_yet_to_come_to_the_client() -> None:
    old = {**HANDSHAKE, "version": "TLSv1.2"}
    assert figures(handshakes=[old])["time_appconnect"] == 220
    assert figures(handshakes=[{**old, "kind": "ticket"}])["time_appconnect"] == 200


def test_without_tls_and_without_an_opening_nothing_is_told_of_them() -> None:
    found = figures()
    assert (found["time_connect"], found["connect"], found["ssl"], found["time_appconnect"]) == (100, 100, None, None)
    joined = figures(about={**ABOUT, "syn_at": None, "ack_at": None})
    assert (joined["time_connect"], joined["connect"], joined["time_pretransfer"]) == (None, None, 0)
    assert joined["time_total"] == 350 + 20 - 210


def test_later_requests_count_from_their_own_beginning() -> None:
    later = figures({**EXCHANGE, "number": 1}, handshakes=[HANDSHAKE])
    assert (later["time_connect"], later["time_pretransfer"], later["time_total"]) == (None, 0, 160)


def test_quic_is_open_when_its_tls_is() -> None:
    quic = {**HANDSHAKE, "quic_version": "1"}
    found = figures(about={"rtt_client_ns": None, "syn_at": None, "ack_at": None}, handshakes=[quic])
    assert (found["time_connect"], found["connect"], found["ssl"], found["time_total"]) == (90, 90, 90, 240)


def test_only_exchanges_of_which_all_is_known_are_told_and_of_many_the_first() -> None:
    assert figures({**EXCHANGE, "response_at": None}) == {}
    assert figures({**EXCHANGE, "number": 1, "response_done_at": None}, EXCHANGE, most=1) == {}
    assert figures({**EXCHANGE, "request_done_at": None})["send"] == 0
