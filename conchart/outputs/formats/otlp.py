"""OTLP, as JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): spans for every tracing backend.

In: a trace. Out: one ``ExportTraceServiceRequest``, a resource per server. Every exchange is a span; its request, wait
and transfer are its children, so are the handshakes that its connection began with, and the exchanges that it caused
behind a proxy, and the stalls that held it up. What an exchange may have caused besides is told by links of spans. One
that nothing in the capture caused begins a trace, or goes on with the client's own, where ``traceparent`` names it.

Attributes have the names of OpenTelemetry's semantic conventions; what these do not have begins with ``conchart.``.

Ids are made of addresses and instants: the same capture gives the same spans, two captures do not give each other's.
"""

import json
from itertools import groupby
from typing import IO

from conchart.analysis.sights import once
from conchart.outputs.formats.exchanges import TIMED_EXCHANGES, first_after, parts
from conchart.outputs.formats.json import fetched, lines
from conchart.store.sql import GRPC_FAILED, GRPC_STATUS, RESUMED
from conchart.store.tables import Tables
from conchart.version import version

_INTERNAL, _SERVER = 1, 2
"""SpanKind."""
_ERROR = 2
"""StatusCode."""
_METHODS = ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE")
_HTTP = "protocol IN ('http/1.0', 'http/1.1', 'h2', 'grpc')"
_RPC = "protocol = 'grpc'"
_VERSION = (
    "CASE WHEN protocol IN ('h2', 'grpc') THEN '2' WHEN protocol LIKE 'http/%' THEN split_part(protocol, '/', 2) END"
)
_STATUS = f"CASE WHEN {GRPC_STATUS} THEN 200 WHEN {_HTTP} THEN status END"
_FAILED = f"({_HTTP} AND status >= 500 OR {GRPC_FAILED})"
_METHOD = f"CASE WHEN method IN {_METHODS} THEN method WHEN method IS NOT NULL THEN '_OTHER' END"
_LIKELY = 0.5
"""From this confidence on, what a proxy was asked is the parent of what it asked; below, a link."""
_KEY = "concat_ws(' ', stream, opened_at, transport, client_ip, client_port, server_ip, server_port)"


NAMES: set[str] = set()
"""Every attribute that can be written."""


def _attributes(**kinds: dict[str, str]) -> str:
    """Give the SQL for a list of attributes; those that are NULL are left out.

    Args:
        kinds: By kind of value (``string``, ``int``, ``bool``, ``double``): the SQL of each, by the attribute's name.
    """
    NAMES.update(name for values in kinds.values() for name in values)
    each = [
        f"CASE WHEN ({value}) IS NOT NULL THEN json_object('key', '{name}', 'value', "
        f"json_object('{kind}Value', {f'({value})::VARCHAR' if kind == 'int' else value})) END"
        for kind, values in kinds.items()
        for name, value in values.items()
    ]
    return f"list_filter([{', '.join(each)}], lambda attribute: attribute IS NOT NULL)"


