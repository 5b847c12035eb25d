"""Addresses that belong to one machine, and connections that a machine forwards unchanged.

In: connections, handshakes and exchanges of a trace. Out: temporary tables for ``hops``: ``machines`` (address,
machine) of those that accept and open connections, and ``through`` (front_stream, back_stream). A proxy often has an
address in each of its networks. The evidence that they are one machine is the user's option (``--proxy``), the
capturing machine's own packets in a cooked capture, forwarded data (PROXY protocol, X-Forwarded-For, a ClientHello), a
network card, or finally time: the requests that one address sends lie within those that the other one received.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from conchart.store.sql import CAUSES_UNTIL, TURNS
from conchart.store.tables import Tables

SKEW_NS = 20_000
"""As the native core's linking has it: clocks of two interfaces may disagree by so much."""
MOST_STRANGERS = 16
"""Servers, and clients, whose times are compared: those that ask and are asked the most."""
MOST_ADDRESSES = 8
"""Of one network card; behind one that has more, there is a network."""
MOST_HANDED = 8
"""Connections that one is handed on through; what more of them have alike was crafted or replayed. Also how many are
looked at where many may be the one that is handed on: the last from an announced address, the nearest with as many
bytes."""
MOST_PENDING = 8
"""Of a client's requests: one that a proxy hands on is among the last so many."""
MOST_COMPARED = 200
"""Exchanges of a pair that are compared."""
MOST_BEGUN = 64
"""Waits that began before an exchange and are looked at for the one that it belongs to."""
LEAST_NESTED = 0.8
"""Share of a client's exchanges that lie within waits for a server, if they are one machine."""
FEW = 8
"""Exchanges that may be nested by chance."""

_SEVERAL = "SELECT count(DISTINCT (server_ip, server_port)) > 1 FROM connections"
# What a capture must have for each way in which somebody hands a connection through, or says that two addresses are one
# machine.
_CLUES = """
    SELECT (SELECT count(client_random) > count(DISTINCT client_random) FROM handshakes WHERE number = 0),
        bool_or(announced_ip IS NOT NULL),
        count(DISTINCT (server_ip, server_port)) > count(DISTINCT server_ip),
        bool_or(local_end IS NOT NULL),
        (SELECT bool_or(forwarded_for IS NOT NULL) FROM exchanges),
        bool_or(mac_server IS NOT NULL) AND bool_or(mac_client IS NOT NULL)
    FROM connections
"""


class _Clues(NamedTuple):
    """What there is in a capture."""

    repeated_hellos: bool = False
    announcements: bool = False
    several_ports: bool = False
    local_ends: bool = False
    forwarded: bool = False
    network_cards: bool = False


