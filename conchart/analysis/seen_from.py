"""Seen from an end: the instants of a trace as the client, or the server, of each connection saw them.

In: the tables as the core filled them, with instants as seen at the capture point. Out: the same tables with instants
and durations of another viewpoint; ``captures.seen_from``. It comes before everything else that is worked out, so that
findings, hops, page and exports all say the same.

What an end sent passed the capture point half a round trip between the two later, and what passed the capture point
arrived at that end half a round trip later. So the packets of one side are earlier there by one half, and those of its
peer later by the other: only the sum of both counts between packets of opposite directions, and between packets of one
direction nothing changes. What was measured stays as measured: round trips, computing times, ``service_ns``,
``ack_delay_ns``.
"""

from conchart.analysis.vantage import ROUTED_NS
from conchart.reading.options import SeenFrom
from conchart.store.sql import literal
from conchart.store.tables import Tables

SENDERS = {
    "connections": {
        "opened_at": "opened_by",
        "closed_at": "closed_by",
        "syn_at": "'client'",
        "syn_ack_at": "'server'",
        "ack_at": "'client'",
        "fin_client_at": "'client'",
        "fin_server_at": "'server'",
        "rst_at": "rst_by",
    },
    "handshakes": {
        "hello_at": "hello_by",
        "server_hello_at": "if(hello_by = 'server', 'client', 'server')",
        "retry_at": "if(hello_by = 'server', 'client', 'server')",
        "version_negotiation_at": "if(hello_by = 'server', 'client', 'server')",
        "server_done_at": "if(hello_by = 'server', 'client', 'server')",
        "client_finished_at": "coalesce(hello_by, 'client')",
        "ready_at": "ready_by",
        "complete_at": "complete_by",
    },
    "exchanges": {
        "tunnel_done_at": "'server'",
        "request_at": "'client'",
        "request_done_at": "'client'",
        "response_at": "'server'",
        "response_done_at": "'server'",
        "continued_at": "'server'",
        "body_at": "'client'",
        "ended_at": "if(ended_by = 'server', 'server', 'client')",
        "goaway_at": "goaway_by",
    },
    "phases": {"start_at": "start_by", "end_at": "end_by"},
    "stalls": {"start_at": "start_by", "end_at": "end_by"},
    "lost_packets": {"sent_at": "sender", "reported_at": "if(sender = 'client', 'server', 'client')"},
    "client_moves": {
        "moved_at": "'client'",
        "unanswered_at": "'server'",
        "answered_at": "'server'",
        "challenge_at": "'server'",
        "response_at": "'client'",
    },
    "packets": {"seen_at": "sender"},
    "records": {"start_at": "sender", "end_at": "sender"},
    "messages": {"start_at": "sender", "end_at": "sender"},
    "exchange_messages": {"start_at": "sender", "end_at": "sender"},
    "place_packets": {"seen_at": "sender"},
    "quic_frames": {"seen_at": "sender"},
    "http3_frames": {"seen_at": "sender"},
}
"""Of every instant that the core fills, who sent the packet: a column, or a side as SQL."""

_SHIFTS = """
    CREATE OR REPLACE TEMP TABLE shifts AS
    SELECT stream, -(far // 2) AS of_{end}, far - far // 2 AS of_{peer}
    FROM (SELECT stream, least_rtt_{end}_ns AS far FROM connections) WHERE far > 0
"""
"""Of each connection: how much later than at the capture point the packets of each side were there."""


def _shifted(table: str, instant: str) -> str:
    """The instant at which its packet was there, as SQL."""
    return f"{instant} + if({SENDERS[table][instant]} = 'client', of_client, of_server)"


def _within(instant: str) -> str:
    """Within the life of its connection, as SQL."""
    return f"if({instant} IS NULL, NULL, least(greatest({instant}, begun_at), over_at))"


def _all_moved(table: str) -> str:
    """All instants of a row, as SQL for ``REPLACE``."""
    return ", ".join(f"{_within(_shifted(table, instant))} AS {instant}" for instant in SENDERS[table])


_BOUNDS = " UNION ALL ".join(
    f"SELECT stream, unnest([{_shifted(table, first)}, {_shifted(table, last)}]) AS instant "
    f"FROM {table} JOIN shifts USING (stream)"
    for table, first, last in (("connections", "opened_at", "closed_at"), ("phases", "start_at", "end_at"))
)
_LIVES = f"""
    CREATE OR REPLACE TEMP TABLE lives AS
    SELECT stream, of_client, of_server, min(instant) AS begun_at, max(instant) AS over_at
    FROM ({_BOUNDS}) JOIN shifts USING (stream) GROUP BY ALL
"""
"""Of each connection: its first instant there and its last."""

