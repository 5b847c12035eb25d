"""The share of TLS connections that the given keys decrypt."""

from conchart.analysis.keys import cover
from tests.by_hand import connection, tables_of


def test_connections_are_counted_by_server_and_by_what_was_decrypted() -> None:
    tables = tables_of(
        connections=[connection(stream, server=f"10.0.0.{9 - (stream == 3)}:443") for stream in range(6)],
        handshakes=[
            {"stream": 0, "number": 0, "keys": "all"},
            # A renegotiation has the keys of the handshake before it.
            {"stream": 0, "number": 1, "keys": "none"},
            {"stream": 1, "number": 0, "keys": "all"},
            {"stream": 2, "number": 0, "keys": "partial", "missing_keys": "SERVER_TRAFFIC_SECRET_0"},
            {"stream": 3, "number": 0, "keys": "all"},
            {"stream": 4, "number": 0, "keys": "none"},
            # No keys were given for it.
            {"stream": 5, "number": 0},
        ],
    )
    cover(tables)
    assert tables.fetch("FROM coverage ORDER BY first_stream") == [
        (0, "10.0.0.9", 443, "all", None, 2),
        (2, "10.0.0.9", 443, "partial", "SERVER_TRAFFIC_SECRET_0", 1),
        (3, "10.0.0.8", 443, "all", None, 1),
        (4, "10.0.0.9", 443, "none", None, 1),
    ]


def test_without_keys_there_is_no_row() -> None:
    tables = tables_of(connections=[connection(0)], handshakes=[{"stream": 0, "number": 0}])
    cover(tables)
    assert tables.count("coverage") == 0
