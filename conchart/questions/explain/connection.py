"""What is known of a connection, gathered: the rows of every table that speak of it.

In: tables. Out: :class:`Connection`, whose texts are harmless to read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from conchart.analysis.phase_places import DOUBTS
from conchart.labels.stalls import DETAIL
from conchart.report.messages import BY_EXCHANGE
from conchart.report.phase_places import PARTS
from conchart.report.races import OF_STREAMS
from conchart.report.rows import Row, rows
from conchart.report.tunnels import COLUMNS as TUNNEL
from conchart.store.sql import COSTLIEST, NEEDLESS, UNFINISHED
from conchart.store.tables import Tables

_TABLES = {
    "packets": "SELECT * EXCLUDE (segment) FROM packets ORDER BY stream, seen_at, frame",
    "records": "FROM records ORDER BY stream, number",
    "messages": "SELECT * EXCLUDE (body) FROM messages ORDER BY stream, number",
    "handshakes": "FROM handshakes ORDER BY stream, number",
    "exchanges": f"""
        SELECT stream, number, protocol, method, target, status_text AS answer, outcome, ended_by, ended_frame,
            request_at, request_done_at, response_at, response_done_at, {TUNNEL}, {UNFINISHED} AS unfinished,
            {NEEDLESS} AS needless
        FROM exchanges ORDER BY stream, number""",
    "message_counts": f"FROM ({BY_EXCHANGE}) ORDER BY stream, number",
    "contents": "SELECT stream, kind, end_frame FROM exchange_messages WHERE end_frame IS NOT NULL ORDER BY ALL",
    "quic_frames": "FROM quic_frames ORDER BY stream, seen_at, frame, packet, number",
    "http3_frames": "FROM http3_frames ORDER BY stream, start_byte, frame",
    "lost_packets": "FROM lost_packets ORDER BY stream, reported_at, number",
    "phases": "FROM phases ORDER BY stream, start_at, end_at, start_frame",
    "races": f"FROM ({OF_STREAMS}) ORDER BY stream, other",
    "stalls": f"SELECT * REPLACE ({DETAIL} AS detail) FROM stalls ORDER BY stream, start_at",
}
# A packet has the frame of the connection's own place, or else of the first that saw it.
_OF_PLACES = {
    "places": f"""
        SELECT stream, place, ns AS doubt_ns
        FROM (SELECT *, lag(place) OVER (PARTITION BY stream ORDER BY position) AS nearer FROM paths)
        LEFT JOIN ({DOUBTS}) doubts(nearer, place, ns) USING (nearer, place) ORDER BY stream, position""",
    "seen": """
        WITH own AS (
            SELECT stream, place AS own_place FROM connections JOIN captures USING (capture)),
        lost AS (SELECT frame, to_place FROM losses WHERE NOT captured_elsewhere)
        SELECT stream, coalesce(min(frame) FILTER (place = own_place), arg_min(frame, seen_at)) AS frame,
            sender, any_value(flags) AS flags, max(bytes) AS bytes, min(seen_at) AS seen_at,
            bool_or(place = own_place) AS is_own,
            list(place ORDER BY if(sender = 'client', position, -position)) AS places,
            list(seen_at ORDER BY if(sender = 'client', position, -position)) AS instants,
            any_value(to_place) AS lost_to
        FROM place_packets JOIN paths USING (stream, place) JOIN own USING (stream) LEFT JOIN lost USING (frame)
        GROUP BY stream, sender, coalesce(packet, -1 - frame) ORDER BY stream, seen_at, frame""",
    "parts": PARTS,
}
"""Only where places are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Rows as their tables have them, in the order of time."""

    about: Row
    """Of ``connections``."""
    packets: list[Row]
    records: list[Row]
    messages: list[Row]
    handshakes: list[Row]
    exchanges: list[Row]
    contents: list[Row]
    """Messages of gRPC and WebSocket: kind, and frame of the last byte."""
    quic_frames: list[Row]
    """Packets of QUIC with their frames, packet by packet."""
    http3_frames: list[Row]
    lost_packets: list[Row]
    races: list[Row]
    """Those that it won or lost, as ``report.races`` selects them."""
    message_counts: list[Row]
    """Of each exchange with messages of gRPC or WebSocket, what ``report.messages`` selects."""
    phases: list[Row]
    stalls: list[Row]
    places: list[Row]
    """Those that saw it, from the client on, and how much the clock may be wrong against the one before."""
    seen: list[Row]
    """Each packet, with the places that saw it in the order of its way, and when."""
    parts: list[Row]
    """What each host and path has of each phase."""

    @property
    def stream(self) -> int:
        """Its number."""
        stream: int = self.about["stream"]
        return stream

    @property
    def rtt_ns(self) -> dict[str, int]:
        """Between the capture point and each end and back; 0 where it is not known."""
        return {side: self.about[f"rtt_{side}_ns"] or 0 for side in ("client", "server")}


_COMPLETE = """
    SELECT connections.*, packet_count FROM connections
    JOIN (SELECT stream, count(*) AS packet_count FROM packets
        WHERE coalesce(mark <> 'duplicate', true) GROUP BY stream) USING (stream)
    WHERE packet_count >= coalesce(packets_client, 0) + coalesce(packets_server, 0)
"""


def count_complete(tables: Tables) -> int:
    """Count the connections of which every packet is kept."""
    ((count,),) = tables.fetch(f"SELECT count(*) FROM ({_COMPLETE})")
    return int(count)


def connections(
    tables: Tables, stream: int | None = None, *, names: bool = True, most: int | None = None, first: int | None = None
) -> Iterator[Connection]:
    """Gather the connections of which every packet is kept.

    Args:
        tables: Of the trace.
        stream: This one only.
        names: With the names found in the capture.
        most: Packets of all of them together, from which on no more are gathered; whose users waited the longest come
            first.
        first: The stream that comes before all others then.
    """
    order = f"stream IS DISTINCT FROM {'NULL' if first is None else first}, {COSTLIEST}"
    before = f"sum(packet_count) OVER (ORDER BY {order} ROWS"
    abouts = list(
        rows(
            tables,
            f"""
            SELECT * EXCLUDE packet_count FROM ({_COMPLETE})
            WHERE {"true" if stream is None else f"stream = {stream}"}
            {"" if most is None else f"QUALIFY coalesce({before} UNBOUNDED PRECEDING) - packet_count, 0) < {most}"}
            ORDER BY stream
            """,
        )
    )
    if not abouts:
        return
    among = f"stream IN ({', '.join(str(about['stream']) for about in abouts)})"
    wanted = _TABLES | (_OF_PLACES if tables.have_places else {})
    of = {name: _by_stream(tables, f"SELECT * FROM ({query}) WHERE {among}") for name, query in wanted.items()}
    for about in abouts:
        found = {name: of.get(name, {}).get(about["stream"], []) for name in (*_TABLES, *_OF_PLACES)}
        if not names:
            for handshake in found["handshakes"]:
                handshake["sni"] = None
        yield Connection(about=about, **found)


def _by_stream(tables: Tables, query: str) -> dict[int, list[Row]]:
    return {stream: list(group) for stream, group in groupby(rows(tables, query), key=lambda row: row["stream"])}
