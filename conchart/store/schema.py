"""The tables of a trace, once: ``docs/tables.md`` explains every column, ``tests/test_schema.py`` compares the two.

The core declares its columns itself (``tables.rs``); those that the analysis fills are ``worked_out``. A test looks for
a value of each one in the captures.

In: nothing. Out: ``TABLES``, for the code that creates, fills or exports them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from conchart._native import declared, protocols

SCHEMA_VERSION = 3
"""The number under ``"conchart"`` in JSON: grows when a table or column changes its meaning or name, or goes away."""

ROLES = ("front", "backend", "server", "closed")
"""Values of ``servers.role``."""

SIDES = ("client", "server")
"""Values of ``sender``, and of what ends in ``_by``."""

# In the order of the alphabet: an ENUM is ordered as it is declared, and users expect the order of texts.
VOCABULARIES: dict[str, tuple[str, ...]] = {
    "TRANSPORT": ("tcp", "udp"),
    "AWAITS": ("event", "stream"),
    "DNS_OVER": ("https", "quic", "tcp", "tls", "udp"),
    "SIDE": SIDES,
    "SIDES": ("both", *SIDES),
    "PLACE": ("client", "middle", "server"),
    "STATE": ("abandoned", "complete", "midstream", "open", "refused", "reset", "unanswered"),
    "SESSION": ("full", "psk", "psk-0rtt", "session-id", "ticket"),
    "OUTCOME": ("complete", "failed", "incomplete"),
    "COVERAGE": ("all", "none", "partial", "unsupported", "wrong"),
    "OWNER": ("client", "path", "proxy", "server", "unknown"),
    "PHASE": ("close", "idle", "request", "syn", "tls", "transfer", "unseen", "wait"),
    "STALL": (
        "delayed-ack", "fast-retransmit", "flow-control", "loss", "migration", "nagle", "pmtu", "pto", "qpack",
        "receiver", "rto", "sender", "slow-start", "syn-rto", "window-limited", "zero-window",
    ),
    "RACE": ("address", "transport"),
    "SPACE": ("data", "handshake", "initial"),
    "DETAIL": (
        "ack", "black-hole", "challenged", "connection", "delayed-ack", "handshake", "hello", "icmp", "late-ack",
        "middle", "refused", "round-trip", "small-window", "spurious", "stream", "syn", "syn-ack", "tail",
        "unaccepted", "unanswered", "unreachable", "validation",
    ),
    "MARK": ("duplicate", "gap", "keepalive", "out_of_order", "retransmit", "zero_window"),
    "FATE": ("abandoned", "answered", "cut", "refused", "unanswered", "unknown"),
    "ENDER": ("client", "path", "server"),
    "COVER": ("clear", "opened", "sealed"),
    "KIND": tuple(sorted({row["kind"] for row in protocols()})),
    "STORE": tuple(sorted({row["store"] for row in protocols() if row["store"]})),
    "CONTENT": ("binary", "close", "message", "ping", "pong", "text"),
}  # fmt: skip
"""The words of columns that have no others. Such a column is an ENUM: a byte per row, and compared as such."""

SEVERITIES = ("note", "warning", "serious")
"""Values of ``findings.severity``, from the least to the worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of a trace."""

    name: str
    key: str
    """The columns that identify a row, as an ORDER BY list: exports are sorted by it."""
    unknown: tuple[str, ...] = ()
    """Columns of the key that may be NULL, and lists that may hold one."""
    worked_out: str = ""
    """Name and type of each column that ``conchart.analysis`` fills, as SQL."""
    not_null: str = ""
    """The columns that are never NULL, besides those of the key: what every chart relies on."""
    signed: tuple[str, ...] = ()
    """Columns whose numbers may be negative: hashes, and differences of clocks."""

    @property
    def from_core(self) -> tuple[str, ...]:
        """The names of the columns that the core owes; none where analysis fills the table."""
        return tuple(name for name, _ in _DECLARED.get(self.name, ()))

    @property
    def types(self) -> dict[str, str]:
        """The type of each column."""
        worked_out = (column.split() for column in self.worked_out.split(",") if column.strip())
        return {name: _ENUMS.get(kind, kind) for name, kind in (*_DECLARED.get(self.name, ()), *worked_out)}

    @property
    def ddl(self) -> str:
        """The statement that creates the table, empty."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.types.items())
        return f"CREATE TABLE {self.name} ({columns})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """How an earlier version of the tables differs from these; what both have means the same."""

    names: Mapping[str, str] = field(default_factory=dict)
    """By the present name of a table, the one that it had."""
    gone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the present name of a table, the columns that nobody needs any more."""
    filled: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By the present name of a table, the columns that it lacked or that meant something else, and the SQL that makes
    them."""
    absent: tuple[str, ...] = ()
    """The tables that there were none of: they are empty."""


def _of_protocol(fact: Literal["kind", "store"]) -> str:
    """Write the SQL that looks up what a protocol is."""
    cases = " ".join(f"WHEN '{row['name']}' THEN '{row[fact]}'" for row in protocols() if row[fact])
    return f"CASE protocol {cases} END"


FORMER = {
    SCHEMA_VERSION: Former(),
    2: Former(
        names={
            "place_packets": "sightings",
            "expected_log_lines": "logged",
            "phase_places": "whereabouts",
            "phase_stalls": "stalled",
            "explained_waits": "explained",
        },
        gone={"exchanges": ("keep_alive_max",), "lost_packets": ("told_frame", "told_at")},
        filled={
            "exchanges": {
                "kind": _of_protocol("kind"),
                "store": _of_protocol("store"),
                # Of protocols other than HTTP, the names of statuses stay numbers.
                "status_text": "status::VARCHAR",
                # Keys of caches have their values still.
                "shape": f"""CASE {_of_protocol("store")}
                    WHEN 'sql' THEN coalesce(nullif(concat_ws(': ', CASE WHEN method NOT IN ('Query', 'Execute')
                        THEN method END, coalesce(shape, target)), ''), method, 'unknown')
                    WHEN 'cache' THEN concat_ws(' ', method, target)
                    WHEN 'document' THEN concat_ws(' ', method, target) END""",
            },
            "lost_packets": {"reported_frame": "told_frame", "reported_at": "told_at"},
        },
        absent=("explained_places",),
    ),
}
"""The versions of the tables that can be opened."""

# A tuple is written as DuckDB writes the words of a type, which saved traces are compared by.
_ENUMS = {name: f"ENUM{words!r}" for name, words in VOCABULARIES.items()}
_DECLARED = declared()


TABLES: tuple[Table, ...] = (
    Table(
        name="captures",
        key="capture",
        not_null="path, packets, selected, bytes, truncated, notes",
        worked_out="selection VARCHAR, vantage VARCHAR, seen_from VARCHAR, statements VARCHAR, place VARCHAR",
    ),
    Table(
        name="connections",
        key="stream",
        not_null="capture, transport, transport_stream, client_ip, client_port, server_ip, server_port, "
        "opened_at, closed_at, opened_by, closed_by, state, waited_ns",
        worked_out="vantage PLACE, same_as INTEGER, waited_ns BIGINT",
        signed=("identity",),
    ),
    Table(
        name="handshakes",
        key="stream, number",
        not_null="outcome, inferred",
    ),
    Table(
        name="exchanges",
        key="stream, number",
        not_null="protocol, kind, inferred, confidence",
        worked_out="service_ns BIGINT, from_log BOOLEAN",
    ),
    Table(
        name="exchange_messages",
        key="stream, exchange, sender, number",
        not_null="kind, compressed, bytes, start_at, start_frame",
    ),
    Table(
        name="phases",
        key="stream, start_at, end_at, start_frame",
        not_null="kind, start_by, end_by, end_frame, inferred",
    ),
    Table(
        name="stalls",
        key="stream, start_at",
        not_null="kind, side, end_at, start_by, end_by, start_frame, end_frame, confidence, unfinished",
    ),
    Table(
        name="lost_packets",
        key="stream, reported_at, sender, space, number",
        not_null="reported_frame, arrived",
    ),
    Table(
        name="client_moves",
        key="stream, moved_at",
        not_null="frame, old_ip, old_port, new_ip, new_port",
    ),
    Table(
        name="races",
        key="loser_stream",
        not_null="winner_stream, kind, loser_began_at, winner_began_at, decided_at, delay_ns, confidence",
        worked_out="""
            loser_stream INTEGER, winner_stream INTEGER, kind RACE, name VARCHAR,
            loser_began_at BIGINT, winner_began_at BIGINT, loser_answered_at BIGINT, decided_at BIGINT,
            given_up_at BIGINT, delay_ns BIGINT, packets BIGINT, bytes BIGINT, confidence DOUBLE
        """,
    ),
    Table(
        name="links",
        key="front_stream, front_exchange, back_stream, back_exchange",
        unknown=("front_exchange", "back_exchange"),
        not_null="method, confidence",
    ),
    Table(
        name="nodes",
        key="address, port",
        unknown=("port",),
        not_null="node, role, confidence",
        worked_out="address VARCHAR, port INTEGER, node INTEGER, role VARCHAR, method VARCHAR, confidence DOUBLE",
    ),
    Table(
        name="on_behalf",
        key="stream, exchange",
        signed=("exchange",),
        not_null="method",
        worked_out="stream INTEGER, exchange INTEGER, front_stream INTEGER, front_exchange INTEGER, method VARCHAR",
    ),
    Table(name="checks", key="stream, exchange", signed=("exchange",), worked_out="stream INTEGER, exchange INTEGER"),
    Table(
        name="splits",
        key="server_ip, server_port",
        not_null="requests, wait_ns, backend_ns, connect_ns, tls_ns, pool_ns, proxy_ns, unlinked, unlinked_ns",
        worked_out="""
            server_ip VARCHAR, server_port INTEGER, requests BIGINT, wait_ns BIGINT, backend_ns BIGINT,
            connect_ns BIGINT, tls_ns BIGINT, pool_ns BIGINT, proxy_ns BIGINT, unlinked BIGINT,
            unlinked_ns BIGINT
        """,
    ),
    Table(
        name="expected_log_lines",
        key="stream, exchange",
        not_null="opened, inferred",
        worked_out="""
            stream INTEGER, exchange INTEGER, back_stream INTEGER, back_exchange INTEGER, confidence DOUBLE,
            opened BOOLEAN,
            nginx_request_ns BIGINT, nginx_upstream_connect_ns BIGINT, nginx_upstream_header_ns BIGINT,
            nginx_upstream_response_ns BIGINT,
            haproxy_th_ns BIGINT, haproxy_ti_ns BIGINT, haproxy_head_ns BIGINT, haproxy_tw_ns BIGINT,
            haproxy_tc_ns BIGINT, haproxy_answer_ns BIGINT, haproxy_ta_ns BIGINT,
            apache_ns BIGINT,
            envoy_request_ns BIGINT, envoy_response_ns BIGINT, envoy_response_tx_ns BIGINT, envoy_ns BIGINT,
            buffered_ns BIGINT, inferred BOOLEAN
        """,
    ),
    Table(
        name="spans",
        key="number",
        not_null="trace_id, span_id, name, kind, begin_at, end_at",
        signed=("clock_offset_ns", "wire_ns", "before_ns", "behind_ns"),
        worked_out="""
            number INTEGER, trace_id VARCHAR, span_id VARCHAR, parent_span VARCHAR, name VARCHAR, kind VARCHAR,
            service VARCHAR, begin_at BIGINT, end_at BIGINT, clock_offset_ns BIGINT, uncertainty_ns BIGINT,
            method VARCHAR, target VARCHAR, status INTEGER, failed BOOLEAN,
            stream INTEGER, exchange INTEGER, matched_by VARCHAR, confidence DOUBLE, unmatched VARCHAR,
            wire_ns BIGINT, before_ns BIGINT, behind_ns BIGINT
        """,
    ),
    Table(
        name="logs",
        key="log",
        not_null="path, product, format, fields, instant, lines, malformed, zoned",
        signed=("ahead_ns",),
        worked_out="""
            log INTEGER, path VARCHAR, product VARCHAR, format VARCHAR, fields VARCHAR[], instant VARCHAR,
            lines BIGINT, malformed BIGINT, first_malformed BIGINT, broken VARCHAR,
            resolution_ns BIGINT, zoned BOOLEAN,
            ahead_ns BIGINT, uncertainty_ns BIGINT, method VARCHAR,
            matched BIGINT, outside BIGINT, unmatched BIGINT, requests BIGINT, unlogged BIGINT
        """,
    ),
    Table(
        name="log_lines",
        key="log, line",
        not_null="text",
        unknown=("durations",),
        worked_out="""
            log INTEGER, line BIGINT, logged_at BIGINT, client_ip VARCHAR, client_port INTEGER, method VARCHAR,
            host VARCHAR, target VARCHAR, status INTEGER, bytes BIGINT, request_bytes BIGINT, id VARCHAR,
            durations BIGINT[], text VARCHAR,
            line_at BIGINT, stream INTEGER, exchange INTEGER, confidence DOUBLE, rivals INTEGER, unmatched VARCHAR
        """,
    ),
    Table(
        name="log_times",
        key="log, line, field",
        not_null="stream, exchange, logged_ns",
        signed=("difference_ns", "wire_ns"),
        worked_out="""
            log INTEGER, line BIGINT, field VARCHAR, stream INTEGER, exchange INTEGER, logged_ns BIGINT,
            wire_ns BIGINT, difference_ns BIGINT
        """,
    ),
    Table(
        name="log_differences",
        key="log, line",
        not_null="stream, exchange, logged_ns, wire_ns, difference_ns, setup_ns, queued_ns, buffered_ns, network_ns, "
        "clock_ns, explained",
        signed=("difference_ns", "wire_ns", "setup_ns", "queued_ns", "buffered_ns", "network_ns", "clock_ns"),
        worked_out="""
            log INTEGER, line BIGINT, stream INTEGER, exchange INTEGER, logged_ns BIGINT, wire_ns BIGINT,
            difference_ns BIGINT, setup_ns BIGINT, queued_ns BIGINT, buffered_ns BIGINT, network_ns BIGINT,
            clock_ns BIGINT, explained VARCHAR
        """,
    ),
    Table(
        name="packets",
        key="frame",
        not_null="stream, seen_at, sender, flags, bytes",
    ),
    Table(
        name="place_packets",
        key="frame, stream, packet",
        unknown=("packet",),
        not_null="stream, seen_at, sender, flags, bytes, place",
        signed=("print",),
        worked_out="place VARCHAR, packet BIGINT",
    ),
    Table(
        name="records",
        key="stream, number",
        not_null="sender, kind, bytes, cover, start_at, end_at, start_frame, end_frame",
    ),
    Table(
        name="messages",
        key="stream, number",
        not_null="handshake, sender, kind, code, bytes, start_at, end_at, start_frame, end_frame, opened",
    ),
    Table(
        name="quic_frames",
        key="stream, frame, packet, number",
        not_null="seen_at, sender, packet_type, packet_bytes",
    ),
    Table(
        name="http3_frames",
        key="stream, stream_id, sender, start_byte, kind",
        not_null="bytes, frame, seen_at",
    ),
    Table(
        name="places",
        key="number",
        not_null="place, reference, packets, connections",
        worked_out="""
            number INTEGER, place VARCHAR, reference BOOLEAN, packets BIGINT, connections BIGINT, shared BIGINT
        """,
    ),
    Table(
        name="clocks",
        key="place, from_at",
        not_null="reference, to_at, method",
        signed=("offset_ns", "drift_ppb"),
        worked_out="""
            place VARCHAR, reference VARCHAR, from_at BIGINT, to_at BIGINT, offset_ns BIGINT, drift_ppb BIGINT,
            uncertainty_ns BIGINT, method VARCHAR, through VARCHAR, through_ns BIGINT, packets BIGINT
        """,
    ),
    Table(
        name="paths",
        key="stream, position",
        not_null="place, first_frame, last_frame",
        worked_out="""
            stream INTEGER, position INTEGER, place VARCHAR, place_stream INTEGER,
            first_frame BIGINT, last_frame BIGINT,
            client_ip VARCHAR, client_port INTEGER, server_ip VARCHAR, server_port INTEGER,
            mss_client INTEGER, mss_server INTEGER, ttl_client INTEGER, ttl_server INTEGER,
            tunnel_client VARCHAR, tunnel_server VARCHAR, isn_client BIGINT, isn_server BIGINT,
            lacking BIGINT, overtaken BIGINT, late BIGINT,
            packets_client BIGINT, packets_server BIGINT, client_frame BIGINT, server_frame BIGINT,
            tos_client INTEGER, tos_server INTEGER, varies BOOLEAN
        """,
    ),
    Table(
        name="losses",
        key="frame, to_place",
        not_null="stream, sender, from_place, seen_at, bytes, captured_elsewhere",
        worked_out="""
            stream INTEGER, sender SIDE, from_place VARCHAR, to_place VARCHAR, frame BIGINT, seen_at BIGINT,
            flags VARCHAR, seq BIGINT, bytes INTEGER, captured_elsewhere BOOLEAN
        """,
    ),
    Table(
        name="changes",
        key="stream, from_place, to_place, sender, field, before, after",
        unknown=("before", "after"),
        not_null="packets, from_frame, to_frame",
        worked_out="""
            stream INTEGER, from_place VARCHAR, to_place VARCHAR, sender SIDE, field VARCHAR, before VARCHAR,
            after VARCHAR, packets BIGINT, from_frame BIGINT, to_frame BIGINT
        """,
    ),
    Table(
        name="disorders",
        key="stream, frame, kind, to_place",
        not_null="sender, kind, from_place, to_place, frame, to_frame, other_frame, bytes",
        signed=("late_ns",),
        worked_out="""
            stream INTEGER, sender SIDE, kind VARCHAR, from_place VARCHAR, to_place VARCHAR, frame BIGINT,
            to_frame BIGINT, other_frame BIGINT, seq BIGINT, bytes INTEGER, late_ns BIGINT
        """,
    ),
    Table(
        name="phase_places",
        key="stream, start_at, end_at, of_stream",
        not_null="phase, kind, place, inferred",
        signed=("ahead_ns",),
        worked_out="""
            stream INTEGER, exchange INTEGER, handshake INTEGER, phase PHASE, start_at BIGINT, end_at BIGINT,
            kind VARCHAR, place VARCHAR, to_place VARCHAR, uncertainty_ns BIGINT, ahead_ns BIGINT,
            of_stream INTEGER, of_exchange INTEGER, inferred BOOLEAN
        """,
    ),
    Table(
        name="crossings",
        key="stream, sender, place, to_place",
        not_null="packets, least_ns, most_ns",
        signed=("least_ns", "most_ns"),
        worked_out="""
            stream INTEGER, sender SIDE, place VARCHAR, to_place VARCHAR, packets BIGINT, least_ns BIGINT,
            most_ns BIGINT
        """,
    ),
    Table(
        name="phase_stalls",
        key="stream, start_at",
        not_null="end_at, phase, kind, side, owner, start_frame, end_frame, confidence",
        worked_out="""
            stream INTEGER, start_at BIGINT, end_at BIGINT, exchange INTEGER, phase PHASE, kind STALL, detail DETAIL,
            side SIDE, owner OWNER, start_frame BIGINT, end_frame BIGINT, ack_delay_ns BIGINT, confidence DOUBLE
        """,
    ),
    Table(
        name="servers",
        key="server_ip, server_port",
        not_null="rank, names, role, tier, unread, connections, requests, refused, refused_ns, unanswered, "
        "unanswered_ns, handshakes_full, handshakes_resumed, handshakes_failed, handshakes_incomplete, "
        "total_ns, wall_ns, waited_ns, users_ns, connection_median_ns, connection_max_ns",
        worked_out="""
            server_ip VARCHAR, server_port INTEGER, rank INTEGER, names VARCHAR[],
            role VARCHAR, tier INTEGER, unread BOOLEAN,
            connections BIGINT, requests BIGINT,
            refused BIGINT, refused_ns BIGINT, unanswered BIGINT, unanswered_ns BIGINT,
            handshakes_full BIGINT, handshakes_resumed BIGINT, handshakes_failed BIGINT, handshakes_incomplete BIGINT,
            waited_ns BIGINT, users_ns BIGINT, total_ns BIGINT, wall_ns BIGINT,
            connection_median_ns BIGINT, connection_max_ns BIGINT, request_median_ns BIGINT, request_max_ns BIGINT
        """,
    ),
    Table(
        name="times",
        key="server_ip, server_port, number",
        not_null="phase, total_ns, waited_ns, users_ns",
        worked_out="""
            server_ip VARCHAR, server_port INTEGER, number INTEGER, phase VARCHAR, kind VARCHAR, detail VARCHAR,
            total_ns BIGINT, waited_ns BIGINT, users_ns BIGINT
        """,
    ),
    Table(
        name="wait_owners",
        key="server_ip, server_port, phase, owner",
        not_null="waited_ns",
        worked_out="server_ip VARCHAR, server_port INTEGER, phase PHASE, owner OWNER, waited_ns BIGINT",
    ),
    Table(
        name="coverage",
        key="first_stream",
        not_null="server_ip, server_port, keys, connections",
        worked_out="""
            first_stream INTEGER, server_ip VARCHAR, server_port INTEGER, keys VARCHAR, missing_keys VARCHAR,
            connections BIGINT
        """,
    ),
    Table(
        name="remarks",
        key="number",
        not_null="warning, kind, title",
        worked_out="""
            number INTEGER, warning BOOLEAN, kind VARCHAR, title VARCHAR, effect VARCHAR, advice VARCHAR, count BIGINT
        """,
    ),
    Table(
        name="unjudged",
        key="number",
        not_null="what, why",
        worked_out="number INTEGER, what VARCHAR, why VARCHAR, connections BIGINT, waited_ns BIGINT",
    ),
    Table(
        name="findings",
        key="number",
        not_null="finding, title, severity, streams, frames, count, cost_ns, critical_ns, shared_ns, vain_ns, "
        "waited_ns, evidence, why, unfinished",
        worked_out="""
            number INTEGER, finding VARCHAR, title VARCHAR, severity VARCHAR,
            server_ip VARCHAR, server_port INTEGER, server VARCHAR, client_ip VARCHAR, hop VARCHAR,
            streams INTEGER[], frames BIGINT[], count BIGINT, cost_ns BIGINT, critical_ns BIGINT, shared_ns BIGINT,
            vain_ns BIGINT, waited_ns BIGINT, each_ns BIGINT, low_ns BIGINT, high_ns BIGINT, confidence DOUBLE,
            unfinished BIGINT, who VARCHAR, evidence VARCHAR, why VARCHAR, advice VARCHAR, because VARCHAR, root INTEGER
        """,
    ),
    Table(
        name="explained_waits",
        key="server_ip, server_port, phase, owner",
        not_null="explained_ns",
        worked_out="server_ip VARCHAR, server_port INTEGER, phase PHASE, owner OWNER, explained_ns BIGINT",
    ),
    Table(
        name="explained_places",
        key="stream, start_at",
        not_null="explained_ns",
        worked_out="stream INTEGER, start_at BIGINT, explained_ns BIGINT",
    ),
)
TABLE_BY_NAME: dict[str, Table] = {table.name: table for table in TABLES}
