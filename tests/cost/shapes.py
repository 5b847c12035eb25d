"""Made-up captures of every shape, of any size, written into the tables by DuckDB itself.

In: a trace without rows, a size. Out: the tables as the core would fill them. A shape says how it differs from the
plain one, in which each connection has a client and a server of its own, and asks one request: columns as SQL of
``i``, the number of the connection, and ``k``, that of the request on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from conchart import Trace
from tests.charts.story import START_AT

Columns = Mapping[str, str]
"""Column and the SQL that fills it; ``{n}`` is the size."""

_CONNECTION = {
    "stream": "i::INTEGER",
    "capture": "0",
    "transport": "'tcp'",
    "transport_stream": "i::INTEGER",
    "server_name": "'www.example.com'",
    "client_ip": "address('10.1', i)",
    "client_port": "1_024 + i % 60_000",
    "server_ip": "address('10.2', i)",
    "server_port": "443",
    "opened_by": "'client'",
    "closed_by": "'server'",
    "first_frame": "1 + 20 * i",
    "last_frame": "20 * i + 19",
    "syn_at": "opened_at",
    "syn_ack_at": "opened_at + syn - 100_000",
    "ack_at": "opened_at + syn",
    "packets_client": "11",
    "packets_server": "9",
    "bytes_client": "400 + hash(i) % 900",
    "bytes_server": "1_400 + hash(i, 'bytes') % 90_000",
    "retransmits_client": "0",
    "retransmits_server": "0",
    "syn_retransmits": "0",
    "syn_ack_retransmits": "0",
    "out_of_order_client": "0",
    "out_of_order_server": "0",
    "zero_windows_client": "0",
    "zero_windows_server": "0",
    "missing_client": "0",
    "missing_server": "0",
    "ttl_client": "64",
    "ttl_server": "64",
    "mac_client": "'02:00:00:00:00:01'",
    "mac_server": "'02:00:00:00:00:02'",
    "isn_client": "(hash(i, 'isn') % 4_000_000_000)::BIGINT",
    "isn_server": "(hash(i, 'isn of the server') % 4_000_000_000)::BIGINT",
    "rtt_client_ns": "100_000",
    "rtt_server_ns": "200_000",
    "least_rtt_client_ns": "100_000",
    "least_rtt_server_ns": "200_000",
    "fin_by": "'client'",
    "state": "'complete'",
    "app": "'tls'",
}
_EXCHANGE = {
    "stream": "stream",
    "number": "k::INTEGER",
    "request_at": "begun_at + k * each",
    "request_done_at": "begun_at + k * each + 100_000",
    "response_at": "begun_at + k * each + 100_000 + wait",
    "response_done_at": "begun_at + k * each + 200_000 + wait",
    "protocol": "'http/1.1'",
    "kind": "'web'",
    "method": "'GET'",
    "host": "'www.example.com'",
    "target": "'/page/' || (hash(i, k) % 100_000)",
    "status": "200",
    "user_agent": "'curl/8.5.0'",
    "server_software": "'nginx/1.22.1'",
    "request_bytes": "200 + hash(i, k) % 90",
    "response_bytes": "900 + hash(i, k, 'bytes') % 90_000",
    "request_frame": "5 + 20 * i",
    "response_frame": "9 + 20 * i",
    "request_ns": "100_000",
    "wait_ns": "wait",
    "transfer_ns": "100_000",
    "client_keepalive": "true",
    "server_keepalive": "true",
    "inferred": "false",
    "confidence": "1.0",
}
_HANDSHAKE = {
    "stream": "stream",
    "number": "0",
    "hello_at": "opened_at + syn",
    "server_hello_at": "opened_at + syn + 200_000",
    "ready_at": "begun_at",
    "complete_at": "begun_at",
    "version": "'TLSv1.3'",
    "sni": "'www.example.com'",
    "alpn": "'http/1.1'",
    "client_random": "md5(i::VARCHAR)",
    "kind": "'full'",
    "outcome": "'complete'",
    "ticket_offered": "true",
    "ticket_issued": "true",
    "ja4": "'t13d'",
    "certificates": "2",
    "certificate_bytes": "2_410",
    "bytes_client": "412",
    "bytes_server": "3_204",
    "round_trips": "1",
    "client_compute_ns": "50_000",
    "server_compute_ns": "900_000",
    "inferred": "false",
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How a capture differs from the plain one."""

    name: str
    connections: str = "{n}"
    """How many."""
    request_count: str = "1"
    """How many requests a connection has, as SQL."""
    opened: str = "i * 3_000_000"
    """When a connection opens, in nanoseconds after the first."""
    lasting: str = "0"
    """For how long it stays open when its last request is answered, in nanoseconds."""
    each: str = "6_000_000"
    """From one request to the next, in nanoseconds."""
    wait: str = "4_000_000"
    """From a request to its response, in nanoseconds."""
    syn: str = "300_000"
    """From the first SYN to the end of the three-way handshake, in nanoseconds."""
    ends: Columns = field(default_factory=dict)
    """Of connections."""
    requests: Columns = field(default_factory=dict)
    """Of exchanges."""
    tls: Columns | None = None
    """Of handshakes; None where there are none."""
    stalls: str = "0"
    """How many a connection has: each a retransmission of a SYN, or of what the server sends, one after the other."""
    full: int = 20_000
    """The size at which ``python -m tests.cost`` measures it."""


