"""Where a capture was taken, from round trips and hop limits."""

from __future__ import annotations

import pytest

from conchart.analysis.vantage import locate
from tests.conftest import empty_trace

MS = 1_000_000
Connection = tuple[int, int, int, int]
"""Round trips to client and server in ns, hop limits of client and server."""


def seen(*connections: Connection, override: str | None = None) -> tuple[str | None, list[str | None]]:
    """The vantage of the capture, and of each connection."""
    with empty_trace() as trace:
        trace.execute("INSERT INTO captures (capture) VALUES (0)")
        for stream, (client_ns, server_ns, ttl_client, ttl_server) in enumerate(connections):
            trace.execute(
                "INSERT INTO connections (stream, capture, client_ip, server_ip, syn_at, syn_ack_at, ack_at, "
                "rtt_client_ns, rtt_server_ns, ttl_client, ttl_server) VALUES "
                f"({stream}, 0, '10.0.0.1', '10.0.0.{stream % 100 // 10 + 2}', 1, 2, 3, "
                f"{client_ns}, {server_ns}, {ttl_client}, {ttl_server})"
            )
        locate(trace, override)  # type: ignore[arg-type]
        whole = trace.sql("SELECT vantage FROM captures").fetchall()[0][0]
        return whole, [row[0] for row in trace.sql("SELECT vantage FROM connections ORDER BY stream").fetchall()]


@pytest.mark.parametrize(
    ("connection", "expected"),
    [
        pytest.param((60_000, 30 * MS, 64, 57), "client", id="the client answers at once"),
        pytest.param((30 * MS, 60_000, 49, 64), "server", id="the server answers at once"),
        pytest.param((10 * MS, 30 * MS, 63, 63), "middle", id="both are far"),
        pytest.param((5 * MS, 80 * MS, 63, 50), "middle", id="a client that is near is not here"),
        pytest.param((400_000, 20 * MS, 63, 50), "middle", id="a router stands before the client"),
        pytest.param((400_000, 20 * MS, 64, 50), "client", id="a slow client without a router"),
        pytest.param((30_000, 20 * MS, 63, 50), "client", id="a container behind the host's bridge"),
        pytest.param((20_000, 40_000, 128, 63), "client", id="all is near, a router tells"),
        pytest.param((20_000, 40_000, 64, 64), None, id="loopback tells nothing"),
    ],
)
def test_one_connection(connection: Connection, expected: str | None) -> None:
    assert seen(connection) == (expected, [expected])


def test_the_least_of_a_pairs_connections_counts() -> None:
    slow, quick = (25 * MS, 30 * MS, 64, 60), (50_000, 30 * MS, 64, 60)
    assert seen(slow, quick, slow) == ("client", ["client"] * 3)


def test_a_proxy_is_both() -> None:
    front, back = (30 * MS, 40_000, 60, 64), (40_000, 10 * MS, 64, 61)
    assert seen(*[front] * 10, back) == ("mixed", ["server"] * 10 + ["client"])


def test_who_knows_better_is_believed() -> None:
    assert seen((60_000, 30 * MS, 64, 57), override="middle") == ("middle", ["middle"])
