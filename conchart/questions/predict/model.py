"""The captured connections and exchanges in the form that the replay needs.

In: the tables of a trace. Out: :class:`Talk`. Instants are carried to the client's end of each connection: what it sent
left there half a round trip before it passed the capture point, what it got arrived half a round trip after.
"""

from dataclasses import dataclass, field
from typing import Any

from conchart.store.sql import ASKING, OPENING
from conchart.store.tables import Tables

Row = dict[str, Any]

NEAR_NS = 500_000
"""Up to here a round trip between capture point and client is what the client takes to react, not distance."""
DEFAULT_MSS = 1460
"""Where the SYNs are not in the capture: Ethernet's 1,500 bytes less two headers."""


@dataclass(slots=True, kw_only=True, eq=False)
class Connection:
    """A connection that was captured."""

    stream: int
    client: object
    """Number of the machine, else its address."""
    server: tuple[str, int]
    name: str
    users: bool
    """It is one of a user's, not of a proxy's to its backend."""
    rtt_ns: int | None
    mss: int
    syn_at: int | None
    """The first thing of its opening; NULL where that is not in the capture."""
    accepted_at: int | None
    hello_at: int | None
    """Only of a handshake that opens it."""
    ready_at: int | None
    """Its first request could be sent."""
    version: str
    kind: str
    round_trips: int | None
    compute_ns: int
    """What both ends computed in the handshake."""
    server_compute_ns: int
    complete: bool
    multiplexed: bool = False
    held: list[tuple[int, int, bool]] = field(default_factory=list)
    """Small segments held back: from, to, as the capture point saw them; and whether the acknowledgement was delayed,
    or only far away."""
    carried_ns: int = 0
    """Half a round trip from the capture point to the client."""
    exchanges: list["Exchange"] = field(default_factory=list)

    @property
    def resumed(self) -> bool:
        """Its handshake resumed a session."""
        return self.kind not in ("", "full")


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """A request and its response."""

    connection: Connection
    number: int
    place: int = 0
    """Among those of its connection, in the order in which they began."""
    requested_at: int
    sent_at: int
    answered_at: int
    done_at: int
    request_bytes: int
    response_bytes: int
    is_timed: bool
    """All of its times are known."""
    front: "Exchange | None" = None
    """What caused it."""
    backs: list["Exchange"] = field(default_factory=list)
    """What it caused, in the order of their ends."""


@dataclass(slots=True, kw_only=True)
class Talk:
    """All that was captured."""

    connections: list[Connection]
    unread: int
    """Requests of which not even the beginning is known."""


_CONNECTIONS = f"""
    WITH first AS (SELECT stream, min(request_at) AS request_at, bool_or(protocol IN ('h2', 'grpc')) AS multiplexed
            FROM exchanges WHERE {ASKING} GROUP BY stream),
        opening AS (SELECT handshakes.* FROM handshakes LEFT JOIN first USING (stream)
            WHERE number = 0 AND hello_at IS NOT NULL AND coalesce(hello_at <= request_at, true)),
        accepting AS (SELECT stream, max(end_at) AS accepted_at FROM phases WHERE kind = 'syn' GROUP BY stream)
    SELECT stream, coalesce(node::VARCHAR, client_ip) AS client, server_ip, server_port,
        coalesce(server_name, '') AS name, behalf IS NULL AND coalesce(role, 'server') <> 'closed' AS users,
        rtt_client_ns, rtt_server_ns, coalesce(least(mss_client, mss_server), $mss) AS mss,
        CASE WHEN transport = 'tcp' THEN syn_at ELSE hello_at END AS syn,
        CASE WHEN transport = 'tcp' THEN accepted_at ELSE hello_at END AS accepted,
        hello_at AS hello, ready_at AS ready, coalesce(version, '') AS version, coalesce(kind, '') AS kind, round_trips,
        coalesce(client_compute_ns, 0) + coalesce(server_compute_ns, 0) AS compute_ns,
        coalesce(server_compute_ns, 0) AS server_compute_ns,
        coalesce(outcome = 'complete', false) AS complete, coalesce(multiplexed, false) AS multiplexed,
        coalesce(false_start, false) AS false_start
    FROM connections LEFT JOIN first USING (stream) LEFT JOIN opening USING (stream) LEFT JOIN accepting USING (stream)
    LEFT JOIN (SELECT server_ip, server_port, role FROM servers) USING (server_ip, server_port)
    LEFT JOIN (SELECT stream, true AS behalf FROM on_behalf WHERE exchange = {OPENING}) USING (stream)
    LEFT JOIN (SELECT address AS client_ip, node FROM nodes WHERE port IS NULL) USING (client_ip)
    ORDER BY stream"""