def fill(trace: Trace, shape: Shape, size: int) -> None:
    """Fill a trace's tables, which are empty, with a capture of this shape."""

    def sized(text: str) -> str:
        return text.replace("{n}", f"{size}::BIGINT")

    def columns(usual: Columns, own: Columns) -> str:
        expressions = ", ".join(f"{value} AS {name}" for name, value in {**usual, **own}.items())
        return sized(expressions)

    tls = 0 if shape.tls is None else 2_000_000
    trace.execute(
        f"""
        CREATE OR REPLACE TEMP MACRO address(net, i) AS format('{{}}.{{}}.{{}}', net, i // 250 % 250, i % 250 + 1);
        CREATE TEMP TABLE planned AS
        SELECT *, opened_at + syn + {tls} AS begun_at,
            opened_at + syn + 50_000 + {tls} + request_count * each + ({sized(shape.lasting)}) AS closed_at
        FROM (
            SELECT i, i::INTEGER AS stream, {START_AT} + ({sized(shape.opened)})::BIGINT AS opened_at,
                ({sized(shape.request_count)})::BIGINT AS request_count, ({sized(shape.each)})::BIGINT AS each,
                ({sized(shape.wait)})::BIGINT AS wait,
                ({sized(shape.syn)})::BIGINT AS syn, ({sized(shape.stalls)})::BIGINT AS stalls
            FROM range({sized(shape.connections)}) AS t(i));
        CREATE TEMP TABLE planned_requests AS SELECT *, unnest(range(request_count)) AS k FROM planned;

        INSERT INTO connections BY NAME
        SELECT opened_at, closed_at, {columns(_CONNECTION, shape.ends)} FROM planned;

        INSERT INTO exchanges BY NAME SELECT {columns(_EXCHANGE, shape.requests)} FROM planned_requests;

        INSERT INTO phases BY NAME
        SELECT stream, exchange::INTEGER AS exchange, kind, start_at, end_at, 'client' AS start_by, 'server' AS end_by,
            1 + 20 * stream AS start_frame, 3 + 20 * stream AS end_frame, false AS inferred
        FROM (
            SELECT stream, NULL AS exchange, 'syn' AS kind, opened_at AS start_at, opened_at + syn AS end_at
            FROM planned
            UNION ALL SELECT stream, NULL, 'tls', opened_at + syn, begun_at FROM planned
            UNION ALL SELECT stream, k, 'request', begun_at + k * each, begun_at + k * each + 100_000
            FROM planned_requests
            UNION ALL SELECT stream, k, 'wait', begun_at + k * each + 100_000, begun_at + k * each + 100_000 + wait
            FROM planned_requests
            UNION ALL SELECT stream, k, 'transfer', begun_at + k * each + 100_000 + wait,
                begun_at + k * each + 200_000 + wait FROM planned_requests
            UNION ALL SELECT stream, NULL, 'idle', begun_at + k * each + 200_000 + wait, begun_at + (k + 1) * each
            FROM planned_requests
            UNION ALL SELECT stream, NULL, 'idle', begun_at + request_count * each, closed_at - 50_000 FROM planned
            UNION ALL SELECT stream, NULL, 'close', closed_at - 50_000, closed_at FROM planned)
        WHERE end_at > start_at;

        INSERT INTO stalls BY NAME
        SELECT stream, if(k = 0, 'syn-rto', 'rto') AS kind, if(k > 0, 'tail', NULL) AS detail,
            if(k = 0, 'client', 'server') AS side, if(k = 0, opened_at, begun_at + k * each + 100_000) AS start_at,
            if(k = 0, opened_at + syn - 200_000, begun_at + k * each + 1_100_000) AS end_at,
            'client' AS start_by, 'server' AS end_by, 1 + 20 * i AS start_frame, 3 + 20 * i AS end_frame,
            3 + 20 * i AS released_frame, 0.9 AS confidence
        FROM (SELECT *, unnest(range(stalls)) AS k FROM planned);

        INSERT INTO captures BY NAME
        SELECT 0 AS capture, 'shape.pcap' AS path, 'pcap' AS format, 'EN10MB' AS link_types, 20 * count(*) AS packets,
            20 * count(*) AS selected, 9_000 * count(*) AS bytes, 1 AS first_frame, min(opened_at) AS first_at,
            max(closed_at) AS last_at, 1_000 AS resolution_ns, false AS truncated, 0 AS undecodable, 0 AS other,
            0 AS snapped, 0 AS dropped, 0 AS duplicates, [] AS notes
        FROM connections;
        """
    )
    if shape.tls is not None:
        trace.execute(f"INSERT INTO handshakes BY NAME SELECT {columns(_HANDSHAKE, shape.tls)} FROM planned")
    trace.execute("DROP TABLE planned; DROP TABLE planned_requests")