_EXCHANGE = _attributes(
    string={
        "http.request.method": f"CASE WHEN {_HTTP} THEN {_METHOD} END",
        "http.request.method_original": f"CASE WHEN {_HTTP} AND method NOT IN {_METHODS} THEN method END",
        "url.scheme": f"CASE WHEN {_HTTP} THEN CASE WHEN secure THEN 'https' ELSE 'http' END END",
        "url.path": f"CASE WHEN {_HTTP} THEN split_part(target, '?', 1) END",
        "url.query": f"CASE WHEN {_HTTP} AND contains(target, '?') THEN substr(target, strpos(target, '?') + 1) END",
        "user_agent.original": "user_agent",
        "dns.question.name": "dns_name",
        "server.address": "coalesce(nullif(regexp_replace(host, ':[0-9]+$', ''), ''), server_name, server_ip)",
        "client.address": "client_ip",
        "network.peer.address": "client_ip",
        "network.local.address": "server_ip",
        "network.transport": "transport",
        "network.protocol.name": f"CASE WHEN {_HTTP} THEN 'http' ELSE protocol END",
        "network.protocol.version": _VERSION,
        "error.type": f"CASE WHEN {_FAILED} THEN status_text END",
        "rpc.system.name": f"CASE WHEN {_RPC} THEN 'grpc' END",
        "rpc.method": f"CASE WHEN {_RPC} THEN nullif(ltrim(target, '/'), '') END",
        "rpc.response.status_code": f"CASE WHEN {GRPC_STATUS} THEN status_text END",
        "conchart.wireshark": "printf('%s.stream eq %d', transport, transport_stream)",
        "conchart.client.process": "client_process",
        "conchart.client.container": "client_container",
        "conchart.client.pod": "client_pod",
        "conchart.link.method": "link_method",
    },
    int={
        "conchart.client.pid": "client_pid",
        "http.response.status_code": _STATUS,
        "http.request.size": f"CASE WHEN {_HTTP} THEN request_bytes END",
        "http.response.size": f"CASE WHEN {_HTTP} THEN response_bytes END",
        "server.port": "server_port",
        "client.port": "client_port",
        "network.peer.port": "client_port",
        "network.local.port": "server_port",
        "conchart.stream": "stream",
        "conchart.exchange": "number",
        "conchart.request_frame": "request_frame",
        "conchart.response_frame": "response_frame",
    },
    bool={"conchart.inferred": "inferred"},
    double={"conchart.confidence": "confidence", "conchart.link.confidence": "link_confidence"},
)
_CONNECT = _attributes(
    string={
        "network.peer.address": "client_ip",
        "network.local.address": "server_ip",
        "network.transport": "transport",
        "conchart.wireshark": "printf('%s.stream eq %d', transport, transport_stream)",
    },
    int={"network.peer.port": "client_port", "network.local.port": "server_port", "conchart.stream": "stream"},
)
_TLS = _attributes(
    string={
        "tls.protocol.name": "lower(left(version, 3))",
        "tls.protocol.version": "split_part(version, 'v', 2)",
        "tls.cipher": "cipher",
        "tls.curve": "named_group",
        "tls.next_protocol": "alpn",
        "tls.client.ja3": "ja3",
        "server.address": "sni",
        "conchart.tls.ja4": "ja4",
        "conchart.tls.kind": "kind",
    },
    int={"conchart.stream": "stream", "conchart.handshake": "number", "conchart.tls.round_trips": "round_trips"},
    bool={"tls.established": "outcome = 'complete'", "tls.resumed": RESUMED, "conchart.inferred": "inferred"},
)
_STALL = _attributes(
    string={
        "conchart.stall.kind": "phase_stalls.kind::VARCHAR",
        "conchart.stall.detail": "phase_stalls.detail::VARCHAR",
        "conchart.stall.side": "phase_stalls.side::VARCHAR",
    },
    int={
        "conchart.stream": "phase_stalls.stream",
        "conchart.exchange": "phase_stalls.exchange",
        "conchart.stall.start_frame": "phase_stalls.start_frame",
        "conchart.stall.end_frame": "phase_stalls.end_frame",
    },
    double={"conchart.confidence": "phase_stalls.confidence"},
)
_LINK = _attributes(
    string={"conchart.link.method": "links.method"}, double={"conchart.link.confidence": "links.confidence"}
)
_RESOURCE = _attributes(
    string={
        "service.name": "coalesce(names[1], instance)",
        "service.instance.id": "instance",
        "process.executable.name": "nullif(split_part(process, '/', -1), '')",
        "process.executable.path": "CASE WHEN starts_with(process, '/') THEN process END",
        "container.name": "container",
        "container.id": "container_id",
        "k8s.pod.name": "split_part(pod, '/', -1)",
        "k8s.namespace.name": "CASE WHEN contains(pod, '/') THEN split_part(pod, '/', 1) END",
    },
    int={"process.pid": "pid"},
)
"""Of a server, and of the process that owns its sockets."""
_PART = _attributes(int={"conchart.stream": "stream", "conchart.exchange": "number"})