# They touch: each begins where the one before it ended, and no bound comes before an earlier one.
_PHASES = f"""
    SELECT * EXCLUDE (begins_at, ends_at) REPLACE (
        begins_at AS start_at, ends_at AS end_at,
        inferred OR abs(ends_at - begins_at - (end_at - start_at)) > {ROUTED_NS} AS inferred)
    FROM (
        SELECT * EXCLUDE (of_client, of_server, begun_at, over_at),
            coalesce(max({_shifted("phases", "end_at")}) OVER before, begun_at) AS begins_at,
            if(lead(stream) OVER ordered IS NULL, over_at, greatest(begins_at, {_shifted("phases", "end_at")}))
                AS ends_at
        FROM phases JOIN lives USING (stream)
        WINDOW ordered AS (PARTITION BY stream ORDER BY start_at, end_at),
            before AS (ordered ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    WHERE ends_at > begins_at"""
"""Between packets of one side nothing is inferred, nor where the round trip is as good as none."""

# Stalls do not overlap.
_STALLS = f"""
    SELECT * EXCLUDE (begins_at, ends_at) REPLACE (begins_at AS start_at, ends_at AS end_at)
    FROM (
        SELECT * EXCLUDE (of_client, of_server, begun_at, over_at),
            greatest({_within(_shifted("stalls", "start_at"))}, max({_within(_shifted("stalls", "end_at"))}) OVER (
                PARTITION BY stream ORDER BY start_at, end_at
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS begins_at,
            {_within(_shifted("stalls", "end_at"))} AS ends_at
        FROM stalls JOIN lives USING (stream))
    WHERE ends_at > begins_at"""

# What did not overtake what it answers does not do so there.
_EXCHANGES = f"""
    SELECT * EXCLUDE (overtook) REPLACE (
        CASE WHEN request_ns IS NOT NULL THEN request_done_at - request_at END AS request_ns,
        CASE WHEN wait_ns IS NOT NULL THEN greatest(response_at - request_done_at, 0) END AS wait_ns,
        CASE WHEN transfer_ns IS NOT NULL THEN greatest(response_done_at - response_at, 0) END AS transfer_ns)
    FROM (
        SELECT * REPLACE (
            if(overtook, response_at, greatest(response_at, request_done_at)) AS response_at,
            if(overtook OR response_done_at IS NULL, response_done_at, greatest(response_done_at, request_done_at))
                AS response_done_at)
        FROM (
            SELECT * EXCLUDE (of_client, of_server, begun_at, over_at) REPLACE ({_all_moved("exchanges")}),
                coalesce(response_at < request_done_at, response_at IS NULL) AS overtook
            FROM exchanges JOIN lives USING (stream)))"""

_SINCE_HELLO = ", ".join(
    f"if({instant} IS NULL, NULL, greatest({instant}, hello_at)) AS {instant}"
    for instant in SENDERS["handshakes"]
    if instant != "hello_at"
)
_HANDSHAKES = f"""
    SELECT * REPLACE ({_SINCE_HELLO})
    FROM (
        SELECT * EXCLUDE (of_client, of_server, begun_at, over_at) REPLACE ({_all_moved("handshakes")})
        FROM handshakes JOIN lives USING (stream))"""


def _each_by_itself(table: str) -> str:
    instants = ", ".join(f"{_shifted(table, instant)} AS {instant}" for instant in SENDERS[table])
    return f"SELECT * EXCLUDE (of_client, of_server) REPLACE ({instants}) FROM {table} JOIN shifts USING (stream)"


_SINGLE = ("packets", "records", "messages", "exchange_messages", "place_packets", "quic_frames", "http3_frames")
"""Tables of what one side sent, row by row."""

_MOVED = {
    "phases": _PHASES,
    "stalls": _STALLS,
    "exchanges": _EXCHANGES,
    "handshakes": _HANDSHAKES,
    **{name: _each_by_itself(name) for name in _SINGLE},
    "connections": f"""
        SELECT * EXCLUDE (begun_at, over_at) REPLACE (begun_at AS opened_at, over_at AS closed_at)
        FROM (
            SELECT * EXCLUDE (of_client, of_server) REPLACE ({_all_moved("connections")})
            FROM connections JOIN lives USING (stream))""",
}
"""The rows of each table as they are there."""


def see_from(tables: Tables, viewpoint: SeenFrom) -> None:
    """Give every instant as that end saw it; where no round trip to it is known, they stay as captured."""
    if viewpoint == "capture":
        return
    peer = "server" if viewpoint == "client" else "client"
    tables.execute(_SHIFTS.format(end=viewpoint, peer=peer))
    tables.execute(_LIVES)
    for name, rows in _MOVED.items():
        tables.execute(f"CREATE TEMP TABLE moved AS {rows}")
        tables.execute(
            f"DELETE FROM {name} WHERE stream IN (SELECT stream FROM shifts);"
            f"INSERT INTO {name} BY NAME FROM moved; DROP TABLE moved"
        )
    tables.execute("DROP TABLE shifts; DROP TABLE lives")
    tables.execute(f"UPDATE captures SET seen_from = {literal(viewpoint)}")
