"""Which attempts to reach a server a client made side by side, and which one won.

In: ``connections``, ``handshakes``, ``exchanges``. Out: the table ``races``, one row per attempt that lost.

A client with several ways to a server tries them one after the other without waiting for the first to fail: IPv6
and IPv4 (RFC 8305, "Happy Eyeballs"), QUIC and TCP. It asks on the first that stands. So the loser and the winner
differ in transport or address, neither stood when the other began, and the winner carried a request first. A loser
that said no name counts only where little else can be meant: the other transport of the same server, or the other
version of IP.

Each loser is compared with four others at most: the next that asks, of each transport and version of IP.
"""

from conchart.store.tables import Tables

WINDOW_NS = 30_000_000_000
"""A client that tries the next way later than this has another reason."""
UNNAMED_NS = 2_000_000_000
"""The same of a loser that said no name: RFC 8305 section 8 lets two seconds pass between attempts, at most."""
MOST_ADDRESSES = 8
"""Of one version of IP that one network card has; behind one with more IPv6 addresses, there is a network."""

_RACES = f"""
    INSERT INTO races BY NAME
    WITH first_requests AS (
        SELECT stream, min(request_at) AS requested_at FROM exchanges WHERE protocol <> 'proxy' GROUP BY stream),
    began AS (
        SELECT connections.*, contains(server_ip, ':') AS is_six, coalesce(syn_at, hello_at) AS began_at,
            coalesce(syn_ack_at, server_hello_at) AS answered_at,
            if(hello_at IS NULL, syn_ack_at, greatest(ready_at, server_hello_at)) AS stood_at, requested_at,
            CASE WHEN local_end IN ('client', 'both') THEN 'here' ELSE mac_client END AS card
        FROM connections LEFT JOIN (FROM handshakes WHERE number = 0) USING (stream)
        LEFT JOIN first_requests USING (stream)
        WHERE syn_at IS NOT NULL OR (transport = 'udp' AND quic_version IS NOT NULL)),
    cards AS (
        SELECT card FROM began WHERE card IS NOT NULL GROUP BY card
        HAVING count(DISTINCT if(is_six, NULL, client_ip)) <= 1
            AND count(DISTINCT if(is_six, client_ip, NULL)) BETWEEN 1 AND {MOST_ADDRESSES}),
    attempts AS MATERIALIZED (
        SELECT stream, coalesce(cards.card, client_ip) AS who, transport::VARCHAR AS transport, is_six, server_ip,
            server_port, lower(server_name) AS name, began_at, answered_at, stood_at, requested_at, closed_at,
            bytes_client, coalesce(packets_client, 0) + coalesce(packets_server, 0) AS packets,
            coalesce(bytes_client, 0) + coalesce(bytes_server, 0) AS bytes
        FROM began LEFT JOIN cards USING (card)),
    winners AS MATERIALIZED (
        SELECT stream AS w_stream, who, transport AS w_transport, is_six AS w_is_six, server_ip AS w_ip,
            server_port, name AS w_name, began_at AS w_began_at, answered_at AS w_answered_at,
            stood_at AS w_stood_at, requested_at AS w_requested_at
        FROM attempts WHERE requested_at IS NOT NULL AND stood_at IS NOT NULL AND answered_at IS NOT NULL),
    -- Of two connections over the same transport that both carry requests, neither lost.
    losers AS (
        SELECT attempts.*, w_transport, w_is_six
        FROM attempts, (SELECT DISTINCT w_transport, w_is_six FROM winners)
        WHERE requested_at IS NULL OR transport <> w_transport),
    paired AS (
        SELECT losers.*, w.* EXCLUDE (who, w_transport, w_is_six, server_port)
        FROM (FROM losers WHERE name IS NOT NULL) losers ASOF JOIN winners w
            ON losers.who = w.who AND losers.server_port = w.server_port AND losers.name = w.w_name
            AND losers.w_transport = w.w_transport AND losers.w_is_six = w.w_is_six
            AND losers.began_at <= w.w_requested_at
        UNION ALL
        SELECT losers.*, w.* EXCLUDE (who, w_transport, w_is_six, server_port)
        FROM (FROM losers WHERE name IS NULL AND coalesce(bytes_client, 0) = 0) losers ASOF JOIN winners w
            ON losers.who = w.who AND losers.server_port = w.server_port
            AND losers.w_transport = w.w_transport AND losers.w_is_six = w.w_is_six
            AND losers.began_at <= w.w_requested_at
        WHERE losers.is_six <> w.w_is_six OR losers.server_ip = w.w_ip)
    SELECT stream AS loser_stream, w_stream AS winner_stream,
        if(transport = w_transport, 'address', 'transport') AS kind, w_name AS name,
        began_at AS loser_began_at, w_began_at AS winner_began_at, answered_at AS loser_answered_at,
        -- Before TLS, a TCP handshake is all that there is to win (RFC 8305 section 5).
        if(name IS NULL AND transport = w_transport, w_answered_at, w_stood_at) AS decided_at,
        if(requested_at IS NULL, closed_at, NULL) AS given_up_at,
        greatest(0, w_began_at - began_at) AS delay_ns,
        if(requested_at IS NULL, packets, NULL) AS packets, if(requested_at IS NULL, bytes, NULL) AS bytes,
        if(name IS NULL, 0.6, 0.9) AS confidence
    FROM paired
    WHERE stream <> w_stream AND (transport <> w_transport OR server_ip <> w_ip)
        AND coalesce(requested_at > w_requested_at, true)
        AND began_at < w_stood_at AND coalesce(w_began_at < stood_at, true)
        AND abs(w_began_at - began_at) <= if(name IS NULL, {UNNAMED_NS}, {WINDOW_NS})
    QUALIFY row_number() OVER (PARTITION BY stream ORDER BY w_requested_at, w_stream) = 1
"""


_MAY_BE = """
    SELECT (SELECT count(DISTINCT contains(server_ip, ':')) > 1 FROM connections)
        OR EXISTS (FROM handshakes WHERE quic_version IS NOT NULL)
"""
"""Most captures have neither two versions of IP nor QUIC, and so nothing that could race."""


def find_races(tables: Tables) -> None:
    """Fill ``races``."""
    if tables.fetch(_MAY_BE) == [(True,)]:
        tables.execute(_RACES)