_LOOPBACK = {"client_ip": "'127.0.0.1'", "server_ip": "'127.0.0.1'", "local_end": "'both'"}
_HALF = "i < {n} // 2"
_EVEN = "i % 2 = 0"
# Of pairs, the even one is a request to a proxy, the odd one what the proxy asks for it.
_PAIR_OPENED = "i // 2 * 9_000_000 + i % 2 * 800_000"
_PAIR_WAIT = f"if({_EVEN}, 5_000_000, 1_000_000)"

SHAPES = (
    Shape(name="plain", tls={}),
    Shape(name="one endpoint on loopback", ends={**_LOOPBACK}, tls={}, full=200_000),
    Shape(
        name="a host calls itself on a LAN address",
        ends={"client_ip": "'192.168.7.1'", "server_ip": "'192.168.7.1'", "server_port": "if(i % 3 = 0, 443, 8_080)"},
    ),
    Shape(name="a host calls itself on many ports", ends={**_LOOPBACK, "server_port": "1_024 + i"}),
    Shape(
        name="a host serves many and calls many",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_HALF}, address('10.1', i), '10.3.0.1')",
            "server_ip": f"if({_HALF}, '10.3.0.1', address('10.2', i))",
        },
        request_count="0",
    ),
    Shape(
        name="a host serves many ports and calls many ports",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_HALF}, '10.1.0.1', '10.3.0.1')",
            "server_ip": f"if({_HALF}, '10.3.0.1', '10.2.0.1')",
            "server_port": "1_024 + i",
        },
        request_count="0",
    ),
    Shape(
        name="many ports, linked",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_EVEN}, address('10.1', i), '10.3.0.1')",
            "server_ip": f"if({_EVEN}, '10.3.0.1', '10.2.0.1')",
            "server_port": "1_024 + i",
        },
        opened=_PAIR_OPENED,
        wait=_PAIR_WAIT,
    ),
    Shape(
        name="own addresses, half serve, half call",
        ends={
            "client_ip": f"if({_HALF}, '10.9.0.1', address('10.3', i))",
            "server_ip": f"if({_HALF}, address('10.3', i), '10.9.0.2')",
            "local_end": f"if({_HALF}, 'server', 'client')",
        },
    ),
    Shape(
        name="many clients, many servers",
        connections="4 * {n}",
        ends={"client_ip": "address('10.1', i % {n})", "server_ip": "address('10.2', i // 4)"},
    ),
    Shape(
        name="everybody calls everybody",
        connections="4 * {n}",
        ends={
            "client_ip": "address('10.1', hash(i) % {n})",
            "server_ip": "address('10.1', hash(i, 'server') % {n})",
        },
    ),
    Shape(
        name="one card, many addresses",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_HALF}, '10.9.0.1', address('10.3', i))",
            "server_ip": f"if({_HALF}, address('10.3', i), '10.9.0.2')",
            "mac_client": f"if({_HALF}, '02:00:00:00:00:01', '02:00:00:00:00:02')",
        },
    ),
    Shape(
        name="a scan of ports",
        opened="i * 100_000",
        request_count="0",
        ends={
            "client_ip": "'10.1.0.1'",
            "server_ip": "'10.2.0.1'",
            "server_port": "i + 1",
            "state": "'refused'",
            "syn_ack_at": "NULL",
            "ack_at": "NULL",
        },
        full=60_000,
    ),
    Shape(name="many clients of one server", ends={"server_ip": "'10.2.0.1'"}, tls={}, full=200_000),
    Shape(
        name="one client of one server, all at once",
        ends={"client_ip": "'10.1.0.1'", "server_ip": "'10.2.0.1'"},
        opened="i * 1_000",
        lasting="{n} * 6_000_000",
        tls={},
    ),
    Shape(name="many requests on one connection", connections="1", request_count="{n}", full=500_000),
    Shape(
        name="requests at once on one connection",
        connections="1",
        request_count="{n}",
        requests={
            "protocol": "'h2'",
            "request_at": "begun_at + k * 1_000",
            "request_done_at": "begun_at + k * 1_000",
        },
        full=500_000,
    ),
    Shape(
        name="lookups on one socket",
        connections="1",
        request_count="{n}",
        ends={
            "transport": "'udp'",
            "server_port": "53",
            "app": "'dns'",
            "syn_at": "NULL",
            "syn_ack_at": "NULL",
            "ack_at": "NULL",
        },
        requests={
            "protocol": "'dns'",
            "kind": "'name'",
            "method": "'A'",
            "status": "k % 4",
            "host": "'h' || k || '.example'",
            "dns_over": "'udp'",
            "dns_type": "'A'",
            "dns_name": "'h' || k || '.example'",
            "dns_rcode": "k % 4",
        },
        full=300_000,
    ),
    Shape(
        name="proxied pairs",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_EVEN}, '10.1.0.1', '10.3.0.1')",
            "server_ip": f"if({_EVEN}, '10.3.0.1', '10.2.0.1')",
        },
        opened=_PAIR_OPENED,
        wait=_PAIR_WAIT,
    ),
    Shape(
        name="proxied pairs, all at once",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_EVEN}, address('10.1', i), '10.3.0.1')",
            "server_ip": f"if({_EVEN}, '10.3.0.1', '10.2.0.1')",
        },
        opened=f"i // 2 * 10_000 + if({_EVEN}, 0, {{n}} * 10_000)",
        wait=f"if({_EVEN}, {{n}} * 30_000, 1_000_000)",
        each=f"if({_EVEN}, {{n}} * 31_000, 6_000_000)",
        requests={"ids": "[md5((i // 2)::VARCHAR)]"},
    ),
    Shape(
        name="two networks of one proxy",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_EVEN}, address('10.1', i), '10.4.0.1')",
            "server_ip": f"if({_EVEN}, '10.3.0.1', '10.2.0.1')",
            "mac_client": f"if({_EVEN}, '02:00:00:00:00:01', '02:00:00:00:00:03')",
        },
        opened=_PAIR_OPENED,
        wait=_PAIR_WAIT,
    ),
    Shape(
        name="many names",
        ends={"server_ip": "'10.2.0.1'", "server_name": "'h' || i || '.example'"},
        tls={"sni": "'h' || i || '.example'"},
        requests={"host": "'h' || i || '.example'"},
    ),
    Shape(
        name="many handshakes and many stalls of one server",
        ends={"client_ip": "address('10.1', i % 9)", "server_ip": "'10.2.0.1'"},
        # Each follows the one before, and some overlap the next ones.
        opened="i * 3_000_000",
        request_count="2",
        stalls="2",
        tls={"hello_at": "opened_at + syn + 150_000_000 + hash(i) % 90_000_000"},
        full=50_000,
    ),
    Shape(name="many findings", stalls="1", syn="1_000_300_000", ends={"syn_retransmits": "1"}),
    Shape(
        name="one request, for which a proxy tries many backends at once",
        connections="3 * {n} + 2",
        request_count="(i < 2)::INTEGER",
        ends={
            "client_ip": "if(i = 0, '10.1.0.1', '10.3.0.1')",
            "server_ip": "if(i = 0, '10.3.0.1', address('10.2', (i + 1) // 3))",
            "state": "if(i > 1 AND i % 3 > 0, 'unanswered', 'complete')",
            "syn_retransmits": "(i > 1 AND i % 3 > 0)::INTEGER",
        },
        opened="i * 1_000_000",
        lasting="if(i = 0, 0, {n} * 900_000)",
        wait="if(i = 0, {n} * 4_000_000 + 2_000_000_000, 40_000_000)",
        each="if(i = 0, {n} * 4_000_000 + 2_100_000_000, 45_000_000)",
    ),
    Shape(
        name="one request, backends one after the other",
        connections="2",
        request_count="if(i = 0, 1, {n})",
        ends={
            "client_ip": "if(i = 0, '10.1.0.1', '10.3.0.1')",
            "server_ip": "if(i = 0, '10.3.0.1', '10.2.0.1')",
        },
        opened="i * 1_000_000",
        wait="if(i = 0, {n} * 6_000_000 + 4_000_000, 4_000_000)",
        each="if(i = 0, {n} * 6_000_000 + 5_000_000, 6_000_000)",
        stalls="if(i = 0, 0, {n})",
        requests={"ids": "['one']"},
    ),
    Shape(
        name="pending requests, many addresses that forward",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_HALF}, '10.1.0.1', address('10.3', i))",
            "server_ip": f"if({_HALF}, address('10.4', i), '10.2.0.1')",
        },
        opened=f"if({_HALF}, i * 1_000, {{n}} * 1_000 + i * 1_000)",
        wait=f"if({_HALF}, {{n}} * 6_000_000, 4_000_000)",
        each=f"if({_HALF}, {{n}} * 6_000_000 + 1_000_000, 6_000_000)",
        requests={"forwarded_for": f"if({_HALF}, NULL, '10.1.0.1')"},
    ),
    Shape(
        name="requests at once, each forwarded for one client",
        connections="2",
        request_count="{n}",
        ends={
            "client_ip": "if(i = 0, '10.1.0.1', '10.3.0.1')",
            "server_ip": "if(i = 0, '10.3.0.1', '10.2.0.1')",
        },
        opened="i * 1_000",
        requests={
            "request_at": "begun_at + k * 1_000",
            "request_done_at": "begun_at + k * 1_000",
            "forwarded_for": "if(i = 0, NULL, '10.1.0.1')",
        },
    ),
    Shape(
        name="one long connection with many stalls",
        connections="1",
        request_count="{n}",
        stalls="{n}",
        full=500_000,
    ),
    Shape(
        name="echoes of one size between many ports",
        ends={
            "client_ip": "address('10.1', i)",
            "server_ip": "'10.2.0.1'",
            "server_port": "1_024 + i",
            "bytes_client": "1_000",
            "bytes_server": "1_000",
        },
        lasting="{n} * 6_000_000",
    ),
    Shape(
        name="one announced client, its port used again",
        connections="2 * {n}",
        ends={
            "client_ip": f"if({_EVEN}, '10.1.0.1', '10.3.0.1')",
            "client_port": "4_000",
            "server_ip": f"if({_EVEN}, '10.3.0.1', '10.2.0.1')",
            "announced_ip": f"if({_EVEN}, NULL, '10.1.0.1')",
            "announced_port": f"if({_EVEN}, NULL, 4_000)",
        },
        lasting="{n} * 9_000_000",
        opened=_PAIR_OPENED,
        wait=_PAIR_WAIT,
    ),
    Shape(
        name="one ClientHello, sent over and over",
        ends={"client_ip": "'10.1.0.1'", "isn_client": "1", "isn_server": "2"},
        tls={"client_random": "'same'"},
    ),
    Shape(
        name="a proxy tries backends in vain",
        connections="3 * {n}",
        ends={
            "client_ip": "if(i % 3 = 0, '10.1.0.1', '10.3.0.1')",
            "server_ip": "if(i % 3 = 0, '10.3.0.1', if(i % 3 = 1, '10.2.0.1', address('10.2', i)))",
            "state": "if(i % 3 = 2, 'refused', 'complete')",
        },
        request_count="if(i % 3 = 2, 0, 1)",
        opened="i // 3 * 9_000_000 + i % 3 * 800_000",
        wait="if(i % 3 = 0, 5_000_000, 1_000_000)",
        each="if(i % 3 = 0, 6_000_000, 2_000_000)",
    ),
)