_REPEATED = f"""
    SELECT lag(stream) OVER (PARTITION BY client_random ORDER BY hello_at, stream) AS front_stream,
        stream AS back_stream, 'client-hello' AS method
    FROM handshakes WHERE client_random IS NOT NULL AND number = 0
    QUALIFY count(*) OVER (PARTITION BY client_random) <= {MOST_HANDED}
"""
_ANNOUNCED = f"""
    WITH announcing AS (
        SELECT stream, announced_ip AS ip, announced_port AS port, opened_at, opened_at + {SKEW_NS} AS by_at
        FROM connections WHERE announced_ip IS NOT NULL),
    announcable AS (
        SELECT stream, client_ip AS ip, client_port AS port, opened_at, closed_at,
            row_number() OVER (PARTITION BY client_ip, client_port ORDER BY opened_at, stream) AS place
        FROM connections WHERE (client_ip, client_port) IN (SELECT (ip, port) FROM announcing))
    SELECT f.stream AS front_stream, b.stream AS back_stream, 'proxy-protocol' AS method
    FROM (
        SELECT b.*, unnest(range(last.place - {MOST_HANDED - 1}, last.place + 1)) AS place
        FROM announcing b ASOF JOIN (
            SELECT ip, port, opened_at, max(place) AS place FROM announcable GROUP BY ALL) last
            ON b.ip = last.ip AND b.port = last.port AND b.by_at >= last.opened_at) b
    JOIN announcable f USING (ip, port, place)
    WHERE f.stream <> b.stream AND b.opened_at <= f.closed_at
    QUALIFY row_number() OVER (PARTITION BY b.stream ORDER BY f.opened_at DESC, f.stream DESC) = 1
"""
_MIRRORED = f"""
    WITH asking AS (
        SELECT stream, client_ip, server_ip, server_port, opened_at, closed_at, requested_at, bytes_client,
            bytes_server, least(bytes_client, bytes_server) AS fewer, greatest(bytes_client, bytes_server) AS more
        FROM connections
        JOIN (SELECT stream, min(request_at) AS requested_at FROM exchanges GROUP BY stream) USING (stream)
        WHERE least(bytes_client, bytes_server) >= 64),
    alike AS (
        SELECT *, row_number() OVER (PARTITION BY server_ip, fewer, more ORDER BY opened_at, stream) AS place
        FROM asking
        QUALIFY min(server_port) OVER (PARTITION BY server_ip, fewer, more)
            <> max(server_port) OVER (PARTITION BY server_ip, fewer, more))
    SELECT f.stream AS front_stream, b.stream AS back_stream, 'same-bytes' AS method
    FROM (SELECT *, unnest(range(place - {MOST_HANDED}, place + {MOST_HANDED + 1})) AS other FROM alike) b
    JOIN alike f ON f.server_ip = b.server_ip AND f.fewer = b.fewer AND f.more = b.more AND f.place = b.other
    WHERE f.requested_at < b.requested_at AND f.server_port <> b.server_port AND f.bytes_client = b.bytes_server
        AND f.opened_at <= b.closed_at AND b.opened_at <= f.closed_at AND b.client_ip <> f.client_ip
    QUALIFY row_number() OVER (PARTITION BY b.stream ORDER BY abs(f.opened_at - b.opened_at), f.stream) = 1
"""
_THROUGH = f"""
    CREATE OR REPLACE TEMP TABLE through AS
    SELECT front_stream, back_stream, method, f.server_ip AS front_ip, b.client_ip AS back_ip
    FROM (SELECT back_stream, arg_min(front_stream, method) AS front_stream, min(method) AS method
          FROM ({{pairs}}) WHERE front_stream IS NOT NULL GROUP BY back_stream)
    JOIN connections f ON f.stream = front_stream JOIN connections b ON b.stream = back_stream
    -- Whoever hands on a ClientHello has both connections open; what was replayed is only seen again.
    WHERE method <> 'client-hello' OR b.opened_at <= f.closed_at + {SKEW_NS}"""
"""Connections that somebody hands through: the same ClientHello, a PROXY protocol header that names the client, or,
where who serves had opened the connection to the proxy (a reverse tunnel), as many bytes the other way round. Every
join is by a place in an order: nothing is compared with more than a fixed number of others, however many have the same
address or as many bytes."""
_NOTHING_THROUGH = """
    CREATE OR REPLACE TEMP TABLE through (
        front_stream INTEGER, back_stream INTEGER, method VARCHAR, front_ip VARCHAR, back_ip VARCHAR)
"""

