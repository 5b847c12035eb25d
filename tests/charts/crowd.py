"""A capture of very many connections, written into the tables by DuckDB itself: 200,000 take seconds."""

from conchart import Trace
from tests.charts.story import MS, START_AT, US

KINDS = ("syn", "tls", "request", "wait", "transfer", "idle", "close")
"""The phases of each connection, in their order."""


def crowd(trace: Trace, connections: int) -> None:
    """Fill a trace's tables, which are empty, with connections of a few clients to 24 servers.

    Each goes through all of :data:`KINDS`, asks one request, and is one of those that were open at once by the hundred.
    Times are whole microseconds, spread by a hash: what a page packs is as hard to compress as what tcpdump writes.
    """
    number = " ".join(f"WHEN {place} THEN '{kind}'" for place, kind in enumerate(KINDS))
    trace.execute(
        f"""
        CREATE TEMP TABLE laid_out AS
        SELECT stream, place, sum(lasted) OVER so_far - lasted AS start, sum(lasted) OVER so_far AS "end"
        FROM (
            SELECT i AS stream, place, {US} * (hash(i, place) % CASE place WHEN 1 THEN 30_000 WHEN 3 THEN 80_000
                WHEN 4 THEN 9_000 WHEN 5 THEN 2_000_000 ELSE 700 END + 20)::BIGINT AS lasted
            FROM range({connections}) AS t(i), range({len(KINDS)}) AS p(place))
        WINDOW so_far AS (PARTITION BY stream ORDER BY place);

        CREATE TEMP TABLE opening AS
        SELECT i AS stream, {START_AT} + i * 3 * {MS} + {US} * (hash(i) % 3_000)::BIGINT AS opened_at,
            hash(i, 'server') % 24 AS server, hash(i, 'client') % 400 AS client
        FROM range({connections}) AS t(i);

        INSERT INTO connections BY NAME
        SELECT stream, 0 AS capture, 'tcp' AS transport, stream AS transport_stream,
            format('172.16.{{}}.{{}}', client // 200, client % 200 + 1) AS client_ip,
            1_024 + stream % 60_000 AS client_port, format('10.9.0.{{}}', server + 1) AS server_ip, 443 AS server_port,
            opened_at, opened_at + "end" AS closed_at, 'client' AS opened_by, 'server' AS closed_by,
            1 + 20 * stream AS first_frame, 20 * stream + 19 AS last_frame,
            11 AS packets_client, 9 AS packets_server, 400 + hash(stream) % 900 AS bytes_client,
            hash(stream, 'bytes') % 90_000 AS bytes_server,
            0 AS retransmits_client, (stream % 97 = 0)::INTEGER AS retransmits_server, 0 AS syn_retransmits,
            0 AS out_of_order_client, 0 AS out_of_order_server, 0 AS zero_windows_client, 0 AS zero_windows_server,
            0 AS missing_client, 0 AS missing_server, 310 * {US} AS rtt_client_ns, 45 * {US} AS rtt_server_ns,
            'client' AS fin_by, 'complete' AS state, 'tls' AS app, 'server' AS vantage
        FROM opening JOIN laid_out USING (stream) WHERE place = {len(KINDS) - 1};

        INSERT INTO phases BY NAME
        SELECT stream, if(place % 2 = 0, 'client', 'server') AS start_by,
            if(place % 2 = 0, 'server', 'client') AS end_by,
            CASE WHEN place IN (2, 3, 4) THEN 0 END AS exchange, CASE place {number} END AS kind,
            opened_at + start AS start_at, opened_at + "end" AS end_at,
            1 + 20 * stream + 2 * place AS start_frame, 3 + 20 * stream + 2 * place AS end_frame,
            place IN (2, 3) AS inferred
        FROM laid_out JOIN opening USING (stream);

        INSERT INTO exchanges BY NAME
        SELECT stream, 0 AS number, 'tls' AS protocol, 'sealed' AS kind, request_at,
            request_at + request_ns AS request_done_at,
            request_at + request_ns + wait_ns AS response_at,
            request_at + request_ns + wait_ns + transfer_ns AS response_done_at,
            212 AS request_bytes, hash(stream, 'bytes') % 90_000 AS response_bytes, 5 + 20 * stream AS request_frame,
            9 + 20 * stream AS response_frame, request_ns, wait_ns, transfer_ns, true AS inferred, 0.9 AS confidence
        FROM (
            SELECT stream, min(opened_at + start) AS request_at,
                sum("end" - start) FILTER (place = 2)::BIGINT AS request_ns,
                sum("end" - start) FILTER (place = 3)::BIGINT AS wait_ns,
                sum("end" - start) FILTER (place = 4)::BIGINT AS transfer_ns
            FROM laid_out JOIN opening USING (stream) WHERE place IN (2, 3, 4) GROUP BY stream);

        INSERT INTO captures BY NAME
        SELECT 0 AS capture, 'crowd.pcap' AS path, 'pcap' AS format, 'EN10MB' AS link_types,
            20 * {connections} AS packets, 20 * {connections} AS selected, 9_000_000_000 AS bytes, 1 AS first_frame,
            min(opened_at) AS first_at, max(closed_at) AS last_at, 1_000 AS resolution_ns, false AS truncated,
            0 AS undecodable, 0 AS other, 0 AS snapped, 0 AS dropped, 0 AS duplicates, 'server' AS vantage, [] AS notes
        FROM connections;

        DROP TABLE laid_out; DROP TABLE opening;
        """
    )
