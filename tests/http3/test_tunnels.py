"""Tunnels in HTTP/3: what went through is what the client handed to HTTP/3 and got from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import conchart
from tests.conftest import MS, ROOT
from tests.tshark import ask, needs_tshark

FOLDER = ROOT / "captures/http3/tunnels"


def rows(question: str) -> list[tuple[Any, ...]]:
    with conchart.read(FOLDER / "input.pcap", keylog=FOLDER / "keys.log") as trace:
        return trace.sql(question).fetchall()


def test_the_client_counts_the_same() -> None:
    expected = json.loads((FOLDER / "tunnels.json").read_text())
    counted = rows(
        """
        SELECT tunnel, status, tunnel_bytes_client, tunnel_bytes_server, tunnel_datagrams_client,
            tunnel_datagrams_server
        FROM exchanges WHERE tunnel IS NOT NULL ORDER BY number"""
    )
    names = ("tunnel", "status", "sent_bytes", "got_bytes", "sent_datagrams", "got_datagrams")
    assert counted == [tuple(each[name] for name in names) for each in expected]
    assert [kind for kind, *_ in counted] == ["connect-udp", "webtransport", "websocket", "connect-udp"]
    # One HTTP datagram of the client came in a capsule.
    sums = [sum(each[name] for each in expected) for name in ("sent_datagrams", "got_datagrams")]
    assert rows("SELECT datagrams_client, datagrams_server FROM connections") == [(sums[0] - 1, sums[1])]


def test_the_wait_ends_with_the_answer_and_the_open_tunnel_is_idle() -> None:
    """The server opens a tunnel after 30 ms, 20 ms away; the request meanwhile has 50 ms of its own."""
    found = rows(
        """
        SELECT method, status, request_ns, wait_ns, transfer_ns, tunnel_done_at = response_at, tunnel_done_at IS NULL
        FROM exchanges ORDER BY number"""
    )
    for method, status, request_ns, wait, transfer, is_open, is_none in found:
        assert request_ns == 0, "a request ends with its head"
        assert (50 if method == "CONNECT" else 70) * MS <= wait < 80 * MS
        assert is_none == (method == "GET" or status == 403)
        assert is_none or (is_open and transfer > 40 * MS)
    by_kind = dict(rows("SELECT kind, sum(end_at - start_at)::BIGINT FROM phases GROUP BY kind"))
    assert by_kind["idle"] > 300 * MS, "nobody knows who owes what inside"
    assert by_kind.get("transfer", 0) < 10 * MS
    ((charged,),) = rows("SELECT sum(end_at - start_at) FROM phases WHERE exchange = 1 AND kind = 'wait'")
    assert charged > 15 * MS, "the open tunnel takes no time of another request"


@needs_tshark
def test_tshark_sees_as_many_datagram_frames() -> None:
    words: list[str | Path] = ["-r", FOLDER / "input.pcap", "-o", f"tls.keylog_file:{FOLDER / 'keys.log'}"]
    fields = ["-T", "fields", "-e", "udp.dstport", "-e", "quic.frame_type"]
    lines = ask([*words, "-Y", "quic.frame_type", *fields]).splitlines()
    split = [line.split("\t") for line in lines]
    seen = [
        sum(kinds.split(",").count(kind) for port, kinds in split for kind in ("48", "49") if (port == "443") == up)
        for up in (True, False)
    ]
    assert rows("SELECT datagrams_client, datagrams_server FROM connections") == [tuple(seen)]


def test_the_terminal_and_explain_tell_of_them(tmp_path: Path) -> None:
    with conchart.read(FOLDER / "input.pcap", keylog=FOLDER / "keys.log", packets=True) as trace:
        trace.write(tmp_path / "out.txt", options=conchart.DrawOptions(verbose=True))
    text = (tmp_path / "out.txt").read_text()
    assert "tunnel connect-udp, open after 55.0 ms: 1.57 kB of the client (6 datagrams), 1.51 kB of the server" in text
    assert "tunnel connect-udp, not opened" in text


def test_messages_of_a_websocket_are_those_that_its_ends_exchanged() -> None:
    messages = rows("""
        SELECT tunnel, sender, sent.kind, list(bytes ORDER BY sent.number), bool_and(end_at >= start_at)
        FROM exchange_messages AS sent JOIN exchanges
            ON exchanges.stream = sent.stream AND exchanges.number = exchange
        GROUP BY ALL ORDER BY ALL""")
    texts = [50, 100, 150, 200]
    assert messages == [
        ("websocket", side, kind, lengths, True)
        for side in ("client", "server")
        for kind, lengths in (("close", [2]), ("text", texts))
    ]