# The capturing machine's own addresses (cooked captures): it both opens and accepts connections. Each is paired with
# one of them, not with all. An address whose packets come from elsewhere is none of its own.
_CAPTURING = """
    SELECT 'capturing' AS method, 1.0 AS confidence, min(address) OVER capturing AS one,
        address AS other
    FROM (
        SELECT capture, client_ip AS address, true AS opens FROM connections WHERE local_end IN ('client', 'both')
        UNION SELECT capture, server_ip, false FROM connections WHERE local_end IN ('server', 'both'))
    ANTI JOIN (
        SELECT capture, server_ip AS address FROM connections WHERE local_end = 'client'
        UNION SELECT capture, client_ip FROM connections WHERE local_end = 'server') elsewhere USING (capture, address)
    WHERE address NOT IN (SELECT unnest($declared::VARCHAR[]))
    WINDOW capturing AS (PARTITION BY capture)
    QUALIFY bool_or(opens) OVER capturing AND NOT bool_and(opens) OVER capturing
"""
# What is handed through was accepted and opened by one machine.
_HANDING = """
    SELECT DISTINCT method, 0.99 AS confidence, front_ip AS one, back_ip AS other FROM through
    WHERE method <> 'same-bytes'
"""
# A request that names the client for which it is made (X-Forwarded-For).
_FORWARDING = f"""
    SELECT * FROM (
        WITH forwarding AS (
            SELECT address, client AS client_ip, request_at, request_at + {SKEW_NS} AS by_at
            FROM (
                SELECT client_ip AS address, request_at,
                    trim(list_last(string_split(forwarded_for, ',')), ' "[]') AS client
                FROM exchanges JOIN connections USING (stream) WHERE forwarded_for IS NOT NULL
                QUALIFY row_number() OVER (PARTITION BY client_ip ORDER BY request_at) <= {FEW})
            WHERE address <> client),
        forwarded AS (
            SELECT client_ip, server_ip, request_at, coalesce(response_at, closed_at) AS until_at,
                row_number() OVER (PARTITION BY client_ip ORDER BY request_at) AS place
            FROM exchanges JOIN (
                FROM connections SEMI JOIN forwarding USING (client_ip)) USING (stream)
            WHERE request_at IS NOT NULL)
        SELECT DISTINCT 'forwarded-for' AS method, 0.98 AS confidence, f.server_ip AS one, b.address AS other
        FROM (
            SELECT b.*, unnest(range(last.place - {MOST_PENDING - 1}, last.place + 1)) AS place
            FROM forwarding b
            ASOF JOIN (SELECT client_ip, request_at, max(place) AS place FROM forwarded GROUP BY ALL) last
                ON last.client_ip = b.client_ip AND b.by_at >= last.request_at) b
        JOIN forwarded f USING (client_ip, place) WHERE b.request_at <= f.until_at)
"""
# One network card, and no router between it and the capture.
_SAME_CARD = f"""
    SELECT 'network-card' AS method, 0.95 AS confidence, a.address AS one, b.address AS other
    FROM (SELECT DISTINCT capture, mac_server AS mac, server_ip AS address FROM connections
          WHERE mac_server IS NOT NULL AND ttl_server IN (64, 128, 255)
          QUALIFY count(*) OVER (PARTITION BY capture, mac_server) <= {MOST_ADDRESSES}) a
    JOIN (SELECT DISTINCT capture, mac_client AS mac, client_ip AS address FROM connections
          WHERE mac_client IS NOT NULL AND ttl_client IN (64, 128, 255)
          QUALIFY count(*) OVER (PARTITION BY capture, mac_client) <= {MOST_ADDRESSES}) b USING (capture, mac)
"""


_STRANGERS = f"""
    WITH requested AS (
        FROM exchanges JOIN connections USING (stream) WHERE request_at IS NOT NULL AND NOT ({TURNS})),
    servers AS (
        SELECT server_ip, list(DISTINCT client_ip) AS clients, min(opened_at) AS from_at, max(closed_at) AS to_at,
            count(*) AS requests
        FROM requested GROUP BY server_ip),
    clients AS (
        SELECT client_ip, min(opened_at) AS from_at, max(closed_at) AS to_at, count(*) AS requests
        FROM requested GROUP BY client_ip)
    SELECT f.server_ip, b.client_ip
    FROM (FROM servers WHERE server_ip NOT IN (SELECT client_ip FROM requested)
          ORDER BY requests DESC, server_ip LIMIT {MOST_STRANGERS}) f
    JOIN (FROM clients
          WHERE client_ip NOT IN (SELECT server_ip FROM requested) OR client_ip = '::1' OR client_ip LIKE '127.%'
          ORDER BY requests DESC, client_ip LIMIT {MOST_STRANGERS}) b
        ON f.from_at <= b.to_at AND b.from_at <= f.to_at
    -- Who asks a server is not that server.
    WHERE NOT list_contains(f.clients, b.client_ip)"""
