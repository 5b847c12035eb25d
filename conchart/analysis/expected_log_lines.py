"""What the access log of a proxy would have said of each request that it handed on, from the packets.

In: exchanges, connections, handshakes, links. Out: the table ``expected_log_lines``.

``docs/logs.md`` says for each field which packet starts and ends it, by the product's manual and source, and what the
field does not contain. Where the capture was not taken on the proxy, the way from it counts, too.
"""

from conchart.store.sql import MULTIPLEXED
from conchart.store.tables import Tables

# A backend connection that was opened after the request came was opened for it: products count its set-up. From a
# connection that was kept they count from when the request left.
_LOGGED = f"""
    INSERT INTO expected_log_lines BY NAME
    WITH linked AS (
        SELECT front_stream, front_exchange, back_stream, back_exchange, confidence
        FROM links WHERE front_exchange IS NOT NULL AND back_exchange IS NOT NULL),
    proxies AS (
        SELECT DISTINCT server_ip, server_port FROM linked JOIN connections ON stream = front_stream),
    ready AS (
        SELECT stream, min(ready_at) AS ready_at FROM handshakes WHERE number = 0 AND ready_at IS NOT NULL
        GROUP BY stream),
    backs AS (
        SELECT front_stream AS stream, front_exchange AS number, back_stream, back_exchange, linked.confidence,
            back.request_at AS sent_at, back.response_at AS answered_at, back.response_done_at AS received_at,
            syn_at AS back_syn_at, coalesce(ready_at, ack_at) AS set_up_at, back_exchange = 0 AS is_first
        FROM linked JOIN exchanges back ON back_stream = back.stream AND back_exchange = back.number
        JOIN connections ON connections.stream = back_stream LEFT JOIN ready ON ready.stream = back_stream
        -- Of several attempts, the last one was answered.
        QUALIFY row_number() OVER (PARTITION BY front_stream, front_exchange ORDER BY back.request_at DESC) = 1),
    fronts AS (
        SELECT exchanges.stream, exchanges.number, back_stream, back_exchange, backs.confidence, sent_at, answered_at,
            received_at, back_syn_at, set_up_at, {MULTIPLEXED} AS multiplexed,
            request_at, request_done_at, response_done_at, coalesce(body_at, request_done_at) AS headed_at, inferred,
            ack_at, coalesce(ready_at, ack_at) AS ready_at,
            -- A log ends when the kernel has the last byte: not before the proxy has it.
            greatest(response_at, received_at) AS written_at,
            coalesce(is_first AND back_syn_at >= request_at, false) AS opened
        FROM exchanges JOIN connections USING (stream) JOIN proxies USING (server_ip, server_port)
        LEFT JOIN ready USING (stream) LEFT JOIN backs USING (stream, number)
        WHERE protocol <> 'tls'),
    instants AS (
        SELECT *, if(opened, back_syn_at, sent_at) AS started_at, if(opened, set_up_at, sent_at) AS connected_at,
            lag(coalesce(written_at, response_done_at)) OVER (PARTITION BY stream ORDER BY number) AS before_at
        FROM fronts)
    SELECT stream, number AS exchange, back_stream, back_exchange, confidence, opened,
        written_at - request_at AS nginx_request_ns,
        connected_at - started_at AS nginx_upstream_connect_ns,
        answered_at - started_at AS nginx_upstream_header_ns,
        received_at - started_at AS nginx_upstream_response_ns,
        CASE WHEN multiplexed THEN NULL WHEN number = 0 THEN ready_at - ack_at ELSE 0 END AS haproxy_th_ns,
        CASE WHEN NOT multiplexed THEN request_at - if(number = 0, ready_at, before_at) END AS haproxy_ti_ns,
        headed_at - request_at AS haproxy_head_ns,
        greatest(started_at - headed_at, 0) AS haproxy_tw_ns,
        connected_at - started_at AS haproxy_tc_ns,
        answered_at - greatest(connected_at, headed_at) AS haproxy_answer_ns,
        written_at - request_at AS haproxy_ta_ns,
        written_at - request_at AS apache_ns,
        request_done_at - request_at AS envoy_request_ns,
        answered_at - request_at AS envoy_response_ns,
        written_at - answered_at AS envoy_response_tx_ns,
        written_at - request_at AS envoy_ns,
        response_done_at - written_at AS buffered_ns, inferred
    FROM instants
"""


def log_exchanges(tables: Tables) -> None:
    """Fill ``expected_log_lines``: one row per request that a proxy handed on."""
    tables.execute(_LOGGED)