_TRACES = f"""
    WITH RECURSIVE requests AS ({TIMED_EXCHANGES}),
    stream_keys AS (SELECT stream, md5({_KEY}) AS key FROM connections),
    causes AS (
        SELECT back_stream AS stream, back_exchange AS number, front_stream, front_exchange,
            method AS link_method, links.confidence AS link_confidence
        FROM links SEMI JOIN requests ON stream = front_stream AND number = front_exchange
        WHERE links.confidence >= {_LIKELY}
        WINDOW likely AS (
            PARTITION BY back_stream, back_exchange ORDER BY links.confidence DESC, front_stream, front_exchange)
        QUALIFY row_number() OVER likely = 1),
    rooted AS (
        SELECT stream, number, stream AS root, number AS root_number, 0 AS depth
        FROM requests ANTI JOIN causes USING (stream, number)
        UNION ALL
        SELECT causes.stream, causes.number, root, root_number, depth + 1
        FROM causes JOIN rooted ON front_stream = rooted.stream AND front_exchange = rooted.number
        WHERE causes.number IS NOT NULL),
    announced AS (
        SELECT root, root_number, first(id ORDER BY depth, stream, number) AS trace
        FROM (
            SELECT rooted.*, regexp_extract(unnest(ids), '^traceparent:([0-9a-f]{{32}})$', 1) AS id
            FROM rooted JOIN exchanges USING (stream, number))
        WHERE trim(id, '0') <> '' GROUP BY ALL),
    traced AS (
        SELECT rooted.stream, rooted.number, left(md5(printf('%s %d', own.key, rooted.number)), 16) AS span,
            coalesce(trace, md5(printf('trace %s %d', roots.key, root_number))) AS trace
        FROM rooted JOIN stream_keys own USING (stream) JOIN stream_keys roots ON roots.stream = root
        LEFT JOIN announced USING (root, root_number)),
    request_spans AS (
        SELECT requests.*, traced.trace, traced.span, link_method, link_confidence,
            -- What traceparent names is the client's own span, which is not in the capture.
            CASE WHEN causes.stream IS NOT NULL THEN up.span
                WHEN list_contains(ids, 'traceparent:' || traced.trace) THEN parent_span END AS parent
        FROM requests JOIN traced USING (stream, number) LEFT JOIN causes USING (stream, number)
        LEFT JOIN traced up ON up.stream = front_stream AND up.number = front_exchange),
    others AS (
        SELECT back_stream AS stream, back_exchange AS number, list(json_object(
            'traceId', traced.trace, 'spanId', traced.span, 'attributes', {_LINK}) ORDER BY links.confidence DESC)
                AS others
        FROM links ANTI JOIN causes ON causes.stream = back_stream AND causes.number = back_exchange
            AND causes.front_stream = links.front_stream AND causes.front_exchange = links.front_exchange
        JOIN traced ON traced.stream = links.front_stream AND traced.number = links.front_exchange
        WHERE back_exchange IS NOT NULL GROUP BY ALL),
    owned AS (
        SELECT server_ip, server_port,
            concat(if(contains(server_ip, ':'), '[' || server_ip || ']', server_ip), ':', server_port) AS instance,
            CASE WHEN count(DISTINCT server_pid) = 1 THEN any_value(server_pid) END AS pid,
            CASE WHEN count(DISTINCT server_process) = 1 THEN any_value(server_process) END AS process,
            CASE WHEN count(DISTINCT server_container) = 1 THEN any_value(server_container) END AS container,
            CASE WHEN count(DISTINCT server_container_id) = 1 THEN any_value(server_container_id) END AS container_id,
            CASE WHEN count(DISTINCT server_pod) = 1 THEN any_value(server_pod) END AS pod
        FROM connections GROUP BY ALL),
    secured AS (SELECT stream, min(hello_at) AS hello_at FROM handshakes GROUP BY ALL),
    openings AS (
        SELECT stream, 'connect' AS name, start_at, end_at, NULL AS handshake FROM phases WHERE kind = 'syn'
        UNION ALL
        SELECT stream, 'tls handshake', hello_at, coalesce(ready_at, end_at, hello_at), number
        FROM handshakes LEFT JOIN (
            SELECT stream, handshake AS number, max(end_at) AS end_at FROM phases WHERE kind = 'tls' GROUP BY ALL)
            USING (stream, number)
        WHERE hello_at IS NOT NULL),
    opened AS (
        SELECT openings.* EXCLUDE (for_exchange),
            CASE WHEN causes.stream IS NULL THEN openings.stream ELSE front_stream END AS by_stream,
            CASE WHEN causes.stream IS NULL THEN for_exchange ELSE front_exchange END AS by_exchange
        FROM ({first_after("openings", "requests")}) AS openings
        LEFT JOIN (FROM causes WHERE number IS NULL) AS causes USING (stream)),
    opening_spans AS (
        SELECT opened.*, left(md5(concat_ws(' ', key, name, handshake, start_at, end_at)), 16) AS span,
            traced.span AS parent, coalesce(trace, md5('trace ' || key)) AS trace
        FROM opened JOIN stream_keys USING (stream)
        LEFT JOIN traced ON traced.stream = by_stream AND traced.number = by_exchange),
    stalled_spans AS (
        SELECT phase_stalls.stream, coalesce(traced.trace, opening.trace, md5('trace ' || key)) AS trace,
            -- What held up a handshake lies in its span.
            coalesce(traced.span, opening.span) AS parent,
            left(md5(concat_ws(' ', 'stall', key, kind, phase_stalls.start_at, phase_stalls.end_at, start_frame,
                exchange, phase)), 16) AS span,
            'stall ' || kind AS name, phase_stalls.start_at, phase_stalls.end_at, {_STALL} AS attributes
        FROM phase_stalls JOIN stream_keys USING (stream)
        LEFT JOIN traced ON traced.stream = phase_stalls.stream AND traced.number = phase_stalls.exchange
        ASOF LEFT JOIN opening_spans AS opening
            ON opening.stream = phase_stalls.stream AND opening.start_at <= phase_stalls.start_at),
    drawn AS (
        SELECT stream, trace, span, parent, coalesce(
                CASE WHEN {_RPC} THEN nullif(ltrim(target, '/'), '') WHEN {_HTTP} THEN method END, protocol) AS name,
            {_SERVER} AS kind, start_at, end_at, {_EXCHANGE} AS attributes, others,
            CASE WHEN {_FAILED} THEN ''
                WHEN {_HTTP} AND response_at IS NULL THEN 'no response in the capture' END AS error
        FROM (
            SELECT request_spans.*, coalesce(hello_at <= start_at, false) AS secure, server_name,
                client_ip, client_port, server_ip, server_port, transport, transport_stream,
                client_pid, client_process, client_container, client_pod, others
            FROM request_spans JOIN connections USING (stream) LEFT JOIN secured USING (stream)
            LEFT JOIN others USING (stream, number))
        UNION ALL
        SELECT stream, trace, left(md5(concat_ws(' ', span, part)), 16), span, part, {_INTERNAL}, part_at, part_done_at,
            {_PART}, NULL, NULL
        FROM ({parts("request_spans")})
        UNION ALL
        SELECT stream, trace, span, parent, name, {_INTERNAL}, start_at, end_at, {_CONNECT}, NULL,
            CASE WHEN state IN ('abandoned', 'refused', 'unanswered') THEN state END
        FROM opening_spans JOIN connections USING (stream) WHERE handshake IS NULL
        UNION ALL
        SELECT stream, trace, span, parent, name, {_INTERNAL}, start_at, end_at, {_TLS}, NULL,
            CASE WHEN outcome = 'failed' THEN coalesce(alert, outcome) END
        FROM opening_spans JOIN (SELECT * EXCLUDE (number), number AS handshake, number FROM handshakes)
            USING (stream, handshake)
        UNION ALL
        SELECT stream, trace, span, parent, name, {_INTERNAL}, start_at, end_at, attributes, NULL, NULL
        FROM stalled_spans)
    SELECT rank, json_object('attributes', {_RESOURCE}) AS resource, json_merge_patch('{{}}', json_object(
        'traceId', trace, 'spanId', span, 'parentSpanId', parent, 'name', name, 'kind', kind,
        'startTimeUnixNano', start_at::VARCHAR, 'endTimeUnixNano', end_at::VARCHAR, 'attributes', attributes,
        'links', others,
        'status', CASE WHEN error IS NOT NULL THEN json_object('code', {_ERROR}, 'message', error) END)) AS document
    FROM drawn JOIN connections USING (stream) JOIN servers USING (server_ip, server_port)
    JOIN owned USING (server_ip, server_port)
    ORDER BY rank, start_at, end_at DESC, trace, span
"""


@once
def dump_otlp(tables: Tables, sink: IO[str]) -> None:
    """Write the request, server by server in the order in which page and terminal list them, spans by their start."""
    scope = json.dumps({"name": "conchart", "version": version()})
    sink.write('{"resourceSpans": [')
    servers = groupby(fetched(tables.sql(_TRACES)), key=lambda row: row[:2])
    for number, ((_, resource), rows) in enumerate(servers):
        sink.write(
            ("," if number else "") + f'\n{{"resource": {resource}, "scopeSpans": [{{"scope": {scope}, "spans": ['
        )
        sink.writelines(lines(document for (*_, document) in rows))
        sink.write("]}]}")
    sink.write("]}\n")