"""Servers that ask nobody, and clients that nobody asks: the two sides of one proxy, perhaps. SSH does not count."""

_NESTING = f"""
    WITH strangers AS ({_STRANGERS}),
    requested AS (
        SELECT client_ip, server_ip, request_at, coalesce(response_at, {CAUSES_UNTIL}) AS until_at
        FROM exchanges JOIN connections USING (stream) WHERE request_at IS NOT NULL),
    sample AS (
        SELECT client_ip, request_at, until_at FROM requested SEMI JOIN strangers USING (client_ip)
        QUALIFY (row_number() OVER (PARTITION BY client_ip ORDER BY request_at) - 1)
            % greatest(1, count(*) OVER (PARTITION BY client_ip) // {MOST_COMPARED}) = 0),
    -- An exchange lies within a wait if the longest of those that began before it has not ended when it ends.
    waits AS (
        SELECT server_ip, request_at, max(until_at) OVER (PARTITION BY server_ip ORDER BY request_at) AS until_at
        FROM requested SEMI JOIN strangers USING (server_ip)),
    placed AS (SELECT server_ip, client_ip, request_at + {SKEW_NS} AS requested_at, until_at - {SKEW_NS} AS until_at
        FROM strangers JOIN sample USING (client_ip))
    SELECT placed.server_ip, client_ip
    FROM placed ASOF LEFT JOIN waits ON placed.server_ip = waits.server_ip AND requested_at >= waits.request_at
    GROUP BY ALL HAVING avg(coalesce(placed.until_at <= waits.until_at, false)::INTEGER) >= {LEAST_NESTED}
    ORDER BY ALL"""
"""Those of them where what the client asks lies within what the server was asked."""

_NESTED = f"""
    WITH requested AS (
        SELECT request_at, coalesce(response_at, {CAUSES_UNTIL}) AS until_at,
            row_number() OVER (ORDER BY request_at) AS place
        FROM exchanges JOIN connections USING (stream) WHERE client_ip = $client AND request_at IS NOT NULL),
    sample AS (
        SELECT * FROM requested
        QUALIFY (place - 1) % greatest(1, (count(*) OVER ()) // {MOST_COMPARED}) = 0),
    waits AS (
        SELECT request_at, until_at, max(until_at) OVER so_far AS longest_at, row_number() OVER so_far AS place
        FROM (
            SELECT request_at, coalesce(response_at, {CAUSES_UNTIL}) AS until_at
            FROM exchanges JOIN connections USING (stream) WHERE server_ip = $server AND request_at IS NOT NULL)
        WINDOW so_far AS (ORDER BY request_at, until_at ROWS UNBOUNDED PRECEDING)),
    moved AS (
        SELECT shift, place, request_at + shift AS request_at, request_at + shift + {SKEW_NS} AS by_at,
            until_at + shift - {SKEW_NS} AS until_at
        FROM sample, (SELECT unnest([0, 83000000, -131000000, 457000000, -719000000]) AS shift)),
    -- Those that began last before it: whether one of all holds it, the longest tells.
    last AS (
        SELECT m.*, coalesce(w.place, 0) AS last, coalesce(m.until_at <= w.longest_at, false) AS nested
        FROM moved m ASOF LEFT JOIN (
            SELECT request_at, max(place) AS place, max(longest_at) AS longest_at FROM waits GROUP BY request_at) w
            ON m.by_at >= w.request_at),
    held AS (
        SELECT shift, l.place, any_value(nested) AS nested,
            min(l.request_at - w.request_at) FILTER (l.until_at <= w.until_at) AS after_ns
        FROM (SELECT *, unnest(range(last - {MOST_BEGUN - 1}, last + 1)) AS of_wait FROM last) l
        LEFT JOIN waits w ON w.place = l.of_wait
        GROUP BY ALL)
    SELECT count(*) FILTER (shift = 0), avg(nested::INTEGER) FILTER (shift = 0),
        avg(nested::INTEGER) FILTER (shift <> 0),
        median(after_ns) FILTER (shift = 0), median(after_ns) FILTER (shift <> 0),
        (SELECT count(*) FROM requested) / (SELECT count(*) FROM waits)
    FROM held"""