_EXCHANGES = f"""
    SELECT stream, number, request_at, coalesce(request_done_at, request_at),
        coalesce(response_at, response_done_at, request_done_at, request_at),
        coalesce(response_done_at, response_at, request_done_at, request_at),
        coalesce(request_bytes, 0), coalesce(response_bytes, 0),
        response_at IS NOT NULL AND response_done_at IS NOT NULL
    FROM exchanges WHERE request_at IS NOT NULL AND {ASKING} ORDER BY stream, number"""

_HELD = """
    SELECT stream, start_at, end_at, coalesce(detail, kind) = 'delayed-ack' FROM stalls
    WHERE kind IN ('nagle', 'delayed-ack') AND end_at > start_at ORDER BY stream, start_at"""
_LINKS = """
    SELECT front_stream, front_exchange, back_stream, back_exchange FROM links
    WHERE front_exchange IS NOT NULL AND back_exchange IS NOT NULL ORDER BY ALL"""


def read_talk(tables: Tables) -> Talk:
    """Read what was captured."""
    relation = tables.sql(_CONNECTIONS, {"mss": DEFAULT_MSS})
    names = relation.columns
    connections = {row[0]: _connection(dict(zip(names, row, strict=True))) for row in relation.fetchall()}
    exchanges = {}
    for stream, number, requested, sent, answered, done, *others in tables.fetch(_EXCHANGES):
        connection = connections[stream]
        away = connection.carried_ns
        exchange = Exchange(
            connection=connection,
            number=number,
            requested_at=requested - away,
            sent_at=max(sent, requested) - away,
            answered_at=max(answered, requested) + away,
            done_at=max(done, answered, sent, requested) + away,
            request_bytes=others[0],
            response_bytes=others[1],
            is_timed=others[2],
        )
        exchanges[stream, number] = exchange
        connection.exchanges.append(exchange)
    for connection in connections.values():
        connection.exchanges.sort(key=lambda exchange: exchange.requested_at)
        for place, exchange in enumerate(connection.exchanges):
            exchange.place = place
    for stream, start_at, end_at, delayed in tables.fetch(_HELD):
        connections[stream].held.append((start_at, end_at, delayed))
    _link(tables, exchanges)
    ((unread,),) = tables.fetch("SELECT count(*) FROM exchanges WHERE request_at IS NULL")
    return Talk(connections=list(connections.values()), unread=unread)


def _connection(row: Row) -> Connection:
    near, far, syn, hello, ready = (
        row.pop(name) for name in ("rtt_client_ns", "rtt_server_ns", "syn", "hello", "ready")
    )
    accepted, false_start = row.pop("accepted"), row.pop("false_start")
    away = near // 2 if near is not None and near > NEAR_NS else 0
    if syn is None or accepted is None:
        syn = accepted = hello = None
    # The server's Finished arrives, or the client's leaves: before TLS 1.3 it is the server's, but with False Start.
    arrives = away if row["version"] != "TLSv1.3" and not false_start else -away
    if hello is None:
        ready_at = None if accepted is None else accepted - away
    else:
        ready_at = ready + arrives if ready is not None and row["complete"] else None
    server = (row.pop("server_ip"), row.pop("server_port"))
    return Connection(
        **row,
        server=server,
        rtt_ns=None if near is None or far is None else near + far,
        syn_at=None if syn is None else syn - away,
        accepted_at=None if accepted is None else accepted - away,
        hello_at=None if hello is None else hello - away,
        ready_at=ready_at,
        carried_ns=away,
    )


def _link(tables: Tables, exchanges: dict[tuple[int, int], Exchange]) -> None:
    for front_stream, front_exchange, back_stream, back_exchange in tables.fetch(_LINKS):
        front = exchanges.get((front_stream, front_exchange))
        back = exchanges.get((back_stream, back_exchange))
        # A back that begins before its front would be waited for by what it waits for.
        if front and back and back.requested_at >= front.requested_at and back.front is None:
            back.front = front
            front.backs.append(back)
    for exchange in exchanges.values():
        exchange.backs.sort(key=lambda back: back.done_at)
