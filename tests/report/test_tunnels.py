"""Tunnels that a CONNECT opened."""

from conchart.report.rows import rows
from conchart.report.tunnels import COLUMNS, are_there, describe
from tests.by_hand import Row, tables_of

TUNNEL: Row = {
    "stream": 0, "number": 0, "tunnel": "websocket", "request_at": 1_000_000, "tunnel_done_at": 3_500_000,
    "tunnel_bytes_client": 10, "tunnel_bytes_server": 2_000,
}  # fmt: skip


def sentence(**facts: object) -> str:
    tables = tables_of(exchanges=[TUNNEL | facts])
    assert are_there(tables)
    (row,) = rows(tables, f"SELECT {COLUMNS} FROM exchanges")
    return describe(row)


def test_both_directions_are_told() -> None:
    assert sentence() == "tunnel websocket, open after 2.50 ms: 10 B of the client, 2.00 kB of the server"


def test_datagrams_are_counted_where_there_are_any() -> None:
    assert sentence(tunnel_datagrams_client=2, tunnel_datagrams_server=1) == (
        "tunnel websocket, open after 2.50 ms: 10 B of the client (2 datagrams), 2.00 kB of the server (1 datagram)"
    )
    assert "datagram" not in sentence(tunnel_datagrams_client=0)


def test_a_tunnel_that_was_not_opened_says_so() -> None:
    assert sentence(tunnel_done_at=None) == "tunnel websocket, not opened"


def test_most_captures_have_none() -> None:
    assert not are_there(tables_of(exchanges=[{"stream": 0, "number": 0}]))