"""How many of a client's exchanges lie within waits of a server's clients, and how many would if they were moved in
time: that is chance."""

_MACHINES = {"address": "VARCHAR", "machine": "INTEGER", "method": "VARCHAR", "confidence": "DOUBLE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Addresses that are one machine."""

    addresses: tuple[str, ...]
    method: str | None
    """What says so, the weakest; None where there is one address."""
    confidence: float


def find_machines(tables: Tables, proxies: Iterable[Collection[str]] = ()) -> None:
    """Find the machines of which a capture shows more than one address or both sides, and fill the temporary tables.

    Args:
        tables: Those of a trace.
        proxies: Addresses of each proxy, where somebody knows better.
    """
    ((several,),) = tables.fetch(_SEVERAL)
    # Where there is one server, nobody stands before another.
    clues = _Clues(*tables.fetch(_CLUES)[0]) if several else _Clues()
    ways = [(_REPEATED, clues.repeated_hellos), (_ANNOUNCED, clues.announcements), (_MIRRORED, clues.several_ports)]
    taken = [f"SELECT * FROM ({pairs})" for pairs, may_be in ways if may_be]
    tables.execute(_THROUGH.format(pairs=" UNION ALL ".join(taken)) if taken else _NOTHING_THROUGH)
    union = _Union()
    given = [sorted(proxy) for proxy in proxies]
    declared = {address for proxy in given for address in proxy}
    for proxy in given:
        for address in proxy:
            union.join(proxy[0], address, "given", 1.0)
    reasons = [
        *((_CAPTURING, clues.local_ends), (_HANDING, bool(taken))),
        *((_FORWARDING, clues.forwarded), (_SAME_CARD, clues.network_cards)),
    ]
    for method, confidence, one, other in _same(tables, declared, [query for query, may_be in reasons if may_be]):
        union.join(one, other, method, confidence)
    if several and (strangers := list(_nested(tables, declared | union.addresses()))):
        servers_of: dict[str, set[str]] = {}
        for client, server in tables.fetch("SELECT DISTINCT client_ip, server_ip FROM connections"):
            servers_of.setdefault(client, set()).add(server)
        for stranger in strangers:
            is_settled = union.has(stranger.server) or union.has(stranger.client)
            if not is_settled and not stranger.asks_itself(servers_of, union):
                union.join(stranger.server, stranger.client, "time", stranger.confidence)
    for (address,) in tables.fetch("SELECT server_ip FROM connections INTERSECT SELECT client_ip FROM connections"):
        union.join(address, address, None, 1.0)
    places = (
        (address, number, machine.method, machine.confidence)
        for number, machine in enumerate(union.machines())
        for address in machine.addresses
    )
    tables.lend("machines", _MACHINES, places)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stranger:
    """A server that asks nobody, and a client that nobody asks, whose times are those of one machine."""

    server: str
    client: str
    confidence: float

    def asks_itself(self, servers_of: Mapping[str, set[str]], union: "_Union") -> bool:
        """Say whether what the client asks leads to the server: then these are the two ends of a chain."""
        queue, seen = [self.client], {self.client}
        for address in queue:  # grows while it is walked
            reached = {server for other in union.machine_of(address) for server in servers_of.get(other, ())} - seen
            seen |= reached
            queue += reached
        return self.server in seen


def _same(tables: Tables, declared: set[str], reasons: list[str]) -> Iterator[tuple[str, float, str, str]]:
    """Give what says of two addresses, of which nobody knows better, that they are one machine; and the addresses."""
    query = f"SELECT DISTINCT * FROM ({' UNION ALL '.join(reasons)}) ORDER BY ALL"
    params = {"declared": sorted(declared)} if _CAPTURING in reasons else None
    for method, confidence, one, other in tables.fetch(query, params) if reasons else ():
        if one not in declared and other not in declared:
            yield method, float(confidence), one, other  # a DECIMAL of DuckDB


def _nested(tables: Tables, settled: set[str]) -> Iterator[_Stranger]:
    """Give the pairs that are one machine as far as time tells, the most nested first."""
    pairs = [pair for pair in tables.fetch(_NESTING) if settled.isdisjoint(pair)]
    likely = [
        (server, client, tables.fetch(_NESTED, {"server": server, "client": client})[0]) for server, client in pairs
    ]
    for server, client, times in sorted(likely, key=lambda pair: -pair[2][1]):
        count, share, chance, after, after_by_chance, requests_per_wait = times
        rivals = [pair for pair in likely if server in pair[:2] or client in pair[:2]]
        if chance <= 0.5 * share or (after_by_chance and after <= 0.5 * after_by_chance):
            confidence = 0.9 if count >= FEW else 0.7
        # Where somebody always waits, everything lies within a wait: then it counts that there are about as many.
        elif len(rivals) == 1 and count >= 2 * FEW and share >= 0.95 and 0.5 <= requests_per_wait <= 3:
            confidence = 0.8
        else:
            continue
        yield _Stranger(server=server, client=client, confidence=confidence)


@dataclass(slots=True)
class _Set:
    """Addresses that are one machine, and the weakest reason for it: none where there is one address."""

    addresses: set[str]
    confidence: float = 1.0
    method: str | None = None


class _Union:
    """Sets of addresses, joined pair by pair: the smaller one moves into the larger one, N pairs cost N log N."""

    def __init__(self) -> None:
        """Begin without any."""
        self._sets: dict[str, _Set] = {}
        """Of each address; those of one set share it."""

    def has(self, address: str) -> bool:
        """Say whether the address is in any set."""
        return address in self._sets

    def machine_of(self, address: str) -> set[str]:
        """Give the set of an address; the address alone if it is in none."""
        return self._sets[address].addresses if address in self._sets else {address}

    def addresses(self) -> set[str]:
        """Give the addresses of all sets."""
        return set(self._sets)

    def join(self, one: str, other: str, method: str | None, confidence: float) -> None:
        """Make the sets of two addresses one, for a reason; an address and itself are a set without one."""
        ours, theirs = (self._sets.setdefault(address, _Set({address})) for address in (one, other))
        if ours is theirs:
            return
        reasons = [(group.confidence, group.method) for group in (ours, theirs) if group.method]
        confidence, method = min([*reasons, (confidence, method)], key=lambda reason: reason[0])
        small, large = sorted((ours, theirs), key=lambda group: len(group.addresses))
        large.addresses |= small.addresses
        large.confidence, large.method = confidence, method
        self._sets.update(dict.fromkeys(small.addresses, large))

    def machines(self) -> list[Machine]:
        """Give the sets, each with the weakest of its reasons, in the order of their addresses."""
        distinct = {id(group): group for group in self._sets.values()}
        found = [
            Machine(addresses=tuple(sorted(group.addresses)), method=group.method, confidence=group.confidence)
            for group in distinct.values()
        ]
        return sorted(found, key=lambda machine: machine.addresses)
